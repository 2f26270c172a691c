"""The page *Check* of a server: through the proxy by the browser, and in this process.

The server never calls itself: a script sends the probes, and what it has seen is judged
here as `mcp_check` judges it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from mcp_app.admin.operations.live import MEDIA
from mcp_app.admin.page.concurrency import has_right, whom_to_ask
from mcp_app.admin.page.deleted_rows import redirect_missing_row
from mcp_app.admin.publishing.pages import PublishedAdmin
from mcp_app.models import Server

# -- checking --------------------------------------------------------------------------

Row = TypeVar("Row", bound=Server)


class CheckPages(PublishedAdmin[Row]):
    """The page that looks at a server from outside and from inside."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.check_view)
        return [
            path("<path:object_id>/check/", view, name="mcp_app_server_check"),
            *super().get_urls(),
        ]

    @csrf_exempt
    @redirect_missing_row
    def check_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the page; judge what its script has seen; look here on the button.

        What is judged changes nothing, and a proxy that loses the Host makes Django
        refuse every form: so it needs no token against forgery.
        """
        # Nothing of the workbench is imported before it is used.
        from mcp_app.admin.servers import check_page  # noqa: PLC0415

        row = self._find_row(request, object_id)
        if request.method == "POST" and request.content_type == "application/json":
            return check_page.judged_fragment(request, row)
        return self._check_page(request, row)

    @method_decorator(csrf_protect)
    def _check_page(self, request: HttpRequest, row: Row) -> HttpResponse:
        from mcp_app.admin.servers import check_page  # noqa: PLC0415

        context: dict[str, Any] = {
            **check_page.probe_context(request, row),
            "media": MEDIA,
            "why_not_here": whom_to_ask(request, "stop"),
        }
        if request.method == "POST":
            if not has_right(request, "stop"):
                raise PermissionDenied
            context["here"] = check_page.here_lines(row)
        title = _("Check")
        response = self._render_page(request, row, "check", title, context, "check")
        response.headers["Cache-Control"] = "no-store"
        return response
