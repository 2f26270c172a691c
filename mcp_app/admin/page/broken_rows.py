"""Rows that live processes cannot serve, as their last heartbeats reported.

While a deployment is under way, processes with different code differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.interface.server import Key
from mcp_app.models import PublishedRow, Worker

Reasons: TypeAlias = Mapping[Key, str]
"""Why each row is broken, in a sentence."""
KNOWN: Final = "mcp_broken"


def broken_rows_of(request: HttpRequest) -> Reasons:
    """Return the rows that live processes report, queried once per request."""
    known: Reasons | None = getattr(request, KNOWN, None)
    if known is None:
        known = dict(_broken_rows())
        vars(request)[KNOWN] = known
    return known


def broken_reason(request: HttpRequest, row: PublishedRow) -> str:
    """Return why live processes do not serve a row; "" if all do, or none runs."""
    return broken_rows_of(request).get((row.kind_of_row, str(row.pk)), "")


def is_broken_somewhere(request: HttpRequest, model: type[PublishedRow]) -> Q:
    """Return the condition for the rows of a model that live processes report."""
    kind = model._meta.model_name
    refs = [int(ref) for each, ref in broken_rows_of(request) if each == kind]
    return Q(pk__in=refs)


def _broken_rows() -> Iterator[tuple[Key, str]]:
    reports = [each.report_of_process() for each in Worker.objects.live()]
    # A process of an older release, or one that has just started, says nothing.
    reports = [each for each in reports if each.code]
    found: dict[Key, list[str]] = {}
    for report in reports:
        for kind, ref, reason in report.broken:
            if ref.isascii() and ref.isdigit():
                found.setdefault((kind, ref), []).append(reason)
    for key, reasons in found.items():
        yield key, _sentence(visible(reasons[0], None), len(reasons), len(reports))


def _sentence(reason: str, count: int, total: int) -> str:
    if count == total:
        return reason
    return _("In %(count)d of %(total)d processes: %(reason)s") % {
        "count": count,
        "total": total,
        "reason": reason,
    }
