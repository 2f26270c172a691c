"""The tabs *Try it* of definitions, and *What clients see* of servers.

Processes that serve clients load the admin, too: what runs a trial is imported by the
first page that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any, TypeVar

from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
)
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.debug import SafeExceptionReporterFilter
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.debug import sensitive_post_parameters

from mcp_app.admin.page.concurrency import has_right
from mcp_app.admin.page.deleted_rows import redirect_missing_row
from mcp_app.admin.publishing.pages import PublishedAdmin
from mcp_app.models import DefinitionRow, Server

Definition = TypeVar("Definition", bound=DefinitionRow)
Listing = TypeVar("Listing", bound=Server)
View = TypeVar("View", bound=Callable[..., Any])


def outside_transactions(view: View) -> View:
    """Exempt a view from `ATOMIC_REQUESTS` of every database.

    What it writes first must be there whatever becomes of the call, and its locks must
    not hold up the call.
    """
    for alias in connections:
        view = transaction.non_atomic_requests(using=alias)(view)
    return view


class NoVariables(SafeExceptionReporterFilter):
    """Hides on error pages what staff and models have said, with DEBUG, too."""

    def is_active(self, request: HttpRequest | None) -> bool:
        return True

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: FrameType
    ) -> ItemsView[str, Any]:
        """Show no variable: each function of the page has some of it."""
        return dict[str, Any]().items()


class TryPages(PublishedAdmin[Definition]):
    """The page that tries a definition."""

    def get_urls(self) -> list[URLPattern]:
        view = outside_transactions(self.admin_site.admin_view(self.try_view))
        name = f"mcp_app_{self.opts.model_name}_try"
        return [path("<path:object_id>/try/", view, name=name), *super().get_urls()]

    @csrf_exempt
    @method_decorator(sensitive_post_parameters())
    @redirect_missing_row
    def try_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Show the form; on POST, try it and show what a client gets.

        The request has no transaction of its own: its locks would hold up the call.
        The token of the form is looked for in here, where a form that is too large to
        have one can be answered.
        """
        request.exception_reporter_filter = NoVariables()
        try:
            return self._try_definition(request, object_id)
        except (RequestDataTooBig, TooManyFieldsSent) as error:
            return self._too_large(request, object_id, error)

    def _too_large(
        self, request: HttpRequest, object_id: str, error: SuspiciousOperation
    ) -> HttpResponse:
        """Show an empty form with a sentence; nothing can be read of what was sent."""
        from mcp_app.admin.trying import pages  # noqa: PLC0415

        row = self._find_row(request, object_id, whole=True)
        self._require_right(request, "try")
        page = pages.TryPage(request, row, None)
        page.refuse_run(pages.too_large(error))
        response = self._render_try_page(request, row, page.page_context())
        response.status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return response

    def publish_boxes(self, request: HttpRequest, row: Definition) -> dict[str, Any]:
        """Return what came of the examples, for who may try it."""
        from mcp_app.admin.trying import example_runs  # noqa: PLC0415

        may_try = has_right(request, "try")
        return {"examples": example_runs.run_examples(request, row) if may_try else []}

    @method_decorator(csrf_protect)
    def _try_definition(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        from mcp_app.admin.trying import pages  # noqa: PLC0415

        row = self._find_row(request, object_id, whole=True)
        data = request.POST if request.method == "POST" else None
        page = pages.TryPage(request, row, data)
        if data is not None:
            self._require_right(request, "try")
            if {"keep", "remove"} & data.keys() and not self._may_keep(request, row):
                raise PermissionDenied
            lines = page.run(partial(self.log_change, request, row))
            if lines is not None:
                return lines
        return self._render_try_page(request, row, page.page_context())

    def _render_try_page(
        self, request: HttpRequest, row: Definition, context: dict[str, Any]
    ) -> HttpResponse:
        context["may_keep"] = context["may_try"] and self._may_keep(request, row)
        response = self._render_page(request, row, "try", _("Try it"), context, "try")
        response["Cache-Control"] = "no-store"
        return response

    def _may_keep(self, request: HttpRequest, row: Definition) -> bool:
        return self.has_change_permission(request, row)


class ListsPages(PublishedAdmin[Listing]):
    """The page with the lists of a server."""

    def get_urls(self) -> list[URLPattern]:
        view = outside_transactions(self.admin_site.admin_view(self.lists_view))
        name = f"mcp_app_{self.opts.model_name}_seen"
        return [path("<path:object_id>/seen/", view, name=name), *super().get_urls()]

    @redirect_missing_row
    def lists_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what a person sees: `?who=` and `?user=` say which."""
        from mcp_app.admin.trying import lists_page  # noqa: PLC0415

        row = self._find_row(request, object_id)
        values = lists_page.lists_context(request, row)
        return self._render_page(
            request, row, "seen", _("What clients see"), values, "seen"
        )
