"""Whether a stream's client may still read what it watches."""

from __future__ import annotations

from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.principal import Principal
from mcp_app.interface.rights import Rights
from mcp_app.protocol.revisions import LATEST
from mcp_app.server.exchange import Adapters, Exchange, NoWayBack
from mcp_app.server.handlers import resources


async def hears(
    adapters: Adapters,
    rights: Rights,
    catalog: Catalog,
    principal: Principal,
    uri: str,
) -> bool:
    """Whether a principal with these rights may read a resource, as things are now."""
    if rights.gone or not rights.meet(catalog.server.demands):
        return False
    asked = Exchange(
        adapters=adapters,
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
    return await resources.visible(asked, uri) is not None
