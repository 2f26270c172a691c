"""Closes streams and calls whose token, permission, server or tool is gone.

New requests are refused elsewhere; this module closes streams and calls that were
already open.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from django.db import Error as DatabaseError

from mcp_app.auth.permissions import RightsCache
from mcp_app.auth.token_cache import token_cache
from mcp_app.catalog.stops import retry_after_s
from mcp_app.invalidation import stops
from mcp_app.pools.database import writer
from mcp_app.process.loading import Catalogs
from mcp_app.process.running import RunningCalls
from mcp_app.protocol.errors import Unavailable
from mcp_app.server.exchange import End, Exchange
from mcp_app.streams.listeners import Listener, Listeners

Spawn: TypeAlias = Callable[[Awaitable[None]], "asyncio.Future[None]"]


class Revocation:
    """Ends streams and calls of this process; used on its loop only."""

    def __init__(
        self,
        listeners: Listeners,
        running: RunningCalls,
        catalogs: Catalogs,
        rights: RightsCache,
        spawn: Spawn,
    ) -> None:
        self._listeners = listeners
        self._running = running
        self._catalogs = catalogs
        self._rights = rights
        self._spawn = spawn
        self._looking: asyncio.Future[None] | None = None

    # -- tokens and rights --------------------------------------------------------

    def look(self) -> None:
        """Close what ended tokens or lost permissions had open, if a check is due."""
        if token_cache.ending and (self._looking is None or self._looking.done()):
            self._looking = self._spawn(self._looked())

    async def _looked(self) -> None:
        try:
            await self._end_of_tokens()
        except (DatabaseError, Unavailable):
            # The next tick tries again.
            return
        try:
            await self._end_of_the_shut_out()
        except (DatabaseError, Unavailable):
            token_cache.doubt()

    async def _end_of_tokens(self) -> None:
        owners = {each.owner for each in self._listeners}
        owners |= {each.principal.key for each in self._running}
        gone = await token_cache.gone(owners)
        for listener in [each for each in self._listeners if each.owner in gone]:
            listener.end()
        for call in [each for each in self._running if each.principal.key in gone]:
            call.stop(End.STOPPED)

    async def _end_of_the_shut_out(self) -> None:
        for listener in list(self._listeners):
            if await self._is_shut_out(listener):
                listener.end()

    async def _is_shut_out(self, listener: Listener) -> bool:
        """Return whether a stream's client does not meet the demands of its server."""
        catalog = self._catalogs.by_slug.get(listener.server)
        if catalog is None or not catalog.server.demands:
            return False
        slug, demands = catalog.server.slug, catalog.demands
        rights = await self._rights.find(listener.principal, slug, demands)
        return not rights.meet(catalog.server.demands)

    # -- servers ------------------------------------------------------------------

    def ways(self) -> dict[str, tuple[str, ...]]:
        """Return the ways of authentication that each server accepts."""
        catalogs = self._catalogs.by_slug
        return {slug: each.server.access for slug, each in catalogs.items()}

    def close_after_access_change(self, before: Mapping[str, tuple[str, ...]]) -> None:
        """End the streams of servers whose ways changed; their clients reconnect."""
        now = self.ways()
        for listener in self._listeners:
            slug = listener.server
            if slug in before and now.get(slug, before[slug]) != before[slug]:
                listener.end()

    def close_stopped(self) -> None:
        """End streams of stopped servers, and cancel the calls that a stop cancels."""
        stopped, halted = self._catalogs.stopped, Counter[int]()
        for listener in self._listeners:
            if listener.server in stopped and not listener.lasts:
                listener.end(retry_ms=1_000 * retry_after_s())
        for exchange in self._running:
            server, entry = exchange.catalog.server, exchange.entry
            halt = next(self._catalogs.halts(server, entry), None)
            if halt is not None:
                exchange.stop(End.STOPPED)
                halted[halt.pk] += 1
            elif exchange.queued and self._is_off(exchange):
                # The stop lets running calls finish, but this one is still queued.
                exchange.stop(End.STOPPED)
        for pk, calls in halted.items():
            self._spawn(writer.run(stops.count_cancelled, pk, calls))

    def _is_off(self, exchange: Exchange) -> bool:
        """Return whether the same request would be refused if it came now."""
        catalog = self._catalogs.by_slug.get(exchange.catalog.server.slug)
        return catalog is None or (
            exchange.entry is not None and catalog.has_switched_off(exchange.entry)
        )
