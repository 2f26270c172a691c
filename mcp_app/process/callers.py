"""Who asks, kept for the next request with the same credential.

A caller is asked for again when anything changes that this process was told of, and
30 seconds after its token or its rights were read.  It is kept by a digest, so that no
credential stays in memory longer than its request.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2s
from typing import Final, Protocol, TypeAlias

from django.db import Error as DatabaseError

from mcp_app.auth import principals
from mcp_app.auth.permissions import RightsCache
from mcp_app.auth.token_cache import TokenEntry, token_cache
from mcp_app.catalog.snapshot import Catalog
from mcp_app.catalog.stops import retry_after_s
from mcp_app.interface.principal import NOTHING, Principal, Rights
from mcp_app.invalidation import workers
from mcp_app.pools.database import writer
from mcp_app.process.loading import Catalogs
from mcp_app.process.running import RunningCalls
from mcp_app.protocol.errors import Unavailable
from mcp_app.protocol.headers import Headers
from mcp_app.protocol.revisions import LATEST
from mcp_app.protocol.tasks import TaskRecord
from mcp_app.server.exchange import Adapters, End, Exchange, NoWayBack
from mcp_app.server.finding import find_match
from mcp_app.server.tasks import sees_task
from mcp_app.streams.listeners import Listener, Listeners

MOST: Final = 10_000

_ALWAYS: Final = float("inf")


@dataclass(slots=True, eq=False)
class Caller:
    """A principal with its rights at one server."""

    catalog: Catalog
    principal: Principal
    rights: Rights
    until: float
    """When it has to be asked for again (monotonic)."""
    token: TokenEntry | None


class RecognisingProcess(Protocol):
    """The parts of a process that know who asks."""

    generation: int
    catalogs: Catalogs
    rights: RightsCache
    adapters: Adapters


class Callers:
    """The callers of a process; used on the loop only."""

    def __init__(self, process: RecognisingProcess) -> None:
        self._process = process
        self._generation = process.generation
        self._known: dict[tuple[str, bytes], Caller] = {}

    def __len__(self) -> int:
        return len(self._known)

    def at(self, slug: str, raw: Mapping[bytes, bytes], now: float) -> Caller | None:
        """Return who may use a server at once; None if that must be found out.

        `raw` has the headers of the request, each of which stands once.
        """
        process = self._process
        catalog = process.catalogs.by_slug.get(slug)
        if catalog is None:
            return None
        digest = b""
        if not catalog.public:
            # Of the strong digests, it is the quickest for an access token.
            digest = blake2s(raw.get(b"authorization", b"")).digest()
        if self._generation != process.generation:
            self._known.clear()
            self._generation = process.generation
        key = slug, digest
        caller = self._known.get(key)
        if caller is None or caller.catalog is not catalog or now >= caller.until:
            return self._take_from_caches(key, catalog, raw)
        if caller.token is not None:
            if caller.token.ends is not None and caller.token.refusal_at(slug):
                return None
            token_cache.note_token_use(caller.token)
        return caller

    def _take_from_caches(
        self, known_as: tuple[str, bytes], catalog: Catalog, raw: Mapping[bytes, bytes]
    ) -> Caller | None:
        slug, _ = known_as
        principal, rights, until = Principal.ANONYMOUS, NOTHING, _ALWAYS
        token: TokenEntry | None = None
        if not catalog.public:
            entry = principals.cached_token(catalog.server, Headers(raw.items()))
            if entry is None:
                return None
            token, until = entry
            principal = token.principal
        if catalog.restricted:
            key = principal, slug, catalog.demands
            cached = self._process.rights.cached_value(key)
            if cached is None or not cached.meets_demands(catalog.server.demands):
                return None
            rights, until = cached, min(until, self._process.rights.good_until(key))
        if len(self._known) >= MOST:
            self._known.clear()
        caller = Caller(catalog, principal, rights, until, token)
        self._known[known_as] = caller
        return caller


# -- revocation ------------------------------------------------------------------------
# Closes streams and calls whose token, permission, server or tool is gone.
#
# New requests are refused elsewhere; this module closes streams and calls that were
# already open.

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
        """Close what ended tokens or lost permissions had open, if a check is due."""
        if token_cache.may_have_ended and (
            self._looking is None or self._looking.done()
        ):
            self._looking = self._spawn(self._check_tokens_and_rights())

    async def _check_tokens_and_rights(self) -> None:
        try:
            await self._end_of_tokens()
        except (DatabaseError, Unavailable):
            # The next tick tries again.
            return
        try:
            for listener in list(self._listeners):
                if await self._is_shut_out(listener.server, listener.principal):
                    listener.end()
            # Other calls are over before long.
            for call in [each for each in self._running if each.task_run is not None]:
                slug, tool = call.catalog.server.slug, call.params["name"]
                if await self._is_shut_out(slug, call.principal, tool):
                    call.stop(End.STOPPED)
        except (DatabaseError, Unavailable):
            token_cache.mark_unsure()

    async def _end_of_tokens(self) -> None:
        owners = {each.owner for each in self._listeners}
        owners |= {each.principal.key for each in self._running}
        gone = await token_cache.ended_principals(owners)
        for listener in [each for each in self._listeners if each.owner in gone]:
            listener.end()
        for call in [each for each in self._running if each.principal.key in gone]:
            call.stop(End.STOPPED)

    async def _is_shut_out(
        self, slug: str, principal: Principal, tool: str = ""
    ) -> bool:
        """Whether somebody may not use a server, or one of its tools, any more."""
        catalog = self._catalogs.by_slug.get(slug)
        if catalog is None:
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
        for exchange in self._running:
            server, entry = exchange.catalog.server, exchange.entry
            halt = next(self._catalogs.cancelling_stops(server, entry), None)
            if halt is not None:
                exchange.stop(End.STOPPED)
                halted[halt.pk] += 1
            elif exchange.queued and self._would_be_refused(exchange):
                # The stop lets running calls finish, but this one is still queued.
                exchange.stop(End.STOPPED)
        for pk, calls in halted.items():
            self._spawn(writer.run(workers.count_cancelled, pk, calls))

    def _would_be_refused(self, exchange: Exchange) -> bool:
        catalog = self._catalogs.by_slug.get(exchange.catalog.server.slug)
        return catalog is None or (
            exchange.entry is not None and catalog.has_switched_off(exchange.entry)
        )


# -- audience --------------------------------------------------------------------------
# Whether the client of a stream may still read the resource that it subscribed to.


async def may_read_resource(
    process: RecognisingProcess, listener: Listener, uri: str
) -> bool:
    """Whether a stream's client may read a resource, as things are now."""
    slug, principal = listener.server, listener.principal
    catalog = process.catalogs.by_slug.get(slug)
    if catalog is None or not catalog.restricted:
        return True
    rights = await process.rights.find(principal, slug, catalog.demands)
    if rights.gone or not rights.meets_demands(catalog.server.demands):
        return False
    reading = _reading_exchange(process, catalog, principal, rights)
    return await find_match(reading, uri) is not None


async def may_read_task(
    process: RecognisingProcess, listener: Listener, record: TaskRecord
) -> bool:
    """Whether a stream's client may read one of its tasks, as things are now."""
    catalog = process.catalogs.by_slug.get(listener.server)
    if catalog is None:
        return False
    slug, principal = listener.server, listener.principal
    rights = await process.rights.find(principal, slug, catalog.demands)
    reading = _reading_exchange(process, catalog, principal, rights)
    return not rights.gone and sees_task(reading, record)


def _reading_exchange(
    process: RecognisingProcess, catalog: Catalog, principal: Principal, rights: Rights
) -> Exchange:
    return Exchange(
        adapters=process.adapters,
        catalog=catalog,
        revision=LATEST,
        principal=principal,
        rights=rights,
        request_id=0,
        method="resources/read",
        params={},
        meta={},
        outgoing=NoWayBack(),
    )
