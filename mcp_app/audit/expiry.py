"""Calls that are kept no longer, and their counters."""

from __future__ import annotations

from typing import Final

from mcp_app.conf import Limits
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.calls import HOUR_S, MINUTE_S
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
        expired("counters by the hour", hours.order_by("start_ms")),
        expired("counters by the minute", minutes.order_by("start_ms")),
        expired("writers of calls", writers.order_by("pk")),
    ]
