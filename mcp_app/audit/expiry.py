"""Expired calls and counters."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.db import router

from mcp_app.conf import Limits
from mcp_app.interface.call_record import FAILED, REFUSED
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.calls import HOUR_S, MINUTE_S, VALUES_RETENTION_MS, CallQuerySet
from mcp_app.models.expiry import (
    PORTION,
    ExpiredRows,
    claim_rows,
    delete_rows,
    expired_rows,
)
from mcp_app.models.transactions import NowMilliseconds, own_transaction

MINUTE_RETENTION_MS: Final = 2 * HOUR_S * 1_000
"""How long counters by the minute are kept: this hour and the one before."""
WRITER_RETENTION_MS: Final = 7 * 24 * HOUR_S * 1_000
"""Longer than any process retries a commit of unknown outcome."""
RETAINED_FAILURES: Final = 50
"""How many calls of each outcome below are kept longer than all others."""
RETAINED_OUTCOMES: Final = (*REFUSED, *FAILED)


def expired_calls(limits: Limits) -> list[ExpiredRows]:
    now = NowMilliseconds()
    oldest = now - int(limits.calls_kept * 1_000)
    calls = Call.objects.older_than(oldest)
    oldest_hour = now - int(limits.statistics_kept * 1_000)
    hours = CallStatistic.objects.older_than(HOUR_S, oldest_hour)
    minutes = CallStatistic.objects.older_than(MINUTE_S, now - MINUTE_RETENTION_MS)
    writers = CallWriter.objects.older_than(now - WRITER_RETENTION_MS)
    values = Call.objects.with_values().older_than(now - VALUES_RETENTION_MS)
    values = values.order_by("time_ms")
    return [
        ExpiredRows("values of calls", values.count, partial(_clear_portion, values)),
        expired_rows("calls", calls.order_by("time_ms")),
        surplus_calls(limits.calls_rows, oldest),
        expired_rows("counters by the hour", hours.order_by("start_ms")),
        expired_rows("counters by the minute", minutes.order_by("start_ms")),
        expired_rows("writers of calls", writers.order_by("pk")),
    ]


def _clear_portion(rows: CallQuerySet) -> int | None:
    using = router.db_for_write(Call)
    with own_transaction(using):
        claimed = claim_rows(rows.using(using)).values_list("pk", flat=True)
        keys = list(claimed[:PORTION])
        Call.objects.using(using).filter(pk__in=keys).update(arguments="")
    return len(keys) or None


def surplus_calls(limit: int, oldest_ms: Any) -> ExpiredRows:
    """Return the calls above a number; only those since `oldest_ms` are counted."""
    surplus = _Surplus(limit, oldest_ms)
    return ExpiredRows(
        "calls above their number", surplus.count_surplus, surplus.delete_portion
    )


class _Surplus:
    """The oldest calls above a number; the newest of each bad outcome stay.

    The number is counted by keys, because to count rows would read all of them.  So if
    the database skips keys, fewer rows stay.
    """

    def __init__(self, limit: int, oldest_ms: Any) -> None:
        self._limit = limit
        self._oldest_ms = oldest_ms
        self._reached = 0
        """The last key that was looked at."""
        self._settled: tuple[int, frozenset[int]] | None = None

    def count_surplus(self) -> int:
        rows = Call.objects.all()
        end, retained = self._deletion_bounds(rows)
        above = rows.filter(pk__lte=end, time_ms__gte=self._oldest_ms)
        return above.exclude(pk__in=retained).count()

    def delete_portion(self) -> int | None:
        using = router.db_for_write(Call)
        with own_transaction(using):
            rows: Any = Call.objects.using(using)
            end, retained = self._deletion_bounds(rows)
            candidates = rows.filter(pk__gt=self._reached, pk__lte=end).order_by("pk")
            keys = list(claim_rows(candidates).values_list("pk", flat=True)[:PORTION])
            deleted = [key for key in keys if key not in retained]
            delete_rows(using, Call, deleted)
        if not keys:
            return None
        self._reached = keys[-1]
        return len(deleted)

    def _deletion_bounds(self, rows: CallQuerySet) -> tuple[int, frozenset[int]]:
        """Return the last key to delete, and the keys that stay; looked up once."""
        if self._settled is None:
            # One query for both keys would make SQLite read all rows.
            keys = rows.values_list("pk", flat=True)
            oldest, newest = (
                keys.order_by(each).first() or 0 for each in ("pk", "-pk")
            )
            end = newest - self._limit
            # If the limit is small, such failures fill at most half of it.
            share = min(RETAINED_FAILURES, self._limit // (2 * len(RETAINED_OUTCOMES)))
            retained = frozenset(
                key
                for outcome in (RETAINED_OUTCOMES if end >= oldest else ())
                for key in rows.newest_that(outcome, share)
            )
            for key in sorted(retained):
                # For each call that stays, one more of the others is deleted.
                end += key <= end
            self._settled = end, retained
        return self._settled
