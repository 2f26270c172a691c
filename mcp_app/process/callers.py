"""Who asks, kept for the next request with the same credential.

A caller is asked for again when anything changes that this process was told of, and
30 seconds after its token or its rights were read.  It is kept by a digest, so that no
credential stays in memory longer than its request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2s
from typing import Final, Protocol

from mcp_app.auth import principals
from mcp_app.auth.permissions import RightsCache
from mcp_app.auth.token_cache import TokenEntry, token_cache
from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.principal import NOTHING, Principal, Rights
from mcp_app.process.loading import Catalogs
from mcp_app.protocol.headers import Headers
from mcp_app.protocol.revisions import LATEST
from mcp_app.protocol.tasks import TaskRecord
from mcp_app.server.exchange import Adapters, Exchange, NoWayBack
from mcp_app.server.finding import find_match
from mcp_app.server.tasks import sees_task
from mcp_app.streams.listeners import Listener

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
