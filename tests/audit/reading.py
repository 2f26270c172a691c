"""Reading what a process under test has kept of its calls."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from mcp_app.models import Call, CallStatistic
from mcp_app.models.calls import BOUNDS_MS, HOUR_S, MINUTE_S
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process

PATIENCE_S: Final = 60


async def kept(process: Process) -> list[Call]:
    """Return all calls, in their order, once they are written."""
    audit = process.audit
    assert audit is not None
    async with asyncio.timeout(PATIENCE_S):
        while audit.has_pending:
            audit.write_pending()
            await asyncio.sleep(0.001)
    return await writer.run(lambda: list(Call.objects.order_by("time_ms", "id")))


async def counted() -> dict[tuple[str, str, str, str], int]:
    return await writer.run(totals)


def totals(column: str = "calls") -> dict[tuple[str, str, str, str], int]:
    """Add up the hours; the minutes must say the same."""
    by_span: dict[int, dict[Any, int]] = {HOUR_S: {}, MINUTE_S: {}}
    for row in CallStatistic.objects.all():
        found = by_span[row.seconds]
        key = row.server, row.kind, row.name, row.outcome
        found[key] = found.get(key, 0) + getattr(row, column)
        buckets = [getattr(row, f"to_{bound}") for bound in BOUNDS_MS]
        assert sum(buckets) + row.longer == row.calls
        assert row.start_ms % (row.seconds * 1_000) == 0
    assert by_span[HOUR_S] == by_span[MINUTE_S]
    return by_span[HOUR_S]
