"""Errors of calls to other sites, and name lookups for them in threads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias

from mcp_app.pools.loop_thread import run_apart, start_background_task

# -- errors ----------------------------------------------------------------------------
# The ways in which a call to another site can fail.


class EgressError(Exception):
    """A call without an answer; the message is for operators, not for clients.

    If `submitted` is true, the other site may have acted on the request.
    """

    def __init__(self, message: str, *, submitted: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.sent = submitted
        self.status = 0
        """The status of an answer that cannot be used, 0 without an answer."""


class Forbidden(EgressError):
    """The rules of this site forbid the call; nothing was sent."""


class Unreachable(EgressError):
    """The other site cannot be reached: no name, no connection, or no whole answer."""

    why: Literal["", "tls", "slow"] = ""
    """Why there is no connection, if that is known."""


class TooSlow(EgressError):
    """The call took longer than the site's `timeout`."""


class TooLarge(EgressError):
    """The answer has more bytes than the site's `answer`."""


class Unreadable(EgressError):
    """The answer is broken, or has a coding that was not asked for."""


# -- resolving -------------------------------------------------------------------------
# The addresses of a name, looked up in threads that a shutdown does not wait for.

LOOKUP_S: Final = 3.0
"""How long a call waits for the addresses of a name."""
LOOKUPS: Final = 4
"""How many names are looked up at once."""

Lookup: TypeAlias = Callable[[str, int], Sequence[str]]


def system_lookup(host: str, port: int) -> Sequence[str]:
    """Return the addresses from the system; blocks, and raises `OSError`."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # An entry ends with a socket address, which begins with the IP address.
    return list(dict.fromkeys(str(address[0]) for *_, address in entries))


class Resolver:
    """Looks up names, each once at a time; used on one loop."""

    def __init__(self, lookup: Lookup = system_lookup) -> None:
        self._lookup = lookup
        self._places = asyncio.Semaphore(LOOKUPS)
        self._running: dict[tuple[str, int], asyncio.Task[Sequence[str]]] = {}

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return all addresses of a name; raise `Unreachable`.

        All callers of one name wait for the same lookup.  So if it hangs, a site never
        holds more than one thread.
        """
        task = self._running.get((host, port))
        if task is None:
            task = start_background_task(self._look_up_name(host, port))
            self._running[host, port] = task
            task.add_done_callback(partial(self._forget_lookup, (host, port)))
        try:
            async with asyncio.timeout(LOOKUP_S):
                return await asyncio.shield(task)
        except TimeoutError:
            late = f"The name {host} was not looked up within {LOOKUP_S:g} s."
            raise Unreachable(late) from None
        except (OSError, UnicodeError) as error:
            raise Unreachable(f"The name {host} has no address: {error}") from None

    async def _look_up_name(self, host: str, port: int) -> Sequence[str]:
        async with self._places:
            return await run_apart(partial(self._lookup, host, port), "mcp-lookup")

    def _forget_lookup(
        self, key: tuple[str, int], task: asyncio.Task[Sequence[str]]
    ) -> None:
        del self._running[key]
        if not task.cancelled():
            # The caller may be gone; this marks the error as seen.
            task.exception()
