"""Where programs find a site's servers: `path("", include("mcp_app.discovery_urls"))`.

It belongs at the root: the address is that of a whole domain.
"""

from __future__ import annotations

from django.urls import path

from mcp_app.interface.server import CATALOG_PART
from mcp_app.transports.http.view import endpoint

urlpatterns = [path(".well-known/ai-catalog.json", endpoint, {"part": CATALOG_PART})]
