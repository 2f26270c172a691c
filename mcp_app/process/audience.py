"""Whether the client of a stream may still read the resource that it subscribed to."""

from __future__ import annotations

from collections.abc import Callable

from mcp_app.auth.permissions import RightsCache
from mcp_app.process.loading import Catalogs
from mcp_app.protocol.revisions import LATEST
from mcp_app.server.exchange import Adapters, Exchange, NoWayBack
from mcp_app.server.handlers import resources
from mcp_app.streams.listeners import Listener


class Audience:
    """The clients that may be told of a resource; used on the loop only."""

    def __init__(
        self,
        catalogs: Catalogs,
        rights: RightsCache,
        adapters: Callable[[], Adapters],
    ) -> None:
        self._catalogs = catalogs
        self._rights = rights
        self._adapters = adapters

    async def hears(self, listener: Listener, uri: str) -> bool:
        """Whether a stream's client may read a resource, as things are now."""
        slug, principal = listener.server, listener.principal
        catalog = self._catalogs.by_slug.get(slug)
        if catalog is None or not catalog.restricted:
            return True
        rights = await self._rights.find(principal, slug, catalog.demands)
        if rights.gone or not rights.meet(catalog.server.demands):
            return False
        reading = Exchange(
            adapters=self._adapters(),
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
        return await resources.visible(reading, uri) is not None
