"""Connections of httpcore2 that lead only to addresses that were checked."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import httpcore2

from mcp_app.egress.resolving import Forbidden, Resolver
from mcp_app.egress.sites import Site, is_allowed, parse_address

CONNECT_S: Final = 3.0
IDLE_S: Final = 5.0
"""How long an unused connection is kept: the site's address may change."""
MAX_KEEPALIVE_BYTES: Final = 32 * 1024
"""If an answer has more bytes than this, its connection is not kept.

The layers below pass on 64 KiB at once.  After a larger answer, they may hold more that
cannot be seen here.
"""


def connection_pool_for(
    site: Site, resolver: Resolver
) -> httpcore2.AsyncConnectionPool:
    """Return the connections to one site."""
    return httpcore2.AsyncConnectionPool(
        ssl_context=_ssl_context(site.ca),
        max_connections=site.connections,
        max_keepalive_connections=site.connections,
        keepalive_expiry=IDLE_S,
        network_backend=GuardedBackend(site, resolver),
    )


@lru_cache(maxsize=32)
def _ssl_context(ca: str) -> ssl.SSLContext:
    """Return the context for a file of certificates, or for the system's if it is "".

    It is cached, because reading certificates takes longer than most calls.
    """
    return (
        ssl.create_default_context(cafile=ca) if ca else httpcore2.default_ssl_context()
    )


class AnswerStream(httpcore2.AsyncNetworkStream):
    """A connection that is dropped if more than one answer arrives.

    httpcore2 would give the surplus bytes to the next request.  So the last byte that
    arrived waits here until it is read.  If an answer ends before that byte, the byte
    stays here: the connection counts as readable, and is not used again.
    """

    def __init__(self, below: httpcore2.AsyncNetworkStream) -> None:
        self._below = below
        self._last = b""
        self._size = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the bytes that arrived without the last one, then that byte."""
        data, self._last = self._last, b""
        if not data:
            data = await self._below.read(max_bytes, timeout)
            self._size += len(data)
            if len(data) > 1:
                data, self._last = data[:-1], data[-1:]
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes; the size of the next answer is counted from 0."""
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
    ) -> httpcore2.AsyncNetworkStream:
        """Return the connection with TLS."""
        below = await self._below.start_tls(ssl_context, server_hostname, timeout)
        return AnswerStream(below)

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore2 asks for, such as "is_readable" after an answer."""
        value = self._below.get_extra_info(info)
        if info != "is_readable":
            return value
        return (
            value
            or self._last
            or self._size > MAX_KEEPALIVE_BYTES
            or self._is_more_in_tls()
        )

    def _is_more_in_tls(self) -> bool:
        """Return whether TLS has an unread record, or its end."""
        tls = self._below.get_extra_info("ssl_object")
        try:
            return tls is not None and tls.read(1) is not None
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError:
            return True


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the checked addresses of one site's name."""

    def __init__(self, site: Site, resolver: Resolver) -> None:
        self._site = site
        self._resolver = resolver
        self._below = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that answers; raise `Forbidden`."""
        refusal: httpcore2.ConnectError | httpcore2.ConnectTimeout | None = None
        for address in await self._vetted_addresses(host, port):
            try:
                stream = await self._below.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
                return AnswerStream(stream)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                refusal = error
        raise refusal or httpcore2.ConnectError(f"The name {host} has no address.")

    async def _vetted_addresses(self, host: str, port: int) -> list[str]:
        literal = parse_address(host) is not None
        addresses = [host] if literal else [*await self._resolver.addresses(host, port)]
        for each in addresses:
            address = parse_address(each)
            if address is None or not is_allowed(address, self._site.networks):
                raise Forbidden(
                    f"The name {host} leads to {each}, which is not public. If it is"
                    f" to be had, name its network in the site's “networks”."
                )
        return addresses

    async def sleep(self, seconds: float) -> None:
        """Wait, as httpcore2 asks for it."""
        await self._below.sleep(seconds)
