"""The endpoint, the admin, and where people and programs sign in."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LoginView
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("account/login/", LoginView.as_view(), name="login"),
    path("account/tokens/", include("mcp_app.account_urls")),
    path("", include("mcp_app.urls")),
    path("", include("mcp_app.oauth_urls")),
    path("", include("mcp_app.discovery_urls")),
]
