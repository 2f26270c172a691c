"""Calls that are kept no longer, and their counters."""

from __future__ import annotations

from functools import partial
from typing import Final

from django.db import models, router

from mcp_app.conf import Limits
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.calls import HOUR_S, MINUTE_S, CallStatisticQuerySet
from mcp_app.models.clock import NowMilliseconds
from mcp_app.models.expired import Expired, expired

MINUTES_KEPT_MS: Final = 2 * HOUR_S * 1_000
"""How long calls are counted by the minute: the hour that runs, and the one before."""
WRITERS_KEPT_MS: Final = 7 * 24 * HOUR_S * 1_000
"""Longer than any process waits to learn whether a commit was one."""


def expired_calls(limits: Limits) -> list[Expired]:
    """Return what goes with time."""
    now = NowMilliseconds()
    calls = Call.objects.older_than(now - int(limits.calls_kept * 1_000))
    hours = CallStatistic.objects.older_than(
        HOUR_S, now - int(limits.statistics_kept * 1_000)
    )
    minutes = CallStatistic.objects.older_than(MINUTE_S, now - MINUTES_KEPT_MS)
    writers = CallWriter.objects.older_than(now - WRITERS_KEPT_MS)
    return [
        expired("calls", calls.order_by("time_ms")),
        _counters("counters by the hour", hours),
        _counters("counters by the minute", minutes),
        expired("writers of calls", writers.order_by("pk")),
    ]


def _counters(what: str, rows: CallStatisticQuerySet) -> Expired:
    return Expired(what, rows.count, partial(_remove, rows))


def _remove(rows: CallStatisticQuerySet) -> int:
    """Delete the oldest hour: what stands together is found together."""
    rows = rows.using(router.db_for_write(CallStatistic))
    oldest = rows.aggregate(start_ms=models.Min("start_ms"))["start_ms"]
    if oldest is None:
        return 0
    removed, _ = rows.filter(start_ms__lt=oldest + HOUR_S * 1_000).delete()
    return removed
