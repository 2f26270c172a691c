"""Delete streams, messages and questions of sessions that end, without loading them."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import models

from mcp_app.models import streams
from mcp_app.models.appends import OPEN
from mcp_app.models.expiry import delete_rows
from mcp_app.models.questions import Question
from mcp_app.models.streams import AT_ONCE, Event, LoggedMessage, Stream
from mcp_app.models.transactions import NowMilliseconds, own_transaction


def empty_some(using: str, sessions: Sequence[int]) -> bool:
    """Delete a portion of the messages of sessions that are about to be deleted.

    The streams are closed before; their rows stay, so that no call runs again.
    Returns False if so few messages are left that they can go with their sessions.
    """
    with own_transaction(using):
        all_rows = Stream.objects.using(using).filter(session_id__in=sessions)
        stored = models.F("head_seq") - models.F("floor_seq")
        total = all_rows.aggregate(messages=models.Sum(stored), size=models.Sum("size"))
        messages, size = total["messages"] or 0, total["size"] or 0
        if messages <= streams.MAX_DELETED and size <= streams.MAX_DELETED_BYTES:
            return False
        full = all_rows.filter(head_seq__gt=models.F("floor_seq")).order_by("pk")
        batch = list(full.select_for_update().sized()[:AT_ONCE])
        rows = Stream.objects.using(using)
        open_ones = rows.filter(pk__in=[each.pk for each in batch], state=OPEN)
        open_ones.update(state=Stream.State.CLOSED, ended_ms=NowMilliseconds())
        emptied = streams.delete_messages(using, batch)
        rows.filter(pk__in=emptied).update(floor_seq=models.F("head_seq"), size=0)
    return True


def erase_session_rows(using: str, sessions: Sequence[int]) -> None:
    """Delete what belongs to sessions, whose rows are locked by the caller."""
    rows = Stream.objects.using(using).filter(session_id__in=sessions).order_by("pk")
    locked = list(rows.select_for_update().sized())
    with_messages = [each.pk for each in locked if each.head_seq > each.floor_seq]
    delete_rows(using, Event, with_messages, "stream_id")
    delete_rows(using, Stream, [each.pk for each in locked])
    for model in (Question, LoggedMessage):
        delete_rows(using, model, sessions, "session_id")
