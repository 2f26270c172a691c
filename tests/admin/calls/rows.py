"""Calls as the audit has written them: rows, and the counters that belong to them."""

from __future__ import annotations

from typing import Any, Final

from django.db import connection
from django.utils.timezone import now

from mcp_app.audit.tallies import Tallies, period_start_ms
from mcp_app.models import Call, CallStatistic
from mcp_app.models.calls import MINUTE_S

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

SHARED: Final[dict[str, Any]] = {
    "server": "default",
    "kind": "tool",
    "name": "book_table",
    "version": 3,
    "outcome": "answered",
    "principal": "token",
    "user_id": "",
    "user_name": "maria",
    "principal_client": "",
    "client_name": "Claude Code",
    "client_version": "2.1",
    "session": "abcdef0123456789",
    "revision": "2025-11-25",
}
OWN: Final[dict[str, Any]] = dict.fromkeys(Call.OWN, "") | {
    "took_us": 12_000,
    "size": 41,
    "arguments_size": 20,
    "arguments_digest": "9c1e" + 24 * "0" + "ab77",
}


def now_ms() -> int:
    return int(now().timestamp() * 1_000)


def write(*calls: dict[str, Any]) -> list[Call]:
    """Write calls as the audit does; `ago_ms` is how long ago each began."""
    tallies, base = Tallies(), now_ms()
    rows: dict[Any, list[Any]] = {}
    for number, columns in enumerate(calls):
        given = {"ago_ms": 1_000 + number, **SHARED, **OWN, **columns}
        given["time_ms"] = given["time_ms"] or base - given["ago_ms"]
        shared = tuple(given[name] for name in Call.SHARED)
        own = tuple(given[name] for name in Call.OWN)
        rows.setdefault(shared, []).append(own)
        subject: Any = tuple(
            given[each] for each in ("server", "kind", "name", "outcome")
        )
        minute = period_start_ms(given["time_ms"], MINUTE_S)
        tallies.add_calls(minute, subject, [given["took_us"]])
    Call.objects.insert(rows)
    CallStatistic.objects.raise_by(tallies.sorted_rows())
    return list(Call.objects.order_by("-time_ms", "-pk"))


def crash(**given: Any) -> dict[str, Any]:
    """Return a call whose code has failed."""
    return {
        "outcome": "crashed",
        "failure": "7f3a29cd",
        "error": "book_table failed. Its error number in the log is 7f3a29cd.",
        **given,
    }


def plan(statement: str, values: Any) -> str:
    """Return how SQLite goes about a statement."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        return "\n".join(str(row[-1]) for row in cursor.fetchall())
