"""Rows of the audit, for tests."""

from __future__ import annotations

from itertools import count
from typing import Any

from mcp_app.models import Call, CallStatistic
from mcp_app.models.transactions import NowMilliseconds

_names = count()


def call(**columns: Any) -> Call:
    texts = dict.fromkeys((*Call.SHARED, *Call.OWN), "")
    numbers = ("version", "time_ms", "took_us", "size", "arguments_size")
    given = {**texts, **dict.fromkeys(numbers, 0), **columns}
    made: Call = Call.objects.create(**given)
    return made


def counter(seconds: int, age_ms: int) -> None:
    CallStatistic.objects.create(
        seconds=seconds,
        start_ms=NowMilliseconds() - age_ms,
        server="default",
        kind="tool",
        name=f"tool{next(_names)}",
        outcome="answered",
    )
