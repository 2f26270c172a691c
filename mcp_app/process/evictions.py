"""What is open, and may not go on: its token, its right, its server or its tool went.

Who comes anew is refused by the same rows; here those are asked to leave who came
before.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from django.db import Error as DatabaseError

from mcp_app.auth.permissions import KeptRights
from mcp_app.auth.tokens import tokens
from mcp_app.pools.database import writer
from mcp_app.process.loading import Catalogs
from mcp_app.process.running import RunningCalls
from mcp_app.protocol.errors import Unavailable
from mcp_app.server.exchange import End, Exchange
from mcp_app.streams.listeners import Listener, Listeners
from mcp_app.wakeup import stops

BACK_S: Final = (15, 45)
"""After so many seconds, between these, clients look whether a server is on again."""

Spawn: TypeAlias = Callable[[Awaitable[None]], "asyncio.Future[None]"]


class Evictions:
    """Ends streams and calls of this process; used on its loop only."""

    def __init__(
        self,
        listeners: Listeners,
        running: RunningCalls,
        catalogs: Catalogs,
        rights: KeptRights,
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
        """End what is open of those whom no token lets in any more, if any may be."""
        if tokens.ending and (self._looking is None or self._looking.done()):
            self._looking = self._spawn(self._looked())

    async def _looked(self) -> None:
        try:
            await self._end_of_tokens()
        except (DatabaseError, Unavailable):
            # The next round asks again.
            return
        try:
            await self._end_of_the_shut_out()
        except (DatabaseError, Unavailable):
            tokens.doubt()

    async def _end_of_tokens(self) -> None:
        owners = {each.owner for each in self._listeners}
        owners |= {each.principal.key for each in self._running}
        gone = await tokens.gone(owners)
        for listener in [each for each in self._listeners if each.owner in gone]:
            listener.end()
        for call in [each for each in self._running if each.principal.key in gone]:
            call.stop(End.STOPPED)

    async def _end_of_the_shut_out(self) -> None:
        for listener in list(self._listeners):
            if await self._is_shut_out(listener):
                listener.end()

    async def _is_shut_out(self, listener: Listener) -> bool:
        """Whether the server of a stream demands what its client does not have."""
        catalog = self._catalogs.by_slug.get(listener.server)
        if catalog is None or not catalog.server.demands:
            return False
        slug, demands = catalog.server.slug, catalog.demands
        rights = await self._rights.of(listener.principal, slug, demands)
        return not rights.meet(catalog.server.demands)

    # -- servers ------------------------------------------------------------------

    def ways(self) -> dict[str, tuple[str, ...]]:
        """Return by which ways each server lets in."""
        catalogs = self._catalogs.by_slug
        return {slug: each.server.access for slug, each in catalogs.items()}

    def where_others_come_in(self, before: Mapping[str, tuple[str, ...]]) -> None:
        """End the streams of servers that let in by other ways: who may, returns."""
        now = self.ways()
        for listener in self._listeners:
            slug = listener.server
            if slug in before and now.get(slug, before[slug]) != before[slug]:
                listener.end()

    def where_stopped(self) -> None:
        """End what is open at servers that are stopped, and cancel what is to end."""
        stopped, halted = self._catalogs.stopped, Counter[int]()
        for listener in self._listeners:
            if listener.server in stopped and not listener.lasts:
                listener.end(retry_ms=1_000 * back_s())
        for exchange in self._running:
            server, entry = exchange.catalog.server, exchange.entry
            halt = next(self._catalogs.halts(server, entry), None)
            if halt is not None:
                exchange.stop(End.STOPPED)
                halted[halt.pk] += 1
            elif exchange.queued and self._is_off(exchange):
                # What runs may finish, and this does not run yet.
                exchange.stop(End.STOPPED)
        for pk, calls in halted.items():
            self._spawn(writer.run(stops.count_cancelled, pk, calls))

    def _is_off(self, exchange: Exchange) -> bool:
        """Whether a request that came now would be refused."""
        catalog = self._catalogs.by_slug.get(exchange.catalog.server.slug)
        return catalog is None or (
            exchange.entry is not None and catalog.has_switched_off(exchange.entry)
        )


def back_s() -> int:
    """Return after how many seconds to look again: not all clients at once."""
    return random.randint(*BACK_S)  # noqa: S311 - no secret
