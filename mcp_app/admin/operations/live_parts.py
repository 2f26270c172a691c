"""What the live page shows: calls that have a row, clients, and processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from django.db.models import Count, F, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.calls import presentation as calls_presentation
from mcp_app.admin.page.header import serving_mark
from mcp_app.admin.page.people import HANDLE, client_of, session_user_name, user_names
from mcp_app.interface.rules import visible
from mcp_app.models import CallStatistic, Session, Stream, Worker
from mcp_app.models.call_rows import CallingClient
from mcp_app.models.fields import parse_json
from mcp_app.models.streams import Event
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.models.workers import LIVE_MS, Report
from mcp_app.server.recording import SESSION_HANDLE
from mcp_app.streams.event_ids import answers_batch, request_ids

SHOWN: Final = 25
"""Rows of each kind on the page."""
MAX_PROGRESS: Final = 4_096
"""The page reads the last message of a call only if it has no more bytes than this."""
PROGRESS: Final = "notifications/progress"


def age_text(age_ms: int) -> str:
    """Return an age in words; ages are measured by the database's clock."""
    seconds = max(0, age_ms) // 1_000
    if seconds < 60:  # noqa: PLR2004 - a minute
        return _("%(n)d s") % {"n": seconds}
    if (minutes := seconds // 60) < 60:  # noqa: PLR2004 - an hour
        return _("%(n)d min") % {"n": minutes}
    if (hours := minutes // 60) < 48:  # noqa: PLR2004 - two days
        return _("%(n)d h") % {"n": hours}
    return ngettext("%(n)d day", "%(n)d days", hours // 24) % {"n": hours // 24}


def _with_ages(rows: QuerySet[Any], *columns: str) -> QuerySet[Any]:
    """Annotate the age of each of these columns, by the database's clock."""
    ages = {f"age_{each}": NowMilliseconds() - F(each) for each in columns}
    aged: QuerySet[Any] = rows.annotate(**ages)
    return aged


def _more_text(count: int) -> str:
    """Say how many of `count` rows are not shown; "" if all are."""
    hidden_count = max(0, count - SHOWN)
    return _("and %(count)d more") % {"count": hidden_count} if hidden_count else ""


class Look:
    """Values that several parts of the page need; each is queried once."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.now_ms = int(now().timestamp() * 1_000)
        # Import here: processes that serve clients load the admin, but no `workbench`.
        from mcp_app.workbench.viewer import viewer_of  # noqa: PLC0415

        self.counts_calls = viewer_of(request.user).calls

    @cached_property
    def workers(self) -> list[Any]:
        """All processes, the last seen first."""
        rows = Worker.objects.order_by("-seen_ms", "pk")
        return list(_with_ages(rows, "seen_ms", "started_ms"))

    @cached_property
    def reports(self) -> dict[str, Report]:
        """The reports of live processes, by the keys of their rows."""
        live = (worker for worker in self.workers if worker.age_seen_ms <= LIVE_MS)
        return {each.pk: each.report_of_process() for each in live}

    @cached_property
    def callers(self) -> list[CallingClient]:
        """The clients that called recently, if the user may view calls."""
        from mcp_app.workbench.overview import calling_clients  # noqa: PLC0415

        return calling_clients(self.now_ms) if self.counts_calls else []

    @cached_property
    def sessions(self) -> int:
        return Session.objects.recent().order_by().count()

    @cached_property
    def calls(self) -> Counter[str]:
        """The number of calls with a row, by the key of their process."""
        rows = Stream.objects.open().order_by().values_list("owner")
        return Counter(dict(rows.annotate(Count("pk"))))


def state_context(look: Look) -> dict[str, object]:
    """Return the context of the strip: the numbers of processes, calls and clients."""
    processes, callers = len(look.reports), look.callers
    without_row = sum(map(_calls_without_row, look.reports.values()))
    asked = processes or Session.objects.exists() or CallStatistic.objects.exists()
    return {
        **serving_mark(look.request, processes, asked=bool(asked)),
        "processes": processes,
        "running": look.calls.total() + without_row,
        "sessions": look.sessions,
        "counts_calls": look.counts_calls,
        "others": len([caller for caller in callers if not caller.session]),
    }


def _calls_without_row(report: Report) -> int:
    return sum(report.calls.values())


def workers_context(look: Look) -> dict[str, object]:
    """Return the context of the part about processes."""
    codes = {report.code for report in look.reports.values() if report.code}
    lines = [_worker_line(look, each, len(codes) > 1) for each in look.workers[:SHOWN]]
    return {
        "workers": lines,
        "worker_count": len(look.reports),
        "more_workers": _more_text(len(look.workers)),
    }


def _worker_line(look: Look, worker: Any, differ: bool) -> dict[str, object]:
    """Return a process, with what its last heartbeat reported.

    Numbers are None if the heartbeat is old, or a process of an older release sent it.
    """
    report = look.reports.get(worker.pk, Report())
    # An empty report has no `code`.
    has_report, calls = bool(report.code), look.calls[worker.pk]
    return {
        "name": f"{visible(worker.host)}, {worker.pid}",
        "live": worker.pk in look.reports,
        **_age_of_request(worker.age_seen_ms),
        "age": age_text(worker.age_started_ms),
        "calls": calls + _calls_without_row(report) if has_report else calls or None,
        "streams": sum(report.streams.values()) if has_report else None,
        "other_code": report.code[:HANDLE] if has_report and differ else "",
        "report": report if has_report else None,
    }


def clients_context(look: Look) -> dict[str, object]:
    """Return the context of the part about clients; the last seen come first.

    Clients without a session appear only if the user may view calls.
    """
    rows = Session.objects.recent().order_by("-seen_ms", "-pk").defer("capabilities")
    sessions = list(_with_ages(rows, "seen_ms")[:SHOWN])
    calls = Counter[str]()
    for caller in look.callers:
        calls[caller.session] += caller.calls
    callers = [caller for caller in look.callers if not caller.session]
    count = look.sessions + len(callers)
    names = user_names(session.user_id for session in sessions)
    reports = look.reports.values() if sessions else ()
    listening = {key for report in reports for key in report.sessions}
    lines = [
        {
            **_age_of_request(session.age_seen_ms),
            "pk": session.pk,
            "handle": session.digest[:HANDLE],
            "client": client_of(session),
            "who": session_user_name(session, names),
            "calls": calls[session.digest[:SESSION_HANDLE]],
            "listens": session.pk in listening,
        }
        for session in sessions
    ] + [
        {
            **_age_of_request(look.now_ms - each.newest_ms),
            "client": calls_presentation.client_of(each),
            "who": calls_presentation.caller_name(each),
            "calls": each.calls,
        }
        for each in callers
    ]
    lines = sorted(lines, key=lambda line: line["age_ms"])[:SHOWN]
    return {
        "clients": lines,
        "client_count": count,
        "counts_calls": look.counts_calls,
        "more_clients": _more_text(count),
    }


def _age_of_request(age_ms: int) -> dict[str, Any]:
    return {
        "age_ms": age_ms,
        "seen": now() - timedelta(milliseconds=max(0, age_ms)),
        "ago": _("%(age)s ago") % {"age": age_text(age_ms)},
    }


def calls_context(look: Look) -> dict[str, object]:
    """Return the context of the part about calls with a row; the oldest come first."""
    rows = Stream.objects.open().order_by("created_ms", "pk")
    columns = rows.select_related("session").defer("session__capabilities")
    displayed = list(_with_ages(columns, "created_ms")[:SHOWN])
    names = user_names(each.session.user_id for each in displayed)
    events = Event.objects.filter(stream__in=displayed, size__lte=MAX_PROGRESS)
    events = events.filter(seq=F("stream__head_seq"))
    payloads = dict(events.values_list("stream", "payload"))
    lines = [
        {
            "tool": call_name(each),
            "client": client_of(each.session),
            "who": session_user_name(each.session, names),
            "age": age_text(each.age_created_ms),
            "progress": _progress_text(payloads.get(each.pk, "")),
            "live": each.owner in look.reports,
            "cancel_url": reverse("admin:mcp_app_session_cancel", args=[each.pk]),
        }
        for each in displayed
    ]
    return {
        "calls": lines,
        "call_count": look.calls.total(),
        "more_calls": _more_text(look.calls.total()),
        "short_calls": sum(map(_calls_without_row, look.reports.values())),
    }


def _progress_text(payload: str) -> str:
    """Return the progress in a call's last message; "" if that is no progress."""
    message = parse_json(payload or "{}")
    if not isinstance(message, dict) or message.get("method") != PROGRESS:
        return ""
    params = message["params"]
    done, total = params.get("progress"), params.get("total")
    numbers = f"{done:g}"
    if total:
        numbers = _("%(done)s of %(total)s") % {"done": numbers, "total": f"{total:g}"}
    return f"{numbers} {visible(params.get('message') or '')}".strip()


def call_name(stream: Stream) -> str:
    """Return the name of a call: its tool, or what kind of request it is."""
    if stream.tool:
        return visible(stream.tool)
    if answers_batch(stream.requests):
        count = len(request_ids(stream.requests))
        text = ngettext("a batch of %(n)d", "a batch of %(n)d", count)
        return text % {"n": count}
    return _("a request that does not call a tool")


LIVE_PARTS: Final[Mapping[str, Callable[[Look], dict[str, object]]]] = {
    "state": state_context,
    "calls": calls_context,
    "clients": clients_context,
    "workers": workers_context,
}
