"""Keeps the caller of a request for the next one with the same credential.

A caller is looked up again when this process hears of any change, and 30 seconds after
its token or its rights were read.  It is kept by a digest, so that no credential stays
in memory longer than its request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2s
from typing import TYPE_CHECKING, Final

from mcp_app.auth import principals
from mcp_app.auth.token_cache import TokenEntry, token_cache
from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.principal import NOTHING, Principal, Rights
from mcp_app.protocol.headers import Headers
from mcp_app.protocol.revisions import LATEST
from mcp_app.protocol.tasks import TaskRecord
from mcp_app.server.finding import find_match
from mcp_app.server.request import Request
from mcp_app.server.run import Run
from mcp_app.server.tasks import sees_task
from mcp_app.streams.listeners import Listener

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process

MOST: Final = 10_000
"""Callers that are kept; if there are more, all are forgotten."""

_ALWAYS: Final = float("inf")


@dataclass(slots=True, eq=False)
class CachedCaller:
    """A principal with its rights at one server."""

    catalog: Catalog
    principal: Principal
    rights: Rights
    until: float
    """When it must be looked up again (monotonic)."""
    token: TokenEntry | None


class Callers:
    """The callers of a process; used on the loop only."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._generation = process.generation
        self._callers: dict[tuple[str, bytes], CachedCaller] = {}

    def __len__(self) -> int:
        return len(self._callers)

    def at(
        self, slug: str, raw: Mapping[bytes, bytes], now: float
    ) -> CachedCaller | None:
        """Return the caller that was kept for a request; None if there is none.

        `raw` has the headers of the request, each name once.
        """
        process = self._process
        catalog = process.catalogs.by_slug.get(slug)
        if catalog is None:
            return None
        digest = b""
        if not catalog.public:
            # BLAKE2s is the quickest strong digest of a text as short as a token.
            digest = blake2s(raw.get(b"authorization", b"")).digest()
        if self._generation != process.generation:
            self._callers.clear()
            self._generation = process.generation
        key = slug, digest
        caller = self._callers.get(key)
        if caller is None or caller.catalog is not catalog or now >= caller.until:
            return self._take_from_caches(key, catalog, raw)
        if caller.token is not None:
            if caller.token.ends is not None and caller.token.refusal_at(slug):
                return None
            token_cache.note_token_use(caller.token)
        return caller

    def _take_from_caches(
        self, cache_key: tuple[str, bytes], catalog: Catalog, raw: Mapping[bytes, bytes]
    ) -> CachedCaller | None:
        slug, _ = cache_key
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
        if len(self._callers) >= MOST:
            self._callers.clear()
        caller = CachedCaller(catalog, principal, rights, until, token)
        self._callers[cache_key] = caller
        return caller


async def may_read_resource(process: Process, listener: Listener, uri: str) -> bool:
    """Whether a stream's client may read a resource now."""
    catalog = process.catalogs.by_slug.get(listener.server)
    if catalog is None or not catalog.restricted:
        return True
    request = await _reading_request(process, listener, catalog)
    return request is not None and await find_match(Run(request), uri) is not None


async def may_read_task(
    process: Process, listener: Listener, record: TaskRecord
) -> bool:
    """Whether a stream's client may read one of its tasks now."""
    catalog = process.catalogs.by_slug.get(listener.server)
    if catalog is None:
        return False
    request = await _reading_request(process, listener, catalog)
    return request is not None and sees_task(request, record)


async def _reading_request(
    process: Process, listener: Listener, catalog: Catalog
) -> Request | None:
    """Return a request in which a stream's client may read; None without access."""
    slug, principal = listener.server, listener.principal
    rights = await process.rights.find(principal, slug, catalog.demands)
    if rights.gone or not rights.meets_demands(catalog.server.demands):
        return None
    return Request(
        process.adapters,
        catalog,
        principal,
        rights,
        revision=LATEST,
        id=0,
        method="resources/read",
        params={},
        meta={},
    )
