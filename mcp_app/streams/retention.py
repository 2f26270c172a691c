"""Trims the streams of finished requests: their oldest messages are deleted first.

The last message, the answer, always stays: a request that is sent again gets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from django.db import router
from django.db.models import F, Q

from mcp_app.models import Event, Stream
from mcp_app.models.streams import MESSAGES, throw_first
from mcp_app.models.transactions import own_transaction

EVENTS: Final = 1_000
BYTES: Final = 4 * 1024 * 1024
"""Limits of a stream that has ended."""
AT_ONCE: Final = 100
"""Streams that one statement finds."""
STREAMS: Final = 50
"""Streams that are trimmed, with a transaction each, before others may write."""


def too_much() -> int:
    """Return how many messages of ended streams exceed the limits; blocks."""
    return sum(_kept(each)[0] - each.floor_seq for each in _too_large())


def trim() -> int:
    """Delete some messages beyond the limits; blocks.

    Returns how many, 0 when nothing is left.
    """
    thrown = 0
    for stream in islice(_too_much(), STREAMS):
        thrown += _thrown(stream.pk)
        if thrown >= MESSAGES:
            break
    return thrown


def _too_much() -> Iterator[Stream]:
    return (each for each in _too_large() if _kept(each)[0] > each.floor_seq)


def _too_large() -> Iterator[Stream]:
    ended = Stream.objects.current().sized().filter(ended_ms__isnull=False)
    large = ended.filter(Q(head_seq__gt=F("floor_seq") + EVENTS) | Q(size__gt=BYTES))
    # One message may be larger than the limit.
    large = large.filter(head_seq__gt=F("floor_seq") + 1)
    # Those of HTTP+SSE are deleted once they are sent, and not before.
    large = large.filter(session__holder="")
    last = 0
    while some := list(large.filter(pk__gt=last).order_by("pk")[:AT_ONCE]):
        yield from some
        last = some[-1].pk


def _kept(stream: Stream) -> tuple[int, int]:
    """Return the number of the last message to delete, and the bytes of the rest."""
    rows = Event.objects.current().filter(stream_id=stream.pk)
    newest = rows.order_by("-seq").values_list("seq", "size")[:EVENTS]
    kept, floor = 0, stream.head_seq
    for seq, size in newest:
        if kept + size > BYTES and floor < stream.head_seq:
            break
        kept, floor = kept + size, seq - 1
    return floor, kept


def _thrown(key: int) -> int:
    """Delete a portion of a stream's messages; return how many."""
    using = router.db_for_write(Stream)
    with own_transaction(using):
        rows = Stream.objects.using(using).filter(pk=key)
        stream = rows.select_for_update().sized().first()
        # Another process may have been quicker.
        return 0 if stream is None else throw_first(using, stream, _kept(stream)[0])
