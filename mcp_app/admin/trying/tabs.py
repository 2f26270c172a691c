"""The tabs *Try it* and the button *Fetch* of definitions, and *What clients see*.

Processes that serve clients load the admin, too. So the first
page that runs a trial imports the code for it.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any, TypeVar

from django.conf import settings
from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
)
from django.db import connections, transaction
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.debug import SafeExceptionReporterFilter
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.debug import sensitive_post_parameters

from mcp_app.admin.page.deleted_rows import redirect_missing_row
from mcp_app.admin.page.header import page_url
from mcp_app.admin.page.rights import has_right
from mcp_app.admin.publishing.pages import PublishedAdmin
from mcp_app.models import DefinitionRow, Server
from mcp_app.publishing.rights import require_right

Definition = TypeVar("Definition", bound=DefinitionRow)
Listing = TypeVar("Listing", bound=Server)
View = TypeVar("View", bound=Callable[..., Any])


def outside_transactions(view: View) -> View:
    """Exempt a view from `ATOMIC_REQUESTS` of every database.

    What the view writes first must stay, even if the call fails. Its locks must not
    block the call.
    """
    for alias in connections:
        view = transaction.non_atomic_requests(using=alias)(view)
    return view


class NoVariables(SafeExceptionReporterFilter):
    """Hides on error pages what staff and models wrote, even with DEBUG."""

    def is_active(self, request: HttpRequest | None) -> bool:
        return True

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: FrameType
    ) -> ItemsView[str, Any]:
        """Show no variable: any function of the page may hold such texts."""
        return dict[str, Any]().items()


class TryPages(PublishedAdmin[Definition]):
    """The page that tries a definition, and the form again with a fetched answer."""

    def get_urls(self) -> list[URLPattern]:
        tries, fetches, apps = (
            outside_transactions(self.admin_site.admin_view(each))
            for each in (self.try_view, self.fetch_view, self.app_view)
        )
        name = f"mcp_app_{self.opts.model_name}"
        return [
            path("<path:object_id>/try/", tries, name=f"{name}_try"),
            path("<path:object_id>/try/preview/", apps, name=f"{name}_app"),
            path("fetch/", fetches, name=f"{name}_fetch_new"),
            path("<path:object_id>/fetch/", fetches, name=f"{name}_fetch"),
            *super().get_urls(),
        ]

    @csrf_exempt
    @method_decorator(sensitive_post_parameters())
    @redirect_missing_row
    def try_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Show the form; on POST, make the call and show what a client gets.

        The request has no transaction of its own: its locks would block the call. The
        CSRF token is checked inside, so that a form too large to read still gets an
        answer.
        """
        request.exception_reporter_filter = NoVariables()
        try:
            return self._try_definition(request, object_id)
        except (RequestDataTooBig, TooManyFieldsSent) as error:
            return self._too_large(request, object_id, error)

    def _too_large(
        self, request: HttpRequest, object_id: str, error: SuspiciousOperation
    ) -> HttpResponse:
        """Show an empty form with an error: the data that was sent cannot be read."""
        from mcp_app.admin.trying import pages  # noqa: PLC0415

        row = self._find_row(request, object_id, whole=True)
        require_right(request.user, "try")
        page = pages.TryPage(request, row, None)
        page.problem = _(
            "This site reads forms of at most %(size)s, so nothing was run."
        ) % {"size": filesizeformat(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)}
        if isinstance(error, TooManyFieldsSent):
            max_fields = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
            message = _("The form has more than %(most)s fields, so nothing was run.")
            page.problem = message % {"most": max_fields}
        response = self._render_try_page(request, row, page.page_context())
        response.status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return response

    def publish_boxes(self, request: HttpRequest, row: Definition) -> dict[str, Any]:
        """Return the results of the examples, if the user may try the definition."""
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
            require_right(request.user, "try")
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

    @redirect_missing_row
    def app_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the page of a tool for the frame; `?server=` names the server."""
        from mcp_app.admin.trying import pages  # noqa: PLC0415

        row = self._find_row(request, object_id, whole=True)
        require_right(request.user, "try")
        data = request.GET.copy()
        # Only a trial may read as another user: the history of the row logs that.
        data.pop("who", None)
        return pages.TryPage(request, row, data).read_app()

    # -- fetch ---------------------------------------------------------------------

    def get_form(
        self,
        request: HttpRequest,
        obj: Definition | None = None,
        change: bool = False,
        **options: Any,
    ) -> type[ModelForm[Definition]]:
        form = super().get_form(request, obj, change, **options)
        # `fetch_view` puts the answer of the site into the request.
        form.fetched = vars(request).get("fetched")  # type: ignore[attr-defined]
        return form

    def fetch_view(
        self, request: HttpRequest, object_id: str | None = None
    ) -> HttpResponse:
        """Call the site as the form says, with the code of *Try it*.

        The request has no transaction of its own: its locks would block the call.
        """
        row = None if object_id is None else self._find_row(request, object_id)
        url = reverse(f"admin:mcp_app_{self.opts.model_name}_add")
        url = url if row is None else page_url(row, "change")
        if request.method != "POST":
            return HttpResponseRedirect(url)
        if row is None and not self.has_add_permission(request):
            raise PermissionDenied
        if row is not None and not self.has_change_permission(request, row):
            raise PermissionDenied
        for right in ("try", "behind"):
            require_right(request.user, right)
        form = self.get_form(request, row, change=row is not None)(
            request.POST, request.FILES, instance=row
        )
        if not hasattr(form, "call_form"):
            raise Http404
        from mcp_app.admin.trying.fetching import fetch_answer  # noqa: PLC0415

        form.full_clean()
        if not form.errors.get("config"):
            vars(request)["fetched"] = fetch_answer(request, form)
        response = self.changeform_view(request, object_id, url)
        response["Cache-Control"] = "no-store"
        return response


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
