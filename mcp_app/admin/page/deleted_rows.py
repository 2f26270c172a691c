"""Deleted rows: who deleted them, and a redirect with a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from django.contrib import messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model, Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.interface.server import Key
from mcp_app.models import PublishedRow, Worker
from mcp_app.models.workers import MOST_BROKEN, Report
from mcp_app.site_time import time_text

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin


# -- broken rows -----------------------------------------------------------------------
# Rows that live processes cannot serve, as their last heartbeats reported.
#
# While a deployment is under way, processes with different code differ.

Reasons: TypeAlias = Mapping[Key, Mapping[int, str]]
"""Why each row is broken, in a sentence, by its version (0 without one)."""
KNOWN: Final = "mcp_broken"
REPORTS: Final = "mcp_reports"
KEY: Final = re.compile("[0-9]{1,18}")


def broken_rows_of(request: HttpRequest) -> Reasons:
    """Return the rows that live processes report as broken."""
    known: Reasons | None = getattr(request, KNOWN, None)
    if known is None:
        known = _broken_rows(reports_on(request))
        vars(request)[KNOWN] = known
    return known


def reports_on(request: HttpRequest) -> Sequence[Report]:
    """Return what live processes report, queried once per request."""
    reports: Sequence[Report] | None = getattr(request, REPORTS, None)
    if reports is None:
        reports = [each.report_of_process() for each in Worker.objects.live()]
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
    known = [
        (int(ref), version)
        for (kind, ref), versions in broken_rows_of(request).items()
        if kind == model._meta.model_name
        for version in versions
    ]
    # A version belongs to one row alone.
    versioned = Q(
        pk__in=[ref for ref, version in known if version],
        published__in=[version for _ref, version in known if version],
    )
    others = [ref for ref, version in known if not version]
    return versioned | Q(pk__in=others, published=None)


def _broken_rows(reports: Iterable[Report]) -> Reasons:
    # A process of an older release, or one that has just started, says nothing.
    known = [list(_report_entries(each)) for each in reports if each.code]
    is_cut = any(len(entries) >= MOST_BROKEN for entries in known)
    reasons_by_version: dict[tuple[Key, int], list[str]] = {}
    for key, version, reason in chain.from_iterable(known):
        reasons_by_version.setdefault((key, version), []).append(visible(reason, None))
    rows: dict[Key, dict[int, str]] = {}
    text = _("In %(count)d of %(total)d processes: %(reason)s")
    for (key, version), reasons in reasons_by_version.items():
        # Who has more than a report holds names some of them.
        total = len(reasons) if is_cut else len(known)
        values = {"count": len(reasons), "total": total, "reason": reasons[0]}
        said = reasons[0] if len(reasons) == total else text % values
        rows.setdefault(key, {})[version] = said
    return rows


def _report_entries(report: Report) -> Iterator[tuple[Key, int, str]]:
    """Yield what is known here of a report, which another release may have written."""
    entries: object = report.broken
    for entry in entries if isinstance(entries, list | tuple) else ():
        match entry:
            case [str(kind), str(ref), int(version), str(reason), *_] if KEY.fullmatch(
                ref
            ):
                yield (kind, ref), version, reason


# -- deleted rows ----------------------------------------------------------------------

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class Deleted(Http404):
    """A row was deleted; the message says by whom."""


def demand_row(request: HttpRequest, model: type[Model], key: object) -> None:
    """Raise `Deleted` for a row that was not found, if it existed before.

    A POST proves that it did, even if the admin log has no entry of its deletion.
    """
    entry = _deletion_entries(model, [key]).first()
    message = deletion_sentence(model, entry)
    if request.method == "POST":
        raise Deleted(_("%(deleted)s Nothing was saved.") % {"deleted": message})
    if entry is not None:
        raise Deleted(message)


def deletion_sentence(model: type[Model], entry: LogEntry | None) -> str:
    """Say what happened to a row; `entry` is None if no deletion was logged."""
    what = model._meta.verbose_name
    if entry is None:
        return _("This %(what)s was deleted in the meantime.") % {"what": what}
    return _("The %(what)s “%(row)s” was deleted by %(by)s (%(at)s).") % {
        "what": what,
        "row": visible(entry.object_repr),
        "by": entry.user.get_username(),
        "at": time_text(entry.action_time),
    }


def sentences(model: type[Model], keys: Iterable[object]) -> Iterator[str]:
    """Yield such a sentence for each of these rows that no longer exists."""
    keys_by_text = {str(key): key for key in keys}
    there = model._default_manager.filter(pk__in=keys_by_text.values())
    gone = keys_by_text.keys() - set(map(str, there.values_list("pk", flat=True)))
    latest_first = _deletion_entries(model, gone)
    entries = {each.object_id: each for each in reversed(latest_first)}
    for key in sorted(gone):
        yield deletion_sentence(model, entries.get(key))


def redirect_missing_row(view: View) -> View:
    """Make a view redirect to the list, with a message, if its row was deleted."""

    @wraps(view)
    def redirecting_view(
        admin: ModelAdmin[Any], request: HttpRequest, *positional: Any, **keywords: Any
    ) -> HttpResponseBase:
        try:
            return view(admin, request, *positional, **keywords)
        except Deleted as deleted:
            return to_the_list(admin, request, str(deleted))

    return cast("View", redirecting_view)


def to_the_list(
    admin: ModelAdmin[Any], request: HttpRequest, message: str
) -> HttpResponse:
    """Redirect to the list of rows, with a message."""
    if not admin.has_view_or_change_permission(request):
        raise PermissionDenied
    admin.message_user(request, message, messages.ERROR)
    name = f"admin:{admin.opts.app_label}_{admin.opts.model_name}_changelist"
    return HttpResponseRedirect(reverse(name))


def primary_key_of(model: type[Model], text: str) -> object:
    """Return the primary key that a text stands for; None if it is not valid."""
    try:
        key: object = model._meta.pk.clean(text, None)
    except ValidationError:
        # The key's validators also check its range in the database.
        return None
    return key


def _deletion_entries(model: type[Model], keys: Iterable[object]) -> Any:
    """Return the log entries of deletions of these rows, the latest first."""
    kind = ContentType.objects.get_for_model(model)
    texts = list(map(str, keys))
    entries = LogEntry.objects.filter(
        content_type=kind, object_id__in=texts, action_flag=DELETION
    )
    return entries.select_related("user").order_by("-action_time", "-pk")
