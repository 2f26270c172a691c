"""Routes for a `URLRouter` of Channels."""

from __future__ import annotations

from django.urls import re_path

from mcp_app.transports.http.consumer import MCPConsumer

http_urlpatterns = [
    re_path(
        r"^mcp(?:/(?P<slug>(?!(?:sse|messages)/?$)[-\w]+))?(?:/(?P<part>sse|messages))?/?$",
        MCPConsumer.as_asgi(),  # type: ignore[arg-type]
    ),
]
