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
from mcp_app.auth.token_cache import token_cache
from mcp_app.auth.token_entries import TokenEntry
from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.principal import Principal
from mcp_app.interface.rights import NOTHING, Rights
from mcp_app.process.loading import Catalogs
from mcp_app.protocol.headers import Headers

MOST: Final = 10_000
"""Callers that are kept."""

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


class Parts(Protocol):
    """The parts of a process that know who asks."""

    generation: int
    catalogs: Catalogs
    rights: RightsCache


class Callers:
    """The callers of a process; used on the loop only."""

    def __init__(self, process: Parts) -> None:
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
        digest = b"" if catalog.public else _digest(raw.get(b"authorization"))
        if self._generation != process.generation:
            self._known.clear()
            self._generation = process.generation
        key = slug, digest
        caller = self._known.get(key)
        if caller is None or caller.catalog is not catalog or now >= caller.until:
            caller = self._found(slug, catalog, raw)
            if caller is None:
                return None
            self._keep(key, caller)
        elif caller.token is not None:
            if caller.token.ends is not None and caller.token.refusal_at(slug):
                return None
            token_cache.used(caller.token)
        return caller

    def _keep(self, key: tuple[str, bytes], caller: Caller) -> None:
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[key] = caller

    def _found(
        self, slug: str, catalog: Catalog, raw: Mapping[bytes, bytes]
    ) -> Caller | None:
        """Return the caller, as far as the caches know it."""
        principal, rights, until = Principal.ANONYMOUS, NOTHING, _ALWAYS
        token: TokenEntry | None = None
        if not catalog.public:
            found = principals.cached_token(catalog.server, Headers(raw.items()))
            if found is None:
                return None
            token, until = found
            principal = token.principal
        if catalog.restricted:
            key = principal, slug, catalog.demands
            cached = self._process.rights.cached(*key)
            if cached is None or not cached.meet(catalog.server.demands):
                return None
            rights, until = cached, min(until, self._process.rights.good_until(*key))
        return Caller(catalog, principal, rights, until, token)


def _digest(credential: bytes | None) -> bytes:
    # Of the strong ones, it is the quickest for an access token.
    return blake2s(credential or b"").digest()
