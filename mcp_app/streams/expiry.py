"""Rows that have outlived their use."""

from __future__ import annotations

from typing import Any

from mcp_app.conf import Limits
from mcp_app.models import Once, Question, Session, Stream
from mcp_app.models.clock import NowMilliseconds

STEPS_KEPT_MS = 24 * 3_600_000
"""How long a step is remembered: longer than any chain of retries lasts."""
STREAMS_KEPT_MS = 3_600_000
"""How long a client may come back for an answer, or send its request again."""
BATCH = 1_000


def remove_expired(limits: Limits) -> int:
    """Delete sessions, streams and steps in batches; blocks.

    Returns how many rows went.
    """
    now = NowMilliseconds()
    sessions = Session.objects.expired(
        seen_before_ms=now - int(limits.session_idle * 1000),
        created_before_ms=now - int(limits.session_age * 1000),
    )
    steps = Once.objects.older_than(now - STEPS_KEPT_MS)
    questions = Question.objects.filter(created_ms__lt=now - STREAMS_KEPT_MS)
    streams = Stream.objects.filter(ended_ms__lt=now - STREAMS_KEPT_MS)
    return sum(map(_delete, (sessions, questions, streams, steps)))


def _delete(rows: Any) -> int:
    removed = 0
    while batch := list(rows.values_list("pk", flat=True)[:BATCH]):
        removed += rows.model._default_manager.filter(pk__in=batch).delete()[0]
    return removed
