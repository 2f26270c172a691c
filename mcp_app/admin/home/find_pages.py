"""The page that finds something, and leads to it."""

from __future__ import annotations

from typing import TypeVar

from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from mcp_app.admin.page.concurrency import SettledAdmin

Row = TypeVar("Row", bound=models.Model)


class FindPages(SettledAdmin[Row]):
    """Finds only what the user may view elsewhere in the admin."""

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("find/", wrap(self.find_view), name="mcp_app_server_find"),
            *super().get_urls(),
        ]

    def find_view(self, request: HttpRequest) -> HttpResponse:
        """Find what the query string names."""
        if not request.user.has_module_perms("mcp_app"):
            raise PermissionDenied
        # Import here: processes that serve clients load the admin, too.
        from mcp_app.admin.home import find  # noqa: PLC0415

        return find.find_response(request, self)
