"""The endpoint's place in a site: `path("", include("mcp_app.urls"))`.

The ASGI application serves these paths before Django does; a request that reaches
the view came without it.
"""

from __future__ import annotations

from django.urls import path

from mcp_app.transports.view import unwrapped

app_name = "mcp_app"

urlpatterns = [
    path("mcp", unwrapped, name="endpoint"),
    path("mcp/", unwrapped),
    path("mcp/<slug:slug>", unwrapped, name="server"),
    path("mcp/<slug:slug>/", unwrapped),
]
