"""Expired calls and counters."""

from __future__ import annotations

from typing import Final

from mcp_app.conf import Limits
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.calls import HOUR_S, MINUTE_S
from mcp_app.models.clock import NowMilliseconds
from mcp_app.models.expiry import ExpiredRows, expired_rows

MINUTES_KEPT_MS: Final = 2 * HOUR_S * 1_000
"""How long counters by the minute are kept: for the current hour and the one before."""
WRITERS_KEPT_MS: Final = 7 * 24 * HOUR_S * 1_000
"""Longer than any process retries a commit whose outcome it does not know."""


def expired_calls(limits: Limits) -> list[ExpiredRows]:
    """Return the expired rows, table by table."""
    now = NowMilliseconds()
    calls = Call.objects.older_than(now - int(limits.calls_kept * 1_000))
    hours = CallStatistic.objects.older_than(
        HOUR_S, now - int(limits.statistics_kept * 1_000)
    )
    minutes = CallStatistic.objects.older_than(MINUTE_S, now - MINUTES_KEPT_MS)
    writers = CallWriter.objects.older_than(now - WRITERS_KEPT_MS)
    return [
        expired_rows("calls", calls.order_by("time_ms")),
        expired_rows("counters by the hour", hours.order_by("start_ms")),
        expired_rows("counters by the minute", minutes.order_by("start_ms")),
        expired_rows("writers of calls", writers.order_by("pk")),
    ]
