"""Ends streams that nobody else will end, so that their clients do not wait for ever.

They belong to processes that died, or are unknown to their own process.

A process is dead if its row has not changed while it was watched
(`invalidation.peers`).  No call runs again, because nobody knows whether it had an
effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final
from uuid import uuid4

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

from mcp_app.invalidation.peers import Owner
from mcp_app.models import Session, Stream, Worker
from mcp_app.models.appends import Addition
from mcp_app.models.streams import StreamQuerySet
from mcp_app.models.transactions import own_transaction
from mcp_app.protocol.errors import InternalError
from mcp_app.streams.final_message import UNSTORED, final_message, is_batch
from mcp_app.streams.request_log import ABORTED

AT_ONCE: Final = 20
"""Streams that one claim takes, and dead processes that it considers: other processes
take the rest."""
NO_ROW: Final = Value(None, output_field=BigIntegerField())
TRUE: Final = Value(True, output_field=BooleanField())


def owners() -> list[Owner]:
    """Return the processes that have a row, an open stream, or a session; blocks."""
    using = router.db_for_write(Stream)
    running = Stream.objects.open().using(using)
    held = Session.objects.held().using(using)
    own = running.filter(owner=OuterRef("pk"))
    holds = held.filter(holder=OuterRef("pk"))
    needed = ExpressionWrapper(Q(Exists(own)) | Q(Exists(holds)), BooleanField())
    rows = Worker.objects.using(using).values_list("pk", "seen_ms", needed)
    keys = Worker.objects.using(using).values("pk")
    gone = running.exclude(owner__in=keys).values_list("owner", NO_ROW, TRUE)
    left = held.exclude(holder__in=keys).values_list("holder", NO_ROW, TRUE)
    return [
        (key, seen_ms, bool(runs))
        for key, seen_ms, runs in rows.order_by().union(
            gone.order_by(), left.order_by()
        )
    ]


def orphans(dead: Mapping[str, int | None]) -> StreamQuerySet:
    """Return the open streams of processes that were watched and are dead."""
    return Stream.objects.open().filter(of_the_dead("owner", dead))


def of_the_dead(column: str, dead: Mapping[str, int | None]) -> Q:
    """Return the condition that a column names one of the dead.

    `dead` has `seen_ms` of their rows, None for no row.  A process that has renewed its
    row since then is excluded, and keeps what it has.
    """
    silent = Q(pk=None)
    for key, seen_ms in dead.items():
        if seen_ms is not None:
            silent |= Q(pk=key, seen_ms=seen_ms)
    without = [key for key, seen_ms in dead.items() if seen_ms is None]
    rows = Worker.objects.filter(silent).values("pk")
    named = Q(**{f"{column}__in": without})
    known = Q(**{f"{column}__in": Worker.objects.values("pk")})
    return Q(**{f"{column}__in": rows}) | (named & ~known)


def claim(owner: str, dead: Mapping[str, int | None]) -> int:
    """Give some orphans their last message; return how many; blocks.

    From then on, a process that owned them cannot add to them if it comes back.
    """
    some = dict(islice(dead.items(), AT_ONCE))
    return _ended(orphans(some), owner, _of_the_dead)


def open_streams(owner: str) -> list[str]:
    """Return the public ids of the open streams that a process owns; blocks."""
    rows = Stream.objects.open().current().filter(owner=owner)
    return list(rows.values_list("public_id", flat=True))


def end_own(owner: str, public_ids: Sequence[str]) -> int:
    """Give some of the owner's streams a last message; return how many; blocks.

    Their messages could not be stored, and the owner does not know them any more.
    """
    rows = Stream.objects.open().filter(owner=owner, public_id__in=public_ids)
    return _ended(rows, owner, _unstored)


def _ended(rows: StreamQuerySet, owner: str, words: Callable[[Stream], bytes]) -> int:
    using = router.db_for_write(Stream)
    skip = connections[using].features.has_select_for_update_skip_locked
    rows = rows.using(using)
    if not rows.exists():
        return 0
    with own_transaction(using):
        locked = rows.select_for_update(skip_locked=skip)
        taken = list(locked.order_by("pk")[:AT_ONCE])
        own = Stream.objects.using(using)
        own.filter(pk__in=[stream.pk for stream in taken]).update(owner=owner)
        ends = [_end(stream, words(stream)) for stream in taken]
        own.append(ends, owner, uuid4().hex)
    return len(taken)


def _end(stream: Stream, text: bytes) -> Addition:
    seq, size = stream.head_seq + 1, len(text)
    payload = (seq, text.decode(), size)
    return Addition(None, stream.pk, seq, stream.size + size, ABORTED, [payload])


def _unstored(stream: Stream) -> bytes:
    return final_message(stream.requests, UNSTORED)


def _of_the_dead(stream: Stream) -> bytes:
    """Return the error; a batch is never `retryable`, as parts of it may have run."""
    repeatable = stream.request_key is None and not is_batch(stream.requests)
    error = InternalError(
        "The worker that ran this call is gone. Nobody knows whether the call had an"
        " effect.",
        {"retryable": repeatable},
    )
    return final_message(stream.requests, error)
