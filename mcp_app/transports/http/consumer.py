"""The endpoint as a Channels consumer."""

from __future__ import annotations

from typing import Any

from channels.consumer import AsyncConsumer

from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.transports.addresses import endpoint
from mcp_app.transports.asgi_types import Receive, Scope, Send


class MCPConsumer(AsyncConsumer):
    """Serves the server that the route's `slug` names, at the `part` of its address.

    Its own `__call__` replaces Channels' dispatch loop, which hops to a thread on
    every message and passes on no disconnect while a request is handled.
    """

    endpoint = endpoint

    async def __call__(  # type: ignore[override]
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        route: dict[str, Any] = scope.get("url_route", {}).get("kwargs", {})
        slug = route.get("slug") or DEFAULT_SLUG
        part = route.get("part") or ""
        await self.endpoint(scope, receive, send, slug=slug, part=part)
