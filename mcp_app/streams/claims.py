"""Ends streams that nobody else will end, so that their clients do not wait for ever.

Such streams belong to processes that died, or are unknown to their own process.

A process is dead if its row has not changed while it was watched
(`invalidation.workers`).  No call runs again, because nobody knows whether it had an
effect.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final
from uuid import uuid4

from django.db import Error as DatabaseError
from django.db import connections, router
from django.db.models import (
    BigIntegerField,
    BooleanField,
    Exists,
    ExpressionWrapper,
    OuterRef,
    Q,
    Value,
)

from mcp_app.invalidation.workers import Owner
from mcp_app.models import Session, Stream, Task, Worker
from mcp_app.models.appends import Addition
from mcp_app.models.streams import StreamQuerySet
from mcp_app.models.transactions import own_transaction
from mcp_app.protocol.errors import InternalError, Unavailable
from mcp_app.streams.event_ids import UNSTORED, answers_batch, final_message
from mcp_app.streams.request_log import ABORTED


class Trouble:
    """Logs failures of an operation that is tried many times a second."""

    def __init__(self, logger: logging.Logger, what: str) -> None:
        """`what` says what fails: "Streams could not be read"."""
        self._logger = logger
        self._what = what
        self._since = 0.0
        self._logged_kinds: set[type[Exception]] = set()

    def report_failure(self, error: Exception) -> None:
        """Log an outage, and each kind of error, once until it is over."""
        away = isinstance(error, DatabaseError | Unavailable)
        # In an outage a database may raise different exceptions.
        kind = Unavailable if away else type(error)
        if kind in self._logged_kinds:
            return
        if not self._logged_kinds:
            self._since = time.monotonic()
        self._logged_kinds.add(kind)
        if away:
            self._logger.warning("%s: %r", self._what, error.__cause__ or error)
        else:
            self._logger.error("%s.", self._what, exc_info=error)

    def report_success(self) -> None:
        """Note a success, and log the end of what was logged before."""
        # It is a warning, like the outage: if the beginning is shown, so is the end.
        if self._logged_kinds:
            self._logged_kinds.clear()
            lasted = time.monotonic() - self._since
            self._logger.warning("%s for %.1f s. It works again.", self._what, lasted)


AT_ONCE: Final = 20
"""Streams that one claim takes, and dead processes that it considers: other processes
take the rest."""
NO_ROW: Final = Value(None, output_field=BigIntegerField())
TRUE: Final = Value(True, output_field=BooleanField())


def stream_owners() -> list[Owner]:
    """Return the processes that have a row, a stream, a session or a task; blocks."""
    using = router.db_for_write(Stream)
    running = Stream.objects.open().using(using)
    streaming_sessions = Session.objects.held().using(using)
    streams = running.filter(owner=OuterRef("pk"))
    tasks = Task.objects.still_open().using(using).exclude(owner="")
    runs_task = tasks.filter(owner=OuterRef("pk"))
    holds = streaming_sessions.filter(holder=OuterRef("pk"))
    needed = ExpressionWrapper(
        Q(Exists(streams)) | Q(Exists(holds)) | Q(Exists(runs_task)), BooleanField()
    )
    rows = Worker.objects.using(using).values_list("pk", "seen_ms", needed)
    keys = Worker.objects.using(using).values("pk")
    of_streams = running.exclude(owner__in=keys).values_list("owner", NO_ROW, TRUE)
    of_sessions = streaming_sessions.exclude(holder__in=keys).values_list(
        "holder", NO_ROW, TRUE
    )
    abandoned = tasks.exclude(owner__in=keys).values_list("owner", NO_ROW, TRUE)
    return [
        (key, heartbeat_ms, bool(runs))
        for key, heartbeat_ms, runs in rows.order_by().union(
            of_streams.order_by(), of_sessions.order_by(), abandoned.order_by()
        )
    ]


def orphaned_streams(dead: Mapping[str, int | None]) -> StreamQuerySet:
    """Return the open streams of processes that were watched and are dead."""
    return Stream.objects.open().filter(of_the_dead("owner", dead))


def of_the_dead(column: str, dead: Mapping[str, int | None]) -> Q:
    """Return the condition that a column names one of the dead.

    `dead` has `seen_ms` of their rows, None for no row.  A process that has renewed its
    row since then is excluded, and keeps what it has.
    """
    # No row has this key, so the condition begins with nothing.
    silent = Q(pk=None)
    for key, heartbeat_ms in dead.items():
        if heartbeat_ms is not None:
            silent |= Q(pk=key, seen_ms=heartbeat_ms)
    rowless_keys = [key for key, heartbeat_ms in dead.items() if heartbeat_ms is None]
    rows = Worker.objects.filter(silent).values("pk")
    without_row = Q(**{f"{column}__in": rowless_keys})
    with_row = Q(**{f"{column}__in": Worker.objects.values("pk")})
    return Q(**{f"{column}__in": rows}) | (without_row & ~with_row)


def claim_orphans(owner: str, dead: Mapping[str, int | None]) -> int:
    """Give some orphans their last message; return how many; blocks.

    From then on, a process that owned them cannot add to them if it comes back.
    """
    portion = dict(islice(dead.items(), AT_ONCE))
    return _end_streams(orphaned_streams(portion), owner, _error_of_dead)


def open_streams(owner: str) -> list[str]:
    """Return the public ids of the open streams that a process owns; blocks."""
    rows = Stream.objects.open().current().filter(owner=owner)
    return list(rows.values_list("public_id", flat=True))


def end_own_streams(owner: str, public_ids: Sequence[str]) -> int:
    """Give some of the owner's streams a last message; return how many; blocks.

    Their messages could not be stored, and the owner does not know them any more.
    """
    rows = Stream.objects.open().filter(owner=owner, public_id__in=public_ids)
    return _end_streams(rows, owner, lambda _: UNSTORED)


def _end_streams(
    rows: StreamQuerySet, owner: str, error_of: Callable[[Stream], InternalError]
) -> int:
    using = router.db_for_write(Stream)
    skip = connections[using].features.has_select_for_update_skip_locked
    rows = rows.using(using)
    if not rows.exists():
        return 0
    with own_transaction(using):
        locked = rows.select_for_update(skip_locked=skip)
        claimed = list(locked.order_by("pk")[:AT_ONCE])
        streams = Stream.objects.using(using)
        streams.filter(pk__in=[stream.pk for stream in claimed]).update(owner=owner)
        ends = [_final_addition(stream, error_of(stream)) for stream in claimed]
        streams.append(ends, owner, uuid4().hex)
    return len(claimed)


def _final_addition(stream: Stream, error: InternalError) -> Addition:
    text = final_message(stream.requests, error)
    seq, size = stream.head_seq + 1, len(text)
    payload = (seq, text.decode(), size)
    return Addition(None, stream.pk, seq, stream.size + size, ABORTED, [payload])


def _error_of_dead(stream: Stream) -> InternalError:
    # Parts of a batch may have run.
    repeatable = stream.request_key is None and not answers_batch(stream.requests)
    return InternalError(
        "The worker that ran this call is gone. Nobody knows whether the call had an"
        " effect.",
        {"retryable": repeatable},
    )
