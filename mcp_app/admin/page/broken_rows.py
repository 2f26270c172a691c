"""Rows that live processes cannot serve, as their last heartbeats reported.

During a deployment, processes with different code may report different rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext as _

from mcp_app.admin.page.keys import ROW_KEY
from mcp_app.interface.rules import visible
from mcp_app.interface.server import Key
from mcp_app.models import PublishedRow, Worker
from mcp_app.models.workers import MOST_BROKEN, Report

Reasons: TypeAlias = Mapping[Key, Mapping[int, str]]
"""Why rows are broken: by row and then by version (0 without one), a sentence."""
KNOWN: Final = "mcp_broken"
REPORTS: Final = "mcp_reports"
"""These attributes of a request keep the broken rows and the reports."""


def broken_rows_of(request: HttpRequest) -> Reasons:
    """Return the rows that live processes report as broken."""
    reasons: Reasons | None = getattr(request, KNOWN, None)
    if reasons is None:
        reasons = _broken_rows(reports_on(request))
        vars(request)[KNOWN] = reasons
    return reasons


def reports_on(request: HttpRequest) -> Sequence[Report]:
    """Return what live processes report, queried once per request."""
    reports: Sequence[Report] | None = getattr(request, REPORTS, None)
    if reports is None:
        reports = [worker.report_of_process() for worker in Worker.objects.live()]
        vars(request)[REPORTS] = reports
    return reports


def broken_reason(request: HttpRequest, row: PublishedRow) -> str:
    """Return why live processes do not serve a row; "" if all do, or none runs.

    A report about an earlier version does not count.
    """
    versions = broken_rows_of(request).get((row.kind_of_row, str(row.pk)), {})
    return versions.get(row.published_id or 0, "")


def is_broken_somewhere(request: HttpRequest, model: type[PublishedRow]) -> Q:
    """Return the condition for the rows of a model that live processes report."""
    pairs = [
        (int(ref), version)
        for (kind, ref), versions in broken_rows_of(request).items()
        if kind == model._meta.model_name
        for version in versions
    ]
    # No pairs are needed: a version belongs to one row alone.
    versioned = Q(
        pk__in=[ref for ref, version in pairs if version],
        published__in=[version for _ref, version in pairs if version],
    )
    refs = [ref for ref, version in pairs if not version]
    return versioned | Q(pk__in=refs, published=None)


def _broken_rows(reports: Iterable[Report]) -> Reasons:
    # Without `code` it is no real report: its process is new, or of an older release.
    entry_lists = [list(_report_entries(report)) for report in reports if report.code]
    is_cut = any(len(entries) >= MOST_BROKEN for entries in entry_lists)
    reasons_by_version: dict[tuple[Key, int], list[str]] = {}
    for key, version, reason in chain.from_iterable(entry_lists):
        reasons_by_version.setdefault((key, version), []).append(visible(reason, None))
    rows: dict[Key, dict[int, str]] = {}
    text = _("In %(count)d of %(total)d processes: %(reason)s")
    for (key, version), reasons in reasons_by_version.items():
        # A report has a limit: if it is full, other rows may be missing in it.
        total = len(reasons) if is_cut else len(entry_lists)
        values = {"count": len(reasons), "total": total, "reason": reasons[0]}
        sentence = reasons[0] if len(reasons) == total else text % values
        rows.setdefault(key, {})[version] = sentence
    return rows


def _report_entries(report: Report) -> Iterator[tuple[Key, int, str]]:
    """Yield the valid entries of a report; another release may have written it."""
    entries: object = report.broken
    for entry in entries if isinstance(entries, list | tuple) else ():
        match entry:
            case [str(kind), str(ref), int(version), str(reason), *_]:
                if ROW_KEY.fullmatch(ref):
                    yield (kind, ref), version, reason
