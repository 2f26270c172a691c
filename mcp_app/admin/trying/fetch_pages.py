"""The pages that fetch an answer of another site for a form that nobody has saved.

What runs the call is imported by the first of them: processes that serve clients load
the admin, too.
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from mcp_app.admin.page.header import page_url
from mcp_app.admin.publishing.pages import PublishedAdmin
from mcp_app.admin.trying.tabs import outside_transactions
from mcp_app.models import DefinitionRow

Row = TypeVar("Row", bound=DefinitionRow)


class FetchPages(PublishedAdmin[Row]):
    """Shows a form again with what the site answers; saves nothing."""

    def get_urls(self) -> list[URLPattern]:
        view = outside_transactions(self.admin_site.admin_view(self.fetch_view))
        name = f"mcp_app_{self.opts.model_name}_fetch"
        return [
            path("fetch/", view, name=f"{name}_new"),
            path("<path:object_id>/fetch/", view, name=name),
            *super().get_urls(),
        ]

    def get_form(
        self,
        request: HttpRequest,
        obj: Row | None = None,
        change: bool = False,
        **options: Any,
    ) -> type[ModelForm[Row]]:
        form = super().get_form(request, obj, change, **options)
        form.fetched = vars(request).get("fetched")  # type: ignore[attr-defined]
        return form

    def fetch_view(
        self, request: HttpRequest, object_id: str | None = None
    ) -> HttpResponse:
        """Call the site as the form says, by the code of *Try it*.

        The request has no transaction of its own: its locks would hold up the call.
        """
        row = None if object_id is None else self._find_row(request, object_id)
        url = reverse(f"admin:mcp_app_{self.opts.model_name}_add")
        url = url if row is None else page_url(row, "change")
        if request.method != "POST":
            return HttpResponseRedirect(url)
        may = (
            self.has_add_permission(request)
            if row is None
            else self.has_change_permission(request, row)
        )
        if not may:
            raise PermissionDenied
        for right in ("try", "behind"):
            self._require_right(request, right)
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
