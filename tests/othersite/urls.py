"""The paths of the other site."""

from __future__ import annotations

from django.contrib.admin import AdminSite
from django.urls import include, path

import mcp_app.admin

site = AdminSite("backoffice")
mcp_app.admin.register(site)

urlpatterns = [
    path("backoffice/", site.urls),
    path("tokens/", include("mcp_app.account_urls")),
    path("", include("mcp_app.urls")),
    path("", include("mcp_app.oauth_urls")),
]
