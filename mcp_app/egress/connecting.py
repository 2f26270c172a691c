"""Connections of httpcore2 that lead only to addresses that were looked at."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from httpcore2 import (
    AnyIOBackend,
    AsyncConnectionPool,
    AsyncNetworkBackend,
    AsyncNetworkStream,
    ConnectError,
    ConnectTimeout,
    default_ssl_context,
)

from mcp_app.egress.sites import Site, is_allowed
from mcp_app.egress.sites import parse_address as read_address
from mcp_app.pools.loop_thread import settle_future

# -- errors ----------------------------------------------------------------------------
# What can become of a call to another site, if it is no answer.


class EgressError(Exception):
    """A call without an answer; the message is for operators, not for clients.

    With `submitted` the other site may have done what it was asked for.
    """

    def __init__(self, message: str, *, submitted: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.sent = submitted


class Forbidden(EgressError):
    """The rules of this site forbid the call: nothing was sent."""


class Unreachable(EgressError):
    """The other site cannot be had: no name, no connection, no whole answer."""


class TooSlow(EgressError):
    """The call took longer than the site's `timeout`."""


class TooLarge(EgressError):
    """The answer has more bytes than the site's `answer`."""


class Unreadable(EgressError):
    """The answer has a coding that was not asked for, or is broken."""


# -- resolving -------------------------------------------------------------------------
# The addresses of a name, looked up in threads that nobody waits for at the end.


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
            task = asyncio.create_task(self._look_up_name(host, port))
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
            loop = asyncio.get_running_loop()
            future: asyncio.Future[Sequence[str]] = loop.create_future()
            look_up = partial(self._lookup, host, port)
            threading.Thread(
                target=settle_future,
                args=(loop.call_soon_threadsafe, future, look_up),
                name="mcp-lookup",
                daemon=True,
            ).start()
            return await future

    def _forget_lookup(
        self, key: tuple[str, int], task: asyncio.Task[Sequence[str]]
    ) -> None:
        del self._running[key]
        if not task.cancelled():
            # Whoever asked may have gone; nobody else reports it.
            task.exception()


# -- backend ---------------------------------------------------------------------------
# Connections of httpcore2 that lead only to addresses that were looked at.
#
# The name is looked up for each new connection, every address must pass, and the
# connection goes to one of those: no second lookup can give another (T7).


CONNECT_S: Final = 3.0
IDLE_S: Final = 5.0
"""So long a connection is kept: its address may change."""
MAX_KEEPALIVE_BYTES: Final = 32 * 1024
"""Bytes of an answer whose connection is kept.

The layers below hand out 64 KiB at once: after a larger answer, they may hold more that
cannot be seen here.
"""


def connection_pool_for(site: Site, resolver: Resolver) -> AsyncConnectionPool:
    """Return the connections to one site."""
    return AsyncConnectionPool(
        ssl_context=_ssl_context(site.ca),
        max_connections=site.connections,
        max_keepalive_connections=site.connections,
        keepalive_expiry=IDLE_S,
        network_backend=GuardedBackend(site, resolver),
    )


@lru_cache(maxsize=32)
def _ssl_context(ca: str) -> ssl.SSLContext:
    """Return it for the certificates of a file, "" for the system's.

    To read those takes longer than most calls.
    """
    return ssl.create_default_context(cafile=ca) if ca else default_ssl_context()


class AnswerStream(AsyncNetworkStream):
    """A connection that is dropped once more came than one answer.

    Whoever asks next would be given what came too much: httpcore2 keeps it.  So the
    last byte of what came waits here until it is asked for.  An answer that ends before
    it leaves it here, and a connection that is readable is not used again.
    """

    def __init__(self, below: AsyncNetworkStream) -> None:
        self._below = below
        self._last = b""
        self._size = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what came but its last byte, then that byte."""
        data, self._last = self._last, b""
        if not data:
            data = await self._below.read(max_bytes, timeout)
            self._size += len(data)
            if len(data) > 1:
                data, self._last = data[:-1], data[-1:]
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send it; the next answer is counted anew."""
        self._size = 0
        await self._below.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._below.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> AsyncNetworkStream:
        """Return the connection with TLS."""
        below = await self._below.start_tls(ssl_context, server_hostname, timeout)
        return AnswerStream(below)

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore2 asks for: "is_readable" after an answer."""
        known = self._below.get_extra_info(info)
        if info != "is_readable":
            return known
        return (
            known
            or self._last
            or self._size > MAX_KEEPALIVE_BYTES
            or self._is_more_in_tls()
        )

    def _is_more_in_tls(self) -> bool:
        """Tell whether TLS has a record that nobody read, or its end."""
        tls = self._below.get_extra_info("ssl_object")
        try:
            return tls is not None and tls.read(1) is not None
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError:
            return True


class GuardedBackend(AsyncNetworkBackend):
    """Connects to the vetted addresses of one site's name."""

    def __init__(self, site: Site, resolver: Resolver) -> None:
        self._site = site
        self._resolver = resolver
        self._below = AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        """Connect to the first address that answers; raise `Forbidden`."""
        refusal: ConnectError | ConnectTimeout | None = None
        for address in await self._vetted_addresses(host, port):
            try:
                stream = await self._below.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
                return AnswerStream(stream)
            except (ConnectError, ConnectTimeout) as error:
                refusal = error
        raise refusal or ConnectError(f"The name {host} has no address.")

    async def _vetted_addresses(self, host: str, port: int) -> list[str]:
        literal = read_address(host) is not None
        addresses = [host] if literal else [*await self._resolver.addresses(host, port)]
        for each in addresses:
            address = read_address(each)
            if address is None or not is_allowed(address, self._site.networks):
                raise Forbidden(
                    f"The name {host} leads to {each}, which is not public. If it is"
                    f" to be had, name its network in the site's “networks”."
                )
        return addresses

    async def sleep(self, seconds: float) -> None:
        """Wait, as httpcore2 asks for it."""
        await self._below.sleep(seconds)
