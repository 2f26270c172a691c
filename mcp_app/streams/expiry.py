"""Expired rows of sessions, streams, questions, steps and log messages."""

from __future__ import annotations

from mcp_app.conf import Limits
from mcp_app.models import LoggedMessage, Once, Question, Session, Stream
from mcp_app.models.clock import NowMilliseconds
from mcp_app.models.expiry import ExpiredRows, expired_rows
from mcp_app.models.sessions import SessionQuerySet
from mcp_app.models.streams import StreamQuerySet
from mcp_app.streams.retention import too_much, trim

STEPS_KEPT_MS = 24 * 3_600_000
"""How long a step is remembered: longer than any chain of retries lasts."""
STREAMS_KEPT_MS = 3_600_000
"""How long a client may come back for an answer, or send its request again."""
SLACK_MS = 60_000
"""Nobody waits for an answer for longer than this after its deadline."""
LOGGED_AT_ONCE = 100
"""Few, because log messages may be large."""


def expired_streams(limits: Limits) -> list[ExpiredRows]:
    """Return sessions, streams, questions and steps that nobody comes back to."""
    now = NowMilliseconds()
    sessions = Session.objects.expired(
        seen_before_ms=now - int(limits.session_idle * 1000),
        created_before_ms=now - int(limits.session_age * 1000),
    )
    idle_ms = int(limits.anonymous_idle * 1000)
    strangers = Session.objects.anonymous().filter(seen_ms__lt=now - idle_ms)
    waits_ms = int(limits.question_deadline * 1000) + SLACK_MS
    questions = Question.objects.over(now - max(STREAMS_KEPT_MS, waits_ms))
    streams = Stream.objects.filter(ended_ms__lt=now - STREAMS_KEPT_MS)
    steps = Once.objects.older_than(now - STEPS_KEPT_MS)
    messages = LoggedMessage.objects.filter(created_ms__lt=now - STREAMS_KEPT_MS)
    return [
        _with_messages("sessions", sessions.order_by("pk")),
        _with_messages("anonymous sessions", strangers.order_by("pk")),
        expired_rows("questions", questions.order_by("created_ms")),
        _with_messages("streams", streams.order_by("ended_ms", "pk")),
        ExpiredRows("messages of streams", too_much, lambda: trim() or None),
        expired_rows("log messages", messages.order_by("created_ms"), LOGGED_AT_ONCE),
        expired_rows("steps", steps.order_by("created_ms")),
    ]


def _with_messages(what: str, rows: SessionQuerySet | StreamQuerySet) -> ExpiredRows:
    """Return rows whose messages are deleted first, in transactions of their own."""
    return ExpiredRows(what, rows.count, rows.remove_some)
