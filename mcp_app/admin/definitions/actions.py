"""Actions on many rows of a list at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ChangeList
from django.db.models import Case, Q, QuerySet, When
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.admin.page import header, stop_banner
from mcp_app.admin.page.broken_rows import broken_reason, is_broken_somewhere
from mcp_app.admin.page.keys import ROW_KEY
from mcp_app.admin.page.rights import has_right
from mcp_app.admin.publishing import comparison
from mcp_app.admin.publishing.bundles import ExportAction
from mcp_app.admin.publishing.comparison import served_label
from mcp_app.admin.publishing.difference_labels import common_texts, labeled_differences
from mcp_app.admin.publishing.pages import author_of, number_of
from mcp_app.catalog.registry import mcp
from mcp_app.models import PublishedRow
from mcp_app.models.stops import is_stopped, stop_matcher
from mcp_app.publishing import publication, services
from mcp_app.publishing.publication import Proposal, PublicationRefused

Row = TypeVar("Row", bound=PublishedRow)

MAX_BATCH_SIZE = 100
"""The greatest number of rows that one page compares or names."""
ACTIONS = [
    "publish_chosen",
    "unpublish_chosen",
    "stop_chosen",
    "start_chosen",
    "export_chosen",
]


class ListActions(ExportAction[Row]):
    """Publish, unpublish, stop, start and export the chosen rows."""

    actions = ACTIONS

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Mark each row that is stopped or that a process cannot serve."""
        changelist = super().get_changelist_instance(request)
        is_row_stopped = stop_matcher(stop_banner.active_stops(request))
        for row in changelist.result_list:
            row.held = is_row_stopped(row)
            row.broken = broken_reason(request, row) or row.broken
        return changelist

    def get_ordering(self, request: HttpRequest) -> Any:
        """Return the usual order; on the list itself, broken rows come first."""
        usual: Sequence[Any] = self.opts.ordering or ()
        match = request.resolver_match
        if match is None or not str(match.url_name).endswith("_changelist"):
            return usual
        is_broken = ~Q(broken="") | is_broken_somewhere(request, self.model)
        is_broken &= ~Q(is_stopped(self.model))
        return [Case(When(is_broken, then=0), default=1), *usual]

    @admin.action(
        description=gettext_lazy("Publish the chosen…"), permissions=["publish"]
    )
    def publish_chosen(
        self, request: HttpRequest, queryset: QuerySet[Row]
    ) -> HttpResponse | None:
        """Show all differences; if confirmed, publish all rows or none."""
        chosen = self._plain_queryset(queryset).select_related("published")
        rows = list(chosen[: MAX_BATCH_SIZE + 1])
        if len(rows) > MAX_BATCH_SIZE:
            message = _("At most %(most)d can be published at once.")
            message %= {"most": MAX_BATCH_SIZE}
            self.message_user(request, message, messages.ERROR)
            return None
        if "confirmed" in request.POST and self._publish_all(request, rows):
            return None
        proposals = publication.propose_all(rows, mcp)
        context = {
            "proposals": [self._proposal_context(proposal) for proposal in proposals],
            "after_label": _("Then"),
            "back_url": request.get_full_path(),
        }
        title = _("Publish the chosen")
        return header.render_page(self, request, "publish_chosen", title, context)

    def _proposal_context(self, proposal: Proposal[Any]) -> dict[str, Any]:
        """Return a row for the page; `reason` says why it cannot be published."""
        reason = " ".join(each.message for each in proposal.judged.to_fix)
        if proposal.is_served_already:
            reason = _("Clients already see exactly this working copy.")
        return {
            "row": proposal.row,
            "proposal": proposal,
            "differences": labeled_differences(proposal.row, proposal.differences),
            "common": common_texts(proposal.row, proposal.before, proposal.after),
            "before_label": served_label(proposal.row),
            "reason": reason,
        }

    def _publish_all(self, request: HttpRequest, rows: Sequence[Row]) -> bool:
        """Publish all rows and say so; if one is refused, say why and publish none."""
        # By row: the hash of the working copy and the version that the page showed.
        looked_at = {
            row: (
                request.POST.get(f"looked_at-{row.pk}", ""),
                number_of(request, f"number-{row.pk}"),
            )
            for row in rows
        }
        note = request.POST.get("note", "")
        try:
            count = services.publish_all(author_of(request), looked_at, note)
        except PublicationRefused as refused:
            self.message_user(request, refused.message, messages.ERROR)
            return False
        message = ngettext("%d was published.", "%d were published.", count)
        self.message_user(request, message % count, messages.SUCCESS)
        return True

    @admin.action(description=gettext_lazy("Unpublish"), permissions=["publish"])
    def unpublish_chosen(self, request: HttpRequest, queryset: QuerySet[Row]) -> None:
        published = self._plain_queryset(queryset).filter(published__isnull=False)
        count, in_code = services.unpublish_all(author_of(request), published)
        if in_code:
            self.message_user(request, publication.declared_in_code(), messages.WARNING)
        message = ngettext("%d was taken off.", "%d were taken off.", count)
        self.message_user(request, message % count, messages.SUCCESS)

    @admin.action(description=gettext_lazy("Stop"), permissions=["stop"])
    def stop_chosen(self, request: HttpRequest, queryset: QuerySet[Row]) -> None:
        rows = self._plain_queryset(queryset).filter(~is_stopped(self.model))
        rows = rows.select_related("published").order_by("pk")
        count = services.stop_all(author_of(request), rows)
        message = ngettext("%d was stopped.", "%d were stopped.", count)
        self.message_user(request, message % count, messages.SUCCESS)

    @admin.action(description=gettext_lazy("Start the chosen…"), permissions=["stop"])
    def start_chosen(
        self, request: HttpRequest, queryset: QuerySet[Row]
    ) -> HttpResponse | None:
        """Show what comes back; if confirmed, start all rows except unticked ones."""
        stopped = self._plain_queryset(queryset).filter(is_stopped(self.model))
        count = stopped.count()
        is_all = request.POST.get("select_across") == "1"
        if "confirmed" in request.POST:
            if not is_all or request.POST.get("count") == str(count):
                ticked = request.POST.getlist(ACTION_CHECKBOX_NAME)
                unticked = {*request.POST.getlist("shown")} - {*ticked}
                keys = [int(each) for each in unticked if ROW_KEY.fullmatch(each)]
                # Also start the rows that did not fit on the page.
                chosen = stopped.exclude(pk__in=keys).order_by("pk")
                count = services.start_all(author_of(request), chosen)
                message = ngettext("%d was started.", "%d were started.", count)
                self.message_user(request, message % count, messages.SUCCESS)
                return None
            message = _(
                "The list of stopped definitions has changed since you opened this"
                " page. Check it again."
            )
            self.message_user(request, message, messages.WARNING)
        broken_first = Case(When(broken="", then=1), default=0)
        ordered = stopped.select_related("published").order_by(broken_first, "pk")
        rows = list(ordered[:MAX_BATCH_SIZE])
        more_keys = ordered[MAX_BATCH_SIZE:].values_list("pk", flat=True)
        context = {
            "rows": [(row, comparison.restart_sentence(row)) for row in rows],
            "count": count,
            "more": count - len(rows),
            "is_all": is_all,
            "more_keys": [] if is_all else list(more_keys),
            "back_url": request.get_full_path(),
        }
        title = _("Start the chosen")
        return header.render_page(self, request, "start_chosen", title, context)

    def _plain_queryset(self, queryset: QuerySet[Row]) -> Any:
        """Return a plain queryset: the admin's own may be joined or sliced."""
        return self.model.rows().filter(pk__in=queryset.values("pk"))

    def has_publish_permission(self, request: HttpRequest) -> bool:
        return has_right(request, "publish")

    def has_stop_permission(self, request: HttpRequest) -> bool:
        return has_right(request, "stop")
