"""The endpoint's place in a site: `path("", include("mcp_app.urls"))`.

An ASGI application with the endpoint in front of it serves these paths before Django
does; elsewhere they are a view, which a site's middleware surrounds.
"""

from __future__ import annotations

from django.urls import path

from mcp_app.interface.server import PARTS
from mcp_app.transports.http.view import endpoint

app_name = "mcp_app"

_PARTS = [(part, end) for part in sorted(PARTS) for end in ("", "/")]

urlpatterns = [
    path("mcp", endpoint, name="endpoint"),
    path("mcp/", endpoint),
    *(path(f"mcp/{part}{end}", endpoint, {"part": part}) for part, end in _PARTS),
    path("mcp/<slug:slug>", endpoint, name="server"),
    path("mcp/<slug:slug>/", endpoint),
    *(
        path(f"mcp/<slug:slug>/{part}{end}", endpoint, {"part": part})
        for part, end in _PARTS
    ),
]
