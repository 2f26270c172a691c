"""Stopping and starting, true in every process when it has returned.

Whoever calls these is in synchronous code: in a transaction the wait is at its commit.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import router, transaction

from mcp_app.models import PublishedRow, Stop
from mcp_app.models.stops import By, Running
from mcp_app.wakeup.workers import hold_after_commit


def stop(
    scope: str,
    row: PublishedRow | None = None,
    *,
    by: By,
    running: str = Running.CANCEL,
    reason: str = "",
) -> Stop:
    """Stop something; `row` is the server or definition.  Raises `ValidationError`."""
    using = router.db_for_write(Stop)
    with transaction.atomic(using=using):
        made = Stop.objects.using(using).make(
            scope, row, by=by, running=running, reason=reason
        )
        hold_after_commit(using)
    return made


def start(keys: Iterable[int], *, by: By) -> list[Stop]:
    """End these stops, by their keys; return those that were still on."""
    using = router.db_for_write(Stop)
    with transaction.atomic(using=using):
        ended = Stop.objects.using(using).end(keys, by=by)
        if ended:
            hold_after_commit(using)
    return ended


def count_cancelled(key: int, calls: int) -> None:
    """Keep that so many calls were cancelled because of a stop; blocks."""
    Stop.objects.using(router.db_for_write(Stop)).count_cancelled(key, calls)
