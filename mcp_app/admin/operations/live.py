"""The live page, with its buttons that close sessions and cancel calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.page.concurrency import SettledAdmin, has_right, lacking_sentence
from mcp_app.admin.page.header import client_of, session_user_name, user_names
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


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """A process, with what its last heartbeat reported."""

    name: str
    live: bool
    seen: Moment
    started: Moment
    streams: Mapping[str, int]
    logged: int
    calls: Mapping[str, int]
    lost: int
    dropped: int
    secrets: int
    code: str
    is_other: bool
    """Whether this process is live and live processes run different code."""

    @property
    def tells(self) -> bool:
        """Whether the report is current; a process of an older release sends none."""
        return self.live and bool(self.code)

    @property
    def open_streams(self) -> int:
        return sum(self.streams.values())

    @property
    def other_calls(self) -> int:
        return sum(self.calls.values())


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session; `listens` is None if a process did not report all sessions."""

    pk: int
    handle: str
    client: str
    who: str
    server: str
    revision: str
    seen: Moment
    opened: Moment
    listens: bool | None
    close_url: str


@dataclass(frozen=True, slots=True)
class CallLine:
    """An open call that has a row."""

    tool: str
    client: str
    who: str
    server: str
    began: Moment
    messages: int
    worker: str
    live: bool
    cancel_url: str


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


def _worker_line(worker: Any, logged: Mapping[str, int], differ: bool) -> WorkerLine:
    report = worker.report_of_process()
    live = worker.age_seen_ms <= LIVE_MS
    return WorkerLine(
        name=_process_name(worker),
        live=live,
        seen=_moment_ago(worker.age_seen_ms),
        started=_moment_ago(worker.age_started_ms),
        streams=report.streams,
        logged=logged.get(worker.pk, 0),
        calls=report.calls,
        lost=report.lost,
        dropped=report.dropped,
        secrets=report.secrets,
        code=report.code[:HANDLE],
        is_other=live and differ,
    )


def sessions_context() -> dict[str, object]:
    """Return the context of the part about sessions; the last seen come first."""
    rows = Session.objects.order_by("-seen_ms", "-pk")
    columns = rows.defer("capabilities")
    first_rows = list(_with_ages(columns, "seen_ms", "created_ms")[: SHOWN + 1])
    names = user_names(each.user_id for each in first_rows[:SHOWN])
    reports = (
        [each.report_of_process() for each in Worker.objects.live()]
        if first_rows
        else []
    )
    listening = {pk for report in reports for pk in report.sessions}
    # A process of an older release reports nothing.
    all_reported = all(
        report.code and len(report.sessions) < MOST_SESSIONS for report in reports
    )
    lines = [
        SessionLine(
            pk=each.pk,
            handle=each.digest[:HANDLE],
            client=client_of(each),
            who=session_user_name(each, names),
            server=visible(each.server),
            revision=each.revision,
            seen=_moment_ago(each.age_seen_ms),
            opened=_moment_ago(each.age_created_ms),
            listens=True if each.pk in listening else (False if all_reported else None),
            close_url=reverse("admin:mcp_app_session_close", args=[each.pk]),
        )
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
    owners = _owners_by_key(each.owner for each in displayed)
    lines = [_call_line(each, names, owners.get(each.owner)) for each in displayed]
    return {"calls": lines, "more": _more_text(rows, first_rows)}


def _owners_by_key(keys: Iterable[str]) -> dict[str, Any]:
    wanted = set(keys)
    if not wanted:
        return {}
    rows = Worker.objects.filter(pk__in=wanted).defer("report")
    return {each.pk: each for each in _with_ages(rows, "seen_ms")}


def _call_line(stream: Any, names: dict[str, str], owner: Any) -> CallLine:
    live = owner is not None and owner.age_seen_ms <= LIVE_MS
    return CallLine(
        tool=call_name(stream),
        client=client_of(stream.session),
        who=session_user_name(stream.session, names),
        server=visible(stream.session.server),
        began=_moment_ago(stream.age_created_ms),
        messages=stream.head_seq,
        worker=_("a process that is gone") if owner is None else _process_name(owner),
        live=live,
        cancel_url=reverse("admin:mcp_app_session_cancel", args=[stream.pk]),
    )


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
            return self._live_page(request, context)
        if part not in PARTS:
            raise Http404(_("This page has no such part."))
        template = f"admin/mcp_app/includes/live_{part}.html"
        return TemplateResponse(request, template, {**context, **PARTS[part]()})

    def _live_page(
        self, request: HttpRequest, context: Mapping[str, object]
    ) -> HttpResponse:
        both = {
            **self.admin_site.each_context(request),
            **context,
            "opts": self.opts,
            "media": MEDIA,
            "title": _("What happens now"),
            "updated": now(),
            "parts": {name: build() for name, build in PARTS.items()},
        }
        return TemplateResponse(request, "admin/mcp_app/live.html", both)

    def close_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Close a session in every process, as if its client had closed it."""
        if refused := self._refusal_response(request):
            return refused
        session = Session.objects.filter(pk=key).first()
        if session is None or not self._close_session(request, session):
            message = _("This session is closed already.")
            return self._redirect_back(request, message, messages.WARNING)
        message = _("Closed. The client opens a new session when it next calls.")
        return self._redirect_back(request, message, messages.SUCCESS)

    def _close_session(self, request: HttpRequest, session: Session) -> bool:
        """Close a session and log it; return whether it was still open."""
        _total, gone = Session.objects.filter(pk=session.pk).delete()
        if not gone.get(Session._meta.label):
            return False
        LogEntry.objects.log_actions(
            str(request.user.pk), [session], DELETION, _("Closed."), single_object=True
        )
        self._hold_response()
        return True

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
        self._cancel_call(request, stream)
        if self._has_ended(stream):
            message = _("Cancelled: %(call)s. Its client has been told.")
            level = messages.SUCCESS
        else:
            message = _(
                "The process that runs %(call)s was told to cancel it. Look"
                " again in a moment."
            )
            level = messages.INFO
        return self._redirect_back(
            request, message % {"call": call_name(stream)}, level
        )

    def _cancel_call(self, request: HttpRequest, stream: Stream) -> None:
        with transaction.atomic(using=router.db_for_write(Change)):
            for each in request_ids(stream.requests):
                changes.record_stop(stream.session_id, call.request_key(each))
            message = _("Cancelled a call: %(call)s.") % {"call": call_name(stream)}
            LogEntry.objects.log_actions(
                str(request.user.pk),
                [stream.session],
                CHANGE,
                message,
                single_object=True,
            )
            self._hold_response()

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
