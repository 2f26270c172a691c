"""What can be done with many rows of a list at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.admin import comparison
from mcp_app.admin.comparison import Shown, served_label, shown
from mcp_app.admin.exports import ExportAction
from mcp_app.admin.frame import may
from mcp_app.admin.published import (
    author_of,
    note_of,
    number_of,
)
from mcp_app.catalog.registry import mcp
from mcp_app.models import DefinitionRow, PublishedRow
from mcp_app.publishing import publication
from mcp_app.publishing.overlays import reckon
from mcp_app.publishing.publication import Proposal, PublicationRefused

Row = TypeVar("Row", bound=PublishedRow)

MOST_AT_ONCE = 100
"""Rows that one page compares."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A row on the page that publishes many; `reason` says why it cannot be."""

    row: PublishedRow
    proposal: Proposal[Any]
    differences: Sequence[Shown]
    before_label: str
    reason: str


ACTIONS = [
    "publish_chosen",
    "unpublish_chosen",
    "stop_chosen",
    "start_chosen",
    "export_chosen",
]


class ListActions(ExportAction[Row]):
    """Publish, unpublish, stop, start and export what is chosen."""

    actions = ACTIONS

    @admin.action(
        description=gettext_lazy("Publish the chosen…"), permissions=["publish"]
    )
    def publish_chosen(
        self, request: HttpRequest, queryset: QuerySet[Row]
    ) -> HttpResponse | None:
        """Show all differences; once confirmed, publish all or nothing."""
        rows = list(
            self._plain(queryset).select_related("published")[: MOST_AT_ONCE + 1]
        )
        if len(rows) > MOST_AT_ONCE:
            said = _("At most %(most)d can be published at once.")
            self.message_user(request, said % {"most": MOST_AT_ONCE}, messages.ERROR)
            return None
        if "confirmed" in request.POST and self._publish_all(request, rows):
            return None
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": _("Publish the chosen"),
            "proposals": [
                self._offered(proposal)
                for proposal in publication.propose_all(rows, mcp)
            ],
            "after_label": _("Working copy"),
            "back_url": request.get_full_path(),
        }
        return TemplateResponse(request, "admin/mcp_app/publish_chosen.html", context)

    def _offered(self, proposal: Proposal[Any]) -> Offered:
        row = proposal.row
        reason = " ".join(each.message for each in proposal.judged.to_fix)
        if proposal.is_served_already:
            reason = _("Clients already see exactly this.")
        return Offered(
            row, proposal, shown(row, proposal.differences), served_label(row), reason
        )

    def _publish_all(self, request: HttpRequest, rows: Sequence[Row]) -> bool:
        """Publish the rows, and say so; say why not where one is refused."""
        row: Row | None = None
        count = 0
        try:
            with transaction.atomic():
                # Whoever locks several rows does it in this order.
                for row in sorted(rows, key=lambda each: each.pk):
                    version = publication.publish(
                        row,
                        mcp,
                        author=author_of(request),
                        note=note_of(request),
                        looked_at=request.POST.get(f"looked_at-{row.pk}", ""),
                        number=number_of(request, f"number-{row.pk}"),
                    )
                    if version.number == number_of(request, f"number-{row.pk}"):
                        # Clients saw it already as it is.
                        continue
                    count += 1
                    said = _("Published version %(number)d.")
                    self.log_change(request, row, said % {"number": version.number})
        except PublicationRefused as refused:
            said = _("Nothing was published. %(row)s: %(reason)s")
            self.message_user(
                request, said % {"row": row, "reason": refused.message}, messages.ERROR
            )
            return False
        self._reckon(rows)
        said = ngettext("%d was published.", "%d were published.", count)
        self.message_user(request, said % count, messages.SUCCESS)
        return True

    @admin.action(description=gettext_lazy("Unpublish"), permissions=["publish"])
    def unpublish_chosen(self, request: HttpRequest, queryset: QuerySet[Row]) -> None:
        published = self._plain(queryset).filter(published__isnull=False)
        with transaction.atomic():
            # Whoever locks several rows does it in this order.
            chosen = list(published.select_for_update().order_by("pk"))
            rows = [row for row in chosen if not getattr(row, "from_code", False)]
            self.model.rows().unpublish(rows)
            self._log(request, rows, _("Taken off the lists."))
        if len(rows) < len(chosen):
            self.message_user(request, publication.declared_in_code(), messages.WARNING)
        said = ngettext("%d was taken off.", "%d were taken off.", len(rows))
        self.message_user(request, said % len(rows), messages.SUCCESS)

    @admin.action(description=gettext_lazy("Stop"), permissions=["stop"])
    def stop_chosen(self, request: HttpRequest, queryset: QuerySet[Row]) -> None:
        self._switch(request, queryset, on=False)

    @admin.action(description=gettext_lazy("Start the chosen…"), permissions=["stop"])
    def start_chosen(
        self, request: HttpRequest, queryset: QuerySet[Row]
    ) -> HttpResponse | None:
        """Say what comes back; once confirmed, start."""
        if "confirmed" in request.POST:
            self._switch(request, queryset, on=True)
            return None
        stopped = self._plain(queryset).filter(enabled=False)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": _("Start the chosen"),
            "rows": [
                (row, comparison.back(row))
                for row in stopped.select_related("published")
            ],
            "back_url": request.get_full_path(),
        }
        return TemplateResponse(request, "admin/mcp_app/start_chosen.html", context)

    def _switch(
        self, request: HttpRequest, queryset: QuerySet[Row], *, on: bool
    ) -> None:
        with transaction.atomic():
            switched = self._plain(queryset).switch(on)
            self._log(request, switched, _("Started.") if on else _("Stopped."))
        count = len(switched)
        said = ngettext("%d was stopped.", "%d were stopped.", count)
        if on:
            said = ngettext("%d was started.", "%d were started.", count)
        self.message_user(request, said % count, messages.SUCCESS)

    def _plain(self, queryset: QuerySet[Row]) -> Any:
        """Return the chosen rows: the admin's queryset may be joined or sliced."""
        return self.model.rows().filter(pk__in=queryset.values("pk"))

    def _log(self, request: HttpRequest, rows: Sequence[Row], said: str) -> None:
        keys = [row.pk for row in rows]
        LogEntry.objects.log_actions(
            str(request.user.pk),
            self.model._default_manager.filter(pk__in=keys),
            CHANGE,
            change_message=said,
        )

    def _reckon(self, rows: Sequence[Row]) -> None:
        for row in rows:
            row.refresh_from_db()
            if isinstance(row, DefinitionRow):
                reckon(row, mcp)

    def has_publish_permission(self, request: HttpRequest) -> bool:
        return may(request, "publish")

    def has_stop_permission(self, request: HttpRequest) -> bool:
        return may(request, "stop")
