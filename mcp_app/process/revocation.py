"""Closes open streams and calls whose token, permission, server or tool is gone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from django.db import Error as DatabaseError

from mcp_app.auth.permissions import RightsCache
from mcp_app.auth.token_cache import token_cache
from mcp_app.catalog.stops import retry_after_s
from mcp_app.interface.principal import Principal
from mcp_app.invalidation import workers
from mcp_app.pools.database import writer
from mcp_app.process.loading import Catalogs
from mcp_app.process.running import RunningCalls
from mcp_app.protocol.errors import Unavailable
from mcp_app.server.run import End
from mcp_app.streams.listeners import Listeners

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

    def start_check(self) -> None:
        """If a check is due, close streams and calls without token or permission."""
        if token_cache.may_have_ended and (
            self._looking is None or self._looking.done()
        ):
            self._looking = self._spawn(self._check_tokens_and_rights())

    async def _check_tokens_and_rights(self) -> None:
        try:
            await self._end_without_token()
        except (DatabaseError, Unavailable):
            # The next tick tries again.
            return
        try:
            for listener in list(self._listeners):
                if await self._is_shut_out(listener.server, listener.principal):
                    listener.end()
            # Check the runs of tasks only: other calls are over before long.
            for call in [each for each in self._running if each.request.task]:
                slug = call.request.catalog.server.slug
                tool = call.request.params["name"]
                if await self._is_shut_out(slug, call.principal, tool):
                    call.stop(End.STOPPED)
        except (DatabaseError, Unavailable):
            token_cache.mark_unsure()

    async def _end_without_token(self) -> None:
        owners = {each.owner for each in self._listeners}
        owners |= {each.principal.key for each in self._running}
        keys = await token_cache.ended_principals(owners)
        for listener in [each for each in self._listeners if each.owner in keys]:
            listener.end()
        for call in [each for each in self._running if each.principal.key in keys]:
            call.stop(End.STOPPED)

    async def _is_shut_out(
        self, slug: str, principal: Principal, tool: str = ""
    ) -> bool:
        """Whether a principal has lost access to a server, or to one of its tools."""
        catalog = self._catalogs.by_slug.get(slug)
        if catalog is None:
            # Without its server a call has lost its tool; a stream may stay open.
            return bool(tool)
        needed, entry = [catalog.server.demands], catalog.tools.get(tool)
        if entry is not None:
            needed.append(entry.definition.demands)
        if not any(needed) and not tool:
            return False
        rights = await self._rights.find(principal, slug, catalog.demands)
        return rights.gone or not all(map(rights.meets_demands, needed))

    # -- servers ------------------------------------------------------------------

    def access_by_server(self) -> dict[str, tuple[str, ...]]:
        catalogs = self._catalogs.by_slug
        return {slug: each.server.access for slug, each in catalogs.items()}

    def close_after_access_change(self, before: Mapping[str, tuple[str, ...]]) -> None:
        """End the streams of servers whose access rules are not as `before`."""
        now = self.access_by_server()
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
        for run in self._running:
            server, entry = run.request.catalog.server, run.entry
            halt = next(self._catalogs.cancelling_stops(server, entry), None)
            if halt is not None:
                run.stop(End.STOPPED)
                halted[halt.pk] += 1
            elif run.is_queued:
                catalog = self._catalogs.by_slug.get(server.slug)
                if catalog is None or (entry and catalog.has_switched_off(entry)):
                    # The stop lets running calls finish; this one is still queued.
                    run.stop(End.STOPPED)
        for pk, calls in halted.items():
            self._spawn(writer.run(workers.count_cancelled, pk, calls))
