"""What can be done with many rows of a list at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.views.main import ChangeList
from django.db import transaction
from django.db.models import Case, QuerySet, When, prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.admin.page import stop_banner
from mcp_app.admin.page.header import may, why_broken
from mcp_app.admin.publishing import comparison
from mcp_app.admin.publishing.comparison import Shown, served_label, shown
from mcp_app.admin.publishing.exports import ExportAction
from mcp_app.admin.publishing.pages import author_of, note_of, number_of
from mcp_app.catalog.registry import mcp
from mcp_app.models import DefinitionRow, PublishedRow
from mcp_app.publishing import publication
from mcp_app.publishing.overlays import reckon
from mcp_app.publishing.publication import Proposal, PublicationRefused

Row = TypeVar("Row", bound=PublishedRow)

MOST_AT_ONCE = 100
"""Rows that one page compares or names."""
MOST_TOLD = 10
"""Rows of which a message says why they stay broken."""
KEY = re.compile(r"[0-9]{1,18}")


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

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Say of each row whether a stop holds it; asks nothing more for that."""
        found = super().get_changelist_instance(request)
        for row in found.result_list:
            row.held = bool(stop_banner.of_row(stop_banner.stops_on(request), row))
        return found

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
        """Say what comes back; once confirmed, start what is still ticked."""
        stopped = self._plain(queryset).filter(enabled=False)
        count = stopped.count()
        is_all = request.POST.get("select_across") == "1"
        if "confirmed" in request.POST:
            if not is_all or request.POST.get("count") == str(count):
                unticked = set(request.POST.getlist("shown")) - _ticked(request)
                self._switch(request, stopped.exclude(pk__in=_keys(unticked)), on=True)
                return None
            said = _("Others are stopped now than when you looked. Look again.")
            self.message_user(request, said, messages.WARNING)
        named = list(_broken_first(stopped)[:MOST_AT_ONCE])
        beyond = _broken_first(stopped)[MOST_AT_ONCE:].values_list("pk", flat=True)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": _("Start the chosen"),
            "rows": [(row, comparison.back(row)) for row in named],
            "count": count,
            "more": count - len(named),
            "is_all": is_all,
            "beyond": [] if is_all else list(beyond),
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
        if on:
            self._tell_of_broken(request, switched)

    def _tell_of_broken(self, request: HttpRequest, started: Sequence[Row]) -> None:
        """Name the rows that clients do not see although they were started."""
        rows = sorted(started, key=lambda row: not row.broken)
        looked_at, others = rows[:MOST_AT_ONCE], rows[MOST_AT_ONCE:]
        prefetch_related_objects(looked_at, "published")
        said_why = [
            *((row, why_broken(row)) for row in looked_at),
            *((row, row.broken) for row in others),
        ]
        broken = [(row, why) for row, why in said_why if why]
        for row, why in broken[:MOST_TOLD]:
            said = _("“%(row)s” stays broken: %(why)s") % {"row": row, "why": why}
            self.message_user(request, said, messages.WARNING)
        if (more := len(broken) - MOST_TOLD) > 0:
            said = ngettext("%d more stays broken.", "%d more stay broken.", more)
            self.message_user(request, said % more, messages.WARNING)

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


def _broken_first(rows: QuerySet[Row]) -> QuerySet[Row]:
    """Return rows with their versions, those first that nobody will see."""
    return rows.select_related("published").order_by(
        Case(When(broken="", then=1), default=0), "pk"
    )


def _ticked(request: HttpRequest) -> set[str]:
    return set(request.POST.getlist(ACTION_CHECKBOX_NAME))


def _keys(texts: Iterable[str]) -> list[int]:
    """Return what can be a row's key."""
    return [int(text) for text in texts if KEY.fullmatch(text)]
