"""Routes for a `URLRouter` of Channels."""

from __future__ import annotations

from django.urls import re_path

from mcp_app.interface.server import PARTS
from mcp_app.transports.http.consumer import MCPConsumer

_PART = "|".join(sorted(PARTS))

http_urlpatterns = [
    re_path(
        # The lookahead keeps the name of a part from being read as a slug.
        rf"^mcp(?:/(?P<slug>(?!(?:{_PART})/?$)[-\w]+))?(?:/(?P<part>{_PART}))?/?$",
        MCPConsumer.as_asgi(),  # type: ignore[arg-type]
    ),
]
