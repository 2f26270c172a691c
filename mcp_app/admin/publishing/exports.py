"""The action that exports the chosen rows as a bundle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar, cast

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy

from mcp_app.admin.page.rights import may
from mcp_app.admin.publishing.pages import PublishedAdmin
from mcp_app.models import PublishedRow, Server
from mcp_app.publishing import bundle
from mcp_app.publishing.bundle import BundleRefused
from mcp_app.site_time import local_date

Row = TypeVar("Row", bound=PublishedRow)

RIGHT: Final = "bundle"


class ExportAction(PublishedAdmin[Row]):
    """The action that exports the chosen rows as a bundle."""

    @admin.action(description=gettext_lazy("Export as a bundle"), permissions=[RIGHT])
    def export_chosen(
        self, request: HttpRequest, queryset: QuerySet[Row]
    ) -> HttpResponse | None:
        """Return the bundle; a server brings along the definitions that it offers."""
        chosen = self.model.rows().filter(pk__in=queryset.values("pk"))
        rows: Iterable[PublishedRow] = chosen.select_related("published")
        if self.model is Server:
            rows = bundle.with_definitions(cast("Iterable[Server]", rows))
        try:
            written = bundle.export(rows)
        except BundleRefused as refused:
            for problem in refused.problems:
                self.message_user(request, problem, messages.ERROR)
            return None
        day = local_date().isoformat()
        return HttpResponse(
            written,
            content_type="application/json",
            headers={
                "Content-Disposition": f'attachment; filename="mcp-bundle-{day}.json"',
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
            },
        )

    def has_bundle_permission(self, request: HttpRequest) -> bool:
        return may(request, RIGHT)
