"""The live page, with its buttons that close sessions and cancel calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import messages
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import connections, router, transaction
from django.db.models import Count, F, QuerySet
from django.forms.widgets import Media, Script
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path, reverse
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.page.concurrency import SettledAdmin, has_right, lacking_sentence
from mcp_app.admin.page.header import (
    client_of,
    render_page,
    render_part,
    session_user_name,
    user_names,
)
from mcp_app.interface.rules import visible
from mcp_app.invalidation import changes
from mcp_app.models import Change, Session, Stream, Worker
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.models.workers import LIVE_MS, MOST_SESSIONS
from mcp_app.server import call
from mcp_app.streams.event_ids import answers_batch, request_ids

# -- live rows -------------------------------------------------------------------------
# What the live page shows: processes, sessions, and the calls that have a row.

SHOWN: Final = 25
"""Rows of each kind on the page."""
COUNTED: Final = 1_000
"""The page counts at most this many further rows."""
HANDLE: Final = 8
"""Characters of a digest to show as a short name."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, and in words how long ago it was."""

    at: datetime
    ago: str


def _moment_ago(age_ms: int) -> Moment:
    """Return the moment of this age; ages are measured by the database's clock."""
    seconds = max(0, age_ms) // 1_000
    if seconds < 60:  # noqa: PLR2004 - a minute
        text = ngettext("%(n)d s ago", "%(n)d s ago", seconds) % {"n": seconds}
    elif (minutes := seconds // 60) < 60:  # noqa: PLR2004 - an hour
        text = ngettext("%(n)d min ago", "%(n)d min ago", minutes) % {"n": minutes}
    elif (hours := minutes // 60) < 48:  # noqa: PLR2004 - two days
        text = ngettext("%(n)d h ago", "%(n)d h ago", hours) % {"n": hours}
    else:
        text = ngettext("%(n)d day ago", "%(n)d days ago", hours // 24)
        text %= {"n": hours // 24}
    return Moment(now() - timedelta(milliseconds=max(0, age_ms)), text)


def _with_ages(rows: QuerySet[Any], *columns: str) -> QuerySet[Any]:
    """Annotate the age of each of these columns, by the database's clock."""
    ages = {f"age_{each}": NowMilliseconds() - F(each) for each in columns}
    aged: QuerySet[Any] = rows.annotate(**ages)
    return aged


def _more_text(rows: QuerySet[Any], first_rows: Sequence[object]) -> str:
    """Say how many rows are not shown; "" for none."""
    if len(first_rows) <= SHOWN:
        return ""
    more = rows.order_by()[: SHOWN + COUNTED + 1].count() - SHOWN
    if more > COUNTED:
        return _("and more than %(count)d more") % {"count": COUNTED}
    return _("and %(count)d more") % {"count": more}


def _process_name(worker: Worker) -> str:
    values = {"host": visible(worker.host), "pid": worker.pid}
    return _("%(host)s, process %(pid)d") % values


def workers_context() -> dict[str, object]:
    """Return the context of the part about processes."""
    rows = Worker.objects.order_by("-seen_ms", "pk")
    first_rows = list(_with_ages(rows, "seen_ms", "started_ms")[: SHOWN + 1])
    counts = Stream.objects.open().order_by().values_list("owner").annotate(Count("pk"))
    logged = dict(counts.filter(owner__in=[each.pk for each in first_rows[:SHOWN]]))
    live = [each for each in first_rows if each.age_seen_ms <= LIVE_MS]
    codes = {code for each in live if (code := each.report_of_process().code)}
    lines = [_worker_line(each, logged, len(codes) > 1) for each in first_rows[:SHOWN]]
    return {"workers": lines, "more": _more_text(rows, first_rows)}


def _worker_line(
    worker: Any, logged: Mapping[str, int], differ: bool
) -> dict[str, object]:
    """Return a process, with what its last heartbeat reported.

    It `tells` if the report is current; a process of an older release sends none. It
    `is_other` if it is live and live processes run different code.
    """
    report = worker.report_of_process()
    live = worker.age_seen_ms <= LIVE_MS
    return {
        "name": _process_name(worker),
        "live": live,
        "seen": _moment_ago(worker.age_seen_ms),
        "started": _moment_ago(worker.age_started_ms),
        "streams": report.streams,
        "open_streams": sum(report.streams.values()),
        "logged": logged.get(worker.pk, 0),
        "calls": report.calls,
        "other_calls": sum(report.calls.values()),
        "lost": report.lost,
        "dropped": report.dropped,
        "secrets": report.secrets,
        "code": report.code[:HANDLE],
        "tells": live and bool(report.code),
        "is_other": live and differ,
    }


def sessions_context() -> dict[str, object]:
    """Return the context of the part about sessions; the last seen come first.

    Each `listens`, or does not, or that is None if a process did not report all.
    """
    rows = Session.objects.order_by("-seen_ms", "-pk")
    columns = rows.defer("capabilities")
    first_rows = list(_with_ages(columns, "seen_ms", "created_ms")[: SHOWN + 1])
    names = user_names(each.user_id for each in first_rows[:SHOWN])
    workers = Worker.objects.live() if first_rows else []
    reports = [each.report_of_process() for each in workers]
    listening = {pk for report in reports for pk in report.sessions}
    # A process of an older release reports nothing.
    all_reported = all(
        report.code and len(report.sessions) < MOST_SESSIONS for report in reports
    )
    others = False if all_reported else None
    lines = [
        {
            "pk": each.pk,
            "handle": each.digest[:HANDLE],
            "client": client_of(each),
            "who": session_user_name(each, names),
            "server": visible(each.server),
            "revision": each.revision,
            "seen": _moment_ago(each.age_seen_ms),
            "opened": _moment_ago(each.age_created_ms),
            "listens": each.pk in listening or others,
            "close_url": reverse("admin:mcp_app_session_close", args=[each.pk]),
        }
        for each in first_rows[:SHOWN]
    ]
    return {"sessions": lines, "more": _more_text(rows, first_rows)}


def calls_context() -> dict[str, object]:
    """Return the context of the part about calls with a row; the oldest come first."""
    rows = Stream.objects.open().order_by("created_ms", "pk")
    columns = rows.select_related("session").defer("session__capabilities")
    first_rows = list(_with_ages(columns, "created_ms")[: SHOWN + 1])
    displayed = first_rows[:SHOWN]
    names = user_names(each.session.user_id for each in displayed)
    workers = Worker.objects.filter(pk__in={each.owner for each in displayed})
    aged = _with_ages(workers.defer("report"), "seen_ms")
    owners = {each.pk: each for each in aged}
    gone, lines = _("a process that is gone"), []
    for each in displayed:
        owner = owners.get(each.owner)
        lines.append(
            {
                "tool": call_name(each),
                "client": client_of(each.session),
                "who": session_user_name(each.session, names),
                "server": visible(each.session.server),
                "began": _moment_ago(each.age_created_ms),
                "messages": each.head_seq,
                "worker": gone if owner is None else _process_name(owner),
                "live": owner is not None and owner.age_seen_ms <= LIVE_MS,
                "cancel_url": reverse("admin:mcp_app_session_cancel", args=[each.pk]),
            }
        )
    return {"calls": lines, "more": _more_text(rows, first_rows)}


def call_name(stream: Stream) -> str:
    """Return the name of a call: its tool, or what kind of request it is."""
    if stream.tool:
        return visible(stream.tool)
    if answers_batch(stream.requests):
        count = len(request_ids(stream.requests))
        text = ngettext("a batch of %(n)d", "a batch of %(n)d", count)
        return text % {"n": count}
    return _("a request that does not call a tool")


PARTS: Final[Mapping[str, Callable[[], dict[str, object]]]] = {
    "workers": workers_context,
    "calls": calls_context,
    "sessions": sessions_context,
}


# -- live ------------------------------------------------------------------------------

MEDIA: Final = Media(
    css={"all": ["mcp_app/admin.css"]},
    js=[Script("mcp_app/admin.js", defer=True)],  # type: ignore[list-item]
)
CLOSE: Final = "delete_session"
"""The permission to close sessions and to cancel calls."""
PATIENCE_S: Final = 1.0
"""How long a request waits for a cancelled call to end."""
LOOK_S: Final = 0.05


class LivePages(SettledAdmin[Session]):
    """Shows processes, calls and sessions; closes sessions and cancels calls."""

    def get_urls(self) -> list[URLPattern]:
        wrap, name = self.admin_site.admin_view, "mcp_app_session"
        return [
            path("live/", wrap(self.live_view), name=f"{name}_live"),
            path("<int:key>/close/", wrap(self.close_view), name=f"{name}_close"),
            path(
                "call/<int:key>/cancel/", wrap(self.cancel_view), name=f"{name}_cancel"
            ),
            *super().get_urls(),
        ]

    def live_view(self, request: HttpRequest) -> HttpResponse:
        """Show the page, or one part of it if the page's script asks for that."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            "may_close": self.has_delete_permission(request),
            "lacking": lacking_sentence(CLOSE),
            "list_url": reverse("admin:mcp_app_session_changelist"),
        }
        part = request.GET.get("part")
        if part is None:
            context |= {"media": MEDIA, "updated": now()}
            context["parts"] = {name: build() for name, build in PARTS.items()}
            return render_page(self, request, "live", _("What happens now"), context)
        if part not in PARTS:
            raise Http404(_("This page has no such part."))
        return render_part(request, f"live_{part}", {**context, **PARTS[part]()})

    def close_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Close a session in every process, as if its client had closed it."""
        if refused := self._refusal_response(request):
            return refused
        session = Session.objects.filter(pk=key).first()
        _total, gone = Session.objects.filter(pk=key).delete()
        if session is None or not gone.get(Session._meta.label):
            message = _("This session is closed already.")
            return self._redirect_back(request, message, messages.WARNING)
        LogEntry.objects.log_actions(
            str(request.user.pk), [session], DELETION, _("Closed."), single_object=True
        )
        self._hold_response()
        message = _("Closed. The client opens a new session when it next calls.")
        return self._redirect_back(request, message, messages.SUCCESS)

    def cancel_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Cancel a call in whichever process runs it; that process tells its client."""
        if refused := self._refusal_response(request):
            return refused
        rows = Stream.objects.open().filter(pk=key).select_related("session")
        stream = rows.first()
        if stream is None:
            message = _("This call is over already.")
            return self._redirect_back(request, message, messages.WARNING)
        if not Worker.objects.live().filter(pk=stream.owner).exists():
            message = _(
                "Nobody runs this call any more, because its process does not respond."
            )
            return self._redirect_back(request, message, messages.WARNING)
        message = _("Cancelled a call: %(call)s.") % {"call": call_name(stream)}
        user = str(request.user.pk)
        with transaction.atomic(using=router.db_for_write(Change)):
            for each in request_ids(stream.requests):
                changes.record_stop(stream.session_id, call.request_key(each))
            LogEntry.objects.log_actions(
                user, [stream.session], CHANGE, message, single_object=True
            )
            self._hold_response()
        level = messages.SUCCESS
        message = _("Cancelled: %(call)s. Its client has been told.")
        if not self._has_ended(stream):
            level = messages.INFO
            message = _(
                "The process that runs %(call)s was told to cancel it. Look"
                " again in a moment."
            )
        message %= {"call": call_name(stream)}
        return self._redirect_back(request, message, level)

    def _has_ended(self, stream: Stream) -> bool:
        """Wait briefly for a call to end, except inside an uncommitted transaction."""
        using = router.db_for_write(Stream)
        row = Stream.objects.open().using(using).filter(pk=stream.pk)
        end = time.monotonic() + PATIENCE_S
        while row.exists():
            if connections[using].in_atomic_block or time.monotonic() >= end:
                return False
            time.sleep(LOOK_S)
        return True

    def _refusal_response(self, request: HttpRequest) -> HttpResponse | None:
        """Return 405 unless it is a POST, else None; raise 403 if not allowed."""
        if not (self.has_view_permission(request) and has_right(request, CLOSE)):
            raise PermissionDenied(lacking_sentence(CLOSE))
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        return None

    def _redirect_back(
        self, request: HttpRequest, message: str, level: int
    ) -> HttpResponse:
        self.message_user(request, message, level)
        return HttpResponseRedirect(reverse("admin:mcp_app_session_live"))
