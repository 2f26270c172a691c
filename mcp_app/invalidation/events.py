"""Writes into the outbox, from a view, a command, Celery or the shell."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from mcp_app.models import Occurrence
from mcp_app.protocol import jsonrpc

ID_PREFIX = "evt_"


def record_occurrence(
    topic: str,
    data: bytes,
    *,
    event_id: str = "",
    audience: Sequence[str] | None = None,
    cause: str = "",
) -> str:
    """Write that something happened, in the caller's transaction; return its id.

    `data` is JSON.  `audience` has the keys of the only users who are told.
    """
    row = new_occurrence(topic, data, event_id=event_id, cause=cause)
    if audience is not None:
        row.audience = jsonrpc.write(list(audience)).decode()
    Occurrence.objects.record([row])
    return row.event_id


def new_occurrence(
    topic: str, data: bytes, *, event_id: str = "", cause: str = ""
) -> Occurrence:
    """Return a row of the outbox, with an id of ours if the source has none."""
    event_id = event_id or f"{ID_PREFIX}{uuid.uuid4().hex}"
    return Occurrence(topic=topic, event_id=event_id, data=data.decode(), cause=cause)
