"""The addresses of a name, looked up in threads that nobody waits for at the end."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from mcp_app.egress.errors import Unreachable
from mcp_app.pools.futures import settle

LOOKUP_S: Final = 3.0
"""So long a call waits for the addresses of a name."""
LOOKUPS: Final = 4
"""So many names are looked up at once."""

Lookup: TypeAlias = Callable[[str, int], Sequence[str]]


def system_lookup(host: str, port: int) -> Sequence[str]:
    """Return what the system says; blocks, and raises `OSError`."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in entries))


class Resolver:
    """Looks names up, each once at a time; used on one loop."""

    def __init__(self, lookup: Lookup = system_lookup) -> None:
        self._lookup = lookup
        self._places = asyncio.Semaphore(LOOKUPS)
        self._running: dict[tuple[str, int], asyncio.Task[Sequence[str]]] = {}

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return all addresses of a name; raise `Unreachable`.

        A lookup that hangs is waited for by everybody who asks for the same name, so
        that one site never holds more than one thread.
        """
        task = self._running.get((host, port))
        if task is None:
            task = asyncio.create_task(self._look_up(host, port))
            self._running[host, port] = task
            task.add_done_callback(partial(self._forget, (host, port)))
        try:
            async with asyncio.timeout(LOOKUP_S):
                return await asyncio.shield(task)
        except TimeoutError:
            late = f"The name {host} was not looked up within {LOOKUP_S:g} s."
            raise Unreachable(late) from None
        except (OSError, UnicodeError) as error:
            raise Unreachable(f"The name {host} has no address: {error}") from None

    async def _look_up(self, host: str, port: int) -> Sequence[str]:
        async with self._places:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[Sequence[str]] = loop.create_future()
            look_up = partial(self._lookup, host, port)
            threading.Thread(
                target=settle,
                args=(loop.call_soon_threadsafe, future, look_up),
                name="mcp-lookup",
                daemon=True,
            ).start()
            return await future

    def _forget(self, key: tuple[str, int], task: asyncio.Task[Sequence[str]]) -> None:
        del self._running[key]
        if not task.cancelled():
            # Whoever asked may have gone; nobody else reports it.
            task.exception()
