"""Stops and starts; they have taken effect in every process when these return.

For synchronous code: inside a transaction, its commit waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import router, transaction

from mcp_app.invalidation.workers import hold_after_commit
from mcp_app.models import PublishedRow, Stop
from mcp_app.models.stops import By, Running


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


def stop_rows(rows: Iterable[PublishedRow], *, by: By) -> list[Stop]:
    """Stop these servers or definitions, and cancel their running calls."""
    using = router.db_for_write(Stop)
    with transaction.atomic(using=using):
        made = Stop.objects.using(using).make_many(rows, by=by)
        if made:
            hold_after_commit(using)
    return made


def start(keys: Iterable[int], *, by: By) -> list[Stop]:
    """End these stops, by their keys; return the ones that were still active."""
    using = router.db_for_write(Stop)
    with transaction.atomic(using=using):
        ended = Stop.objects.using(using).end(keys, by=by)
        if ended:
            hold_after_commit(using)
    return ended


def count_cancelled(key: int, calls: int) -> None:
    """Add to the number of calls that a stop has cancelled; blocks."""
    Stop.objects.using(router.db_for_write(Stop)).count_cancelled(key, calls)
