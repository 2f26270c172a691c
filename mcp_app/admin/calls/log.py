"""The list of calls, and one call: pages that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.forms import Select
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.calls import rejected_requests
from mcp_app.admin.calls.charts import (
    Figures,
    call_figures,
    format_percent,
    grouped_digits,
    names_with,
)
from mcp_app.admin.calls.export import csv_response
from mcp_app.admin.calls.filters import (
    ANY_FAILURE,
    ANY_REFUSAL,
    CHOICES,
    ERROR_NUMBER,
    GROUPS,
    CallFilter,
    read_filter,
    stored_time,
)
from mcp_app.admin.calls.presentation import (
    CallDetails,
    call_line,
    milliseconds_text,
    retention,
)
from mcp_app.admin.page.concurrency import SettledAdmin
from mcp_app.admin.page.header import PAGE_MEDIA, render_page
from mcp_app.admin.page.unfold import FixedRows
from mcp_app.conf import mcp_settings
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models import Call
from mcp_app.models.call_rows import COUNTED, CallCount, CallQuery, Key
from mcp_app.publishing.rights import lacking_sentence

PER_PAGE: Final = 100
MAX_NAMES: Final = 50
"""The greatest number of matching names that a search uses."""


@admin.register(Call)
class CallAdmin(FixedRows[Call], SettledAdmin[Call]):
    """Read-only pages of calls: nobody can add, change or delete one here."""

    def get_urls(self) -> list[URLPattern]:
        wrap, name = self.admin_site.admin_view, "mcp_app_call"
        return [
            path("refused/", wrap(self.refused_view), name=f"{name}_refused"),
            path("export/", wrap(self.export_view), name=f"{name}_export"),
            path("", wrap(self.changelist_view), name=f"{name}_changelist"),
            path("<int:key>/", wrap(self.call_view), name=f"{name}_change"),
        ]

    def has_delete_permission(
        self, request: HttpRequest, obj: Call | None = None
    ) -> bool:
        return False

    # -- the list -------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: Mapping[str, object] | None = None
    ) -> HttpResponse:
        """Show the calls that match the filter; an error number opens its call."""
        self._require_view_right(request)
        render = partial(self._render_page, request, "calls", _("Calls"))
        return calls_page(request, read_filter(request), render)

    def export_view(self, request: HttpRequest) -> StreamingHttpResponse:
        """Return the calls that match the filter as a CSV file."""
        self._require_view_right(request)
        return csv_response(request, _search_query(request, read_filter(request)))

    def call_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Show one call in full."""
        self._require_view_right(request)
        call = Call.objects.filter(pk=key).first() if key < 2**63 else None
        if call is None:
            message = _(
                "There is no such call. Calls are deleted after %(days)s, or earlier if"
                " there are too many."
            )
            raise Http404(message % {"days": retention()})
        details = CallDetails(request, call)
        title = _("Call of %(what)s") % {"what": details.what}
        context = {"details": details, "kept": retention()}
        return self._render_page(request, "call", title, context)

    def refused_view(self, request: HttpRequest) -> HttpResponse:
        """Show the requests that were refused before they became a call."""
        self._require_view_right(request)
        context = rejected_requests.turned_away()
        return self._render_page(request, "refused", _("Refused requests"), context)

    def _require_view_right(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied(lacking_sentence("view_call"))

    def _render_page(
        self,
        request: HttpRequest,
        template: str,
        title: str,
        context: Mapping[str, object],
    ) -> HttpResponse:
        full_context = {"media": PAGE_MEDIA, **context}
        return render_page(self, request, template, title, full_context)


def calls_page(
    request: HttpRequest,
    filters: CallFilter,
    render: Callable[[Mapping[str, object]], HttpResponse],
) -> HttpResponse:
    """Render the calls that match a filter; an error number opens its newest call."""
    number = filters.q.lower().replace("-", "").replace(" ", "")
    if ERROR_NUMBER.fullmatch(number):
        query = CallQuery(start_ms=0, ways=[("failure", "=", number)])
        if calls := Call.objects.page(query, limit=1):
            page = reverse("admin:mcp_app_call_change", args=[calls[0].pk])
            return HttpResponseRedirect(page)
    for problem in filters.problems:
        messages.warning(request, problem, fail_silently=True)
    return render(_list_context(request, filters))


def _search_query(request: HttpRequest, filters: CallFilter) -> CallQuery:
    if not filters.q:
        return filters.call_query()
    # Import here: processes that serve clients load the admin, but no `workbench`.
    from mcp_app.workbench.find import identities_like  # noqa: PLC0415
    from mcp_app.workbench.viewer import viewer_of  # noqa: PLC0415

    identities = identities_like(viewer_of(request.user), filters.q)
    names = dict.fromkeys((*names_with(filters, filters.q, MAX_NAMES), *identities))
    return filters.call_query(tuple(names)[:MAX_NAMES])


def _list_context(request: HttpRequest, filters: CallFilter) -> dict[str, object]:
    query = _search_query(request, filters)
    calls, newer, older = _read_page(filters, query)
    totals = call_figures(filters) if filters.is_countable else None
    # Without counters, the first page shows the number of rows.
    has_count = not (totals or filters.older)
    # A page that searched rows and is not full says how far back it looked.
    needs_count = has_count or (query.conditions and not older)
    row_count = None
    # Behind the link “Newer” a page needs neither: older calls certainly follow.
    if needs_count and not filters.newer:
        row_count = Call.objects.looked_for(query, filters.older)
    back_to = row_count and row_count.back_to
    return {
        "filters": filters,
        "lines": [call_line(call, filters) for call in calls],
        "newer_url": newer and filters.query_string(newer=newer),
        "older_url": older and filters.query_string(older=older),
        "figures": totals,
        "cards": totals and totals.calls and _figure_cards(filters, totals),
        # Counters lack the runs of "Try it", so a count of rows would differ from them.
        "count": _count_sentence(row_count) if has_count else "",
        "back_to": back_to and stored_time(back_to.time_ms),
        "further_url": back_to and filters.query_string(older=back_to),
        "selects": _select_boxes(filters, totals),
        # Whether the box “More filters” is open: one of its filters is set.
        "has_more": any((filters.kind, filters.slower, filters.origin, filters.server)),
        "chips": _filter_chips(filters),
        "export_url": reverse("admin:mcp_app_call_export") + filters.query_string(),
        "week_url": filters.query_string(when="week"),
        "kept": retention(),
        "unkept": mcp_settings.audit == "off",
    }


def _read_page(
    filters: CallFilter, query: CallQuery
) -> tuple[Sequence[Call], Key | None, Key | None]:
    """Return the calls of a page, and the keys from which its neighbours start."""
    # One more row tells whether another page follows.
    rows = Call.objects.page(
        query, PER_PAGE + 1, older=filters.older, newer=filters.newer
    )
    is_full = len(rows) > PER_PAGE
    if filters.newer:
        # The rows are newest first, so the additional row is the first one.
        calls, has_older, has_newer = rows[-PER_PAGE:], True, is_full
    else:
        calls, has_older = rows[:PER_PAGE], is_full
        has_newer = filters.older is not None
    if not calls:
        return (), None, None
    first, last = (Key(each.time_ms, each.pk) for each in (calls[0], calls[-1]))
    return calls, first if has_newer else None, last if has_older else None


def _count_sentence(row_count: CallCount | None) -> str:
    if row_count is None:
        return ""
    count = row_count.found
    if count >= COUNTED:
        return _("more than %(count)s calls") % {"count": grouped_digits(COUNTED - 1)}
    text = ngettext("%(count)s call", "%(count)s calls", count)
    return text % {"count": grouped_digits(count)}


def _figure_cards(
    filters: CallFilter, totals: Figures
) -> list[tuple[str, str, str, str]]:
    """Return figures: the number, what it counts, more about it, and a URL or ""."""
    percent = format_percent(100 * totals.failed / totals.calls)
    cards = [
        (grouped_digits(totals.calls), _("calls"), "", ""),
        (
            grouped_digits(totals.failed),
            _("failed"),
            f"({percent})",
            filters.query_string(outcome=ANY_FAILURE) if totals.failed else "",
        ),
        (
            grouped_digits(totals.refused),
            _("refused"),
            _("wrong values, no right"),
            filters.query_string(outcome=ANY_REFUSAL) if totals.refused else "",
        ),
    ]
    if totals.p50_ms is None or totals.p95_ms is None:
        return cards
    half, nearly_all = map(milliseconds_text, (totals.p50_ms, totals.p95_ms))
    return [
        *cards,
        (half, _("half of them took at most"), "", ""),
        (nearly_all, _("95 of 100 took at most"), "", ""),
    ]


def _select_boxes(filters: CallFilter, totals: Figures | None) -> dict[str, str]:
    """Return a select box for each filter that has choices, as HTML."""
    boxes: dict[str, tuple[Label, Mapping[str, Label]]] = {**CHOICES}
    label, labels = CHOICES["outcome"]
    offered = {name: labels[name] for name in labels if name in GROUPS}
    if filters.outcome:
        offered[filters.outcome] = labels[filters.outcome]
    boxes["outcome"] = (label, offered)
    slugs = {*(totals.servers if totals else ()), filters.server} - {""}
    if slugs:
        boxes["server"] = (_("Server"), {slug: visible(slug) for slug in sorted(slugs)})
    selects: dict[str, str] = {}
    for name, (title, options) in boxes.items():
        all_label = _("All outcomes") if name == "outcome" else f"{title}: {_('all')}"
        choices = [*([] if name == "when" else [("", all_label)]), *options.items()]
        select = Select({"aria-label": title}, choices)
        selects[name] = select.render(name, getattr(filters, name))
    return selects


def _filter_chips(filters: CallFilter) -> list[dict[str, str]]:
    """Return each active text filter, and the URL of the list without that filter."""
    labels = {
        "name": _("Name: %(value)s"),
        "user": _("Person: %(value)s"),
        "q": _("Search: %(value)s"),
    }
    return [
        {
            "of": name,
            "label": text % {"value": visible(value)},
            "url": filters.query_string(**{name: ""}),
        }
        for name, text in labels.items()
        if (value := getattr(filters, name))
    ]
