"""Ending the streams that nobody else will end: their clients must not wait for ever.

They are those of processes that died, and those that their process knows no more.

Nothing is run again: whether the call had an effect is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from uuid import uuid4

from django.db import connections, router

from mcp_app.models import Stream, Worker
from mcp_app.models.appends import OPEN, Addition
from mcp_app.models.streams import StreamQuerySet
from mcp_app.models.transactions import own_transaction
from mcp_app.protocol.errors import InternalError
from mcp_app.streams.last_words import is_batch, last_words
from mcp_app.streams.request_log import ABORTED, UNSTORED

AT_ONCE: Final = 20
"""Streams that one claim takes: other processes take the others."""


def orphans() -> StreamQuerySet:
    """Return the open streams whose owner has not said for long that it lives."""
    live = Worker.objects.live().values("pk")
    return Stream.objects.filter(ended_ms=None, state=OPEN).exclude(owner__in=live)


def claim(owner: str) -> int:
    """Give some orphans their last message; return how many; blocks.

    From then on whoever owned them adds nothing: it comes back to streams that are
    another's.
    """
    return _ended(orphans(), owner, _of_the_dead)


def open_streams(owner: str) -> list[str]:
    """Return the public ids of the streams that a process has not ended; blocks."""
    rows = Stream.objects.current().filter(ended_ms=None, state=OPEN, owner=owner)
    return list(rows.values_list("public_id", flat=True))


def end_own(owner: str, public_ids: Sequence[str]) -> int:
    """Give some of the owner's streams a last message; return how many; blocks.

    They are those that it knows no more: what they said could not be stored.
    """
    rows = Stream.objects.filter(ended_ms=None, state=OPEN, owner=owner)
    return _ended(rows.filter(public_id__in=public_ids), owner, _unstored)


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
    return last_words(stream.requests, UNSTORED)


def _of_the_dead(stream: Stream) -> bytes:
    """Say that nobody knows; of a batch some may have run that must not run twice."""
    repeatable = stream.request_key is None and not is_batch(stream.requests)
    error = InternalError(
        "The worker that ran this call is gone: whether it had an effect is not known.",
        {"retryable": repeatable},
    )
    return last_words(stream.requests, error)
