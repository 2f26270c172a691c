"""Connections of httpcore2 that lead only to addresses that were looked at.

The name is looked up for each new connection, every address must pass, and the
connection goes to one of those: no second lookup can give another (T7).
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any, Final

from httpcore2 import (
    AnyIOBackend,
    AsyncConnectionPool,
    AsyncNetworkBackend,
    AsyncNetworkStream,
    ConnectError,
    ConnectTimeout,
    default_ssl_context,
)

from mcp_app.egress.addresses import is_allowed
from mcp_app.egress.addresses import read as read_address
from mcp_app.egress.errors import Forbidden
from mcp_app.egress.resolving import Resolver
from mcp_app.egress.sites import Site

CONNECT_S: Final = 3.0
IDLE_S: Final = 5.0
"""So long a connection is kept: its address may change."""


def pool_for(site: Site, resolver: Resolver) -> AsyncConnectionPool:
    """Return the connections to one site."""
    return AsyncConnectionPool(
        ssl_context=_ssl_context(site),
        max_connections=site.connections,
        max_keepalive_connections=site.connections,
        keepalive_expiry=IDLE_S,
        network_backend=GuardedBackend(site, resolver),
    )


def _ssl_context(site: Site) -> ssl.SSLContext:
    if site.ca:
        return ssl.create_default_context(cafile=site.ca)
    return default_ssl_context()


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
        for address in await self._vetted(host, port):
            try:
                return await self._below.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (ConnectError, ConnectTimeout) as error:
                refusal = error
        raise refusal or ConnectError(f"The name {host} has no address.")

    async def _vetted(self, host: str, port: int) -> list[str]:
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
