"""Calls that no client makes now: the row of a task or a subscription asks for them."""

from __future__ import annotations

from typing import Any, Final, Protocol

from mcp_app.auth.permissions import RightsCache
from mcp_app.auth.token_cache import token_cache
from mcp_app.process.loading import Catalogs
from mcp_app.protocol.errors import InternalError
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.server.exchange import Adapters, Exchange, NoWayBack

LOST_ACCESS: Final = "The caller's access was taken away."


class AccessLost(InternalError):
    """The caller of a row may not call any more."""


class CallingProcess(Protocol):
    """The parts of a process that such calls need."""

    catalogs: Catalogs
    rights: RightsCache
    adapters: Adapters


async def make_exchange(
    process: CallingProcess, server: str, revision: str, **members: Any
) -> Exchange:
    """Return a call of a caller who was there before, with the rights that it has now.

    Raise `AccessLost` if it has none at this server.
    """
    principal = members["principal"]
    catalog = process.catalogs.find_catalog(server)
    if catalog is None:
        raise InternalError(f"There is no server {server!r} any more.")
    rights = await process.rights.find(principal, server, catalog.demands)
    gone = await token_cache.has_ended(principal.key)
    if gone or rights.gone or not rights.meets_demands(catalog.server.demands):
        raise AccessLost(LOST_ACCESS)
    return Exchange(
        **members,
        adapters=process.adapters,
        catalog=catalog,
        revision=REVISIONS[revision],
        rights=rights,
        outgoing=NoWayBack(),
        streams=False,
    )
