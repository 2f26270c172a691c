"""The paths of the project: a page that says what runs here, the admin, MCP."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import TemplateView

admin.site.site_title = admin.site.site_header = "MCP administration"

urlpatterns = [
    path("", TemplateView.as_view(template_name="home.html"), name="home"),
    path("admin/", admin.site.urls),
    path("", include("mcp_app.urls")),
]
