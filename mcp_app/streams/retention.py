"""Which rows of sessions have expired; trims the streams of finished requests.

The last message, the answer, always stays: a request that is sent again gets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from django.db import router
from django.db.models import F, Q

from mcp_app.conf import Limits
from mcp_app.models import Event, LoggedMessage, Once, Question, Session, Stream
from mcp_app.models.expiry import ExpiredRows, expired_rows
from mcp_app.models.sessions import SessionQuerySet
from mcp_app.models.streams import MAX_DELETED, StreamQuerySet, delete_first
from mcp_app.models.transactions import NowMilliseconds, own_transaction

STEPS_KEPT_MS = 24 * 3_600_000
"""How long a step is remembered: longer than any chain of retries lasts."""
STREAMS_KEPT_MS = 3_600_000
"""How long a client may come back for an answer, or send its request again."""
SLACK_MS = 60_000
"""Nobody waits for an answer for longer than this after its deadline."""
LOGGED_BATCH_SIZE = 100
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
    steps = Once.objects.older_than(
        now - max(STEPS_KEPT_MS, int(limits.tasks_kept * 1_000))
    )
    messages = LoggedMessage.objects.filter(created_ms__lt=now - STREAMS_KEPT_MS)
    return [
        _with_messages("sessions", sessions.order_by("pk")),
        _with_messages("anonymous sessions", strangers.order_by("pk")),
        expired_rows("questions", questions.order_by("created_ms")),
        _with_messages("streams", streams.order_by("ended_ms", "pk")),
        ExpiredRows(
            "messages of streams", count_excess, lambda: trim_streams() or None
        ),
        expired_rows(
            "log messages", messages.order_by("created_ms"), LOGGED_BATCH_SIZE
        ),
        expired_rows("steps", steps.order_by("created_ms")),
    ]


def _with_messages(what: str, rows: SessionQuerySet | StreamQuerySet) -> ExpiredRows:
    """Return rows whose messages are deleted first, in transactions of their own."""
    return ExpiredRows(what, rows.count, rows.remove_some)


MAX_EVENTS: Final = 1_000
MAX_BYTES: Final = 4 * 1024 * 1024
"""Limits of a stream that has ended."""
AT_ONCE: Final = 100
"""Streams that one statement finds."""
STREAMS_PER_RUN: Final = 50
"""Streams that one run trims, a transaction each; then other work gets the thread."""


def count_excess() -> int:
    """Return how many messages of ended streams exceed the limits; blocks."""
    return sum(_retention_floor(each) - each.floor_seq for each in _too_large())


def trim_streams() -> int:
    """Delete some messages beyond the limits; return how many, 0 at the end; blocks."""
    deleted = 0
    excessive = (
        each for each in _too_large() if _retention_floor(each) > each.floor_seq
    )
    for stream in islice(excessive, STREAMS_PER_RUN):
        deleted += _trim_stream(stream.pk)
        if deleted >= MAX_DELETED:
            break
    return deleted


def _too_large() -> Iterator[Stream]:
    ended = Stream.objects.current().sized().filter(ended_ms__isnull=False)
    large = ended.filter(
        Q(head_seq__gt=F("floor_seq") + MAX_EVENTS) | Q(size__gt=MAX_BYTES)
    )
    # One message may be larger than the limit.
    large = large.filter(head_seq__gt=F("floor_seq") + 1)
    # Messages of HTTP+SSE are deleted once they are sent, and not before.
    large = large.filter(session__holder="")
    last = 0
    while rows := list(large.filter(pk__gt=last).order_by("pk")[:AT_ONCE]):
        yield from rows
        last = rows[-1].pk


def _retention_floor(stream: Stream) -> int:
    """Return the number of the last message to delete; the newest always stays."""
    rows = Event.objects.current().filter(stream_id=stream.pk)
    newest = rows.order_by("-seq").values_list("seq", "size")[:MAX_EVENTS]
    retained, floor = 0, stream.head_seq
    for seq, size in newest:
        if retained and retained + size > MAX_BYTES:
            break
        retained, floor = retained + size, seq - 1
    return floor


def _trim_stream(key: int) -> int:
    """Delete a portion of a stream's messages; return how many."""
    using = router.db_for_write(Stream)
    with own_transaction(using):
        rows = Stream.objects.using(using).filter(pk=key)
        stream = rows.select_for_update().sized().first()
        if stream is None:
            # Another process was quicker.
            return 0
        return delete_first(using, stream, _retention_floor(stream))
