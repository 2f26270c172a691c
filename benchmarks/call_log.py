"""What the pages of 1,000,000 calls cost: measured in a process of its own.

`python -m benchmarks.call_log` in an environment whose database is empty; it prints
the CPU seconds of each page as JSON, SQLite's included.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Mapping
from html import unescape
from typing import Any, Final

import django

COUNT: Final = 1_000_000
PART: Final = 2_000
DAYS: Final = 30
TOOLS: Final = 40
PEOPLE: Final = 500
FAILING: Final = 1_000
"""One of so many fails."""
ROUNDS: Final = 5
LIST: Final = "/admin/mcp_app/call/"
PAGES: Final[Mapping[str, str]] = {
    "list": LIST,
    "failed": f"{LIST}?outcome=any_failure&when=month",
    "filters": f"{LIST}?when=month&kind=tool&server=support&slower=5000",
    "person": f"{LIST}?when=month&user=person7",
    "search": f"{LIST}?when=month&q=tool3",
    "home": "/admin/mcp_app/",
}


def main() -> None:
    """Fill the database, measure, and print."""
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    _fill()
    print(json.dumps(_measured()))


def _fill() -> None:
    """Write the calls of a month with the statements of the audit."""
    from django.db import transaction  # noqa: PLC0415

    from mcp_app.audit.tallies import Tallies, period_start_ms  # noqa: PLC0415
    from mcp_app.models import Call, CallStatistic  # noqa: PLC0415
    from mcp_app.models.calls import HOUR_S, MINUTE_S  # noqa: PLC0415

    now_ms = time.time_ns() // 1_000_000
    # Minutes are kept for two hours.
    recent_ms = now_ms - 2 * HOUR_S * 1_000
    tallies = Tallies()
    apart_ms = DAYS * 86_400_000 // COUNT
    for start in range(COUNT, 0, -PART):
        rows: dict[Any, list[Any]] = {}
        for number in range(start, start - PART, -1):
            shared, own = _call(number, now_ms - number * apart_ms)
            rows.setdefault(shared, []).append(own)
            seconds = MINUTE_S if own[0] >= recent_ms else HOUR_S
            subject = (shared[0], shared[1], shared[2], shared[4])
            tallies.add_calls(period_start_ms(own[0], seconds), subject, [own[1]])
        with transaction.atomic():
            Call.objects.insert(rows)
    kept = [
        row
        for row in tallies.sorted_rows()
        if row[0] == HOUR_S or int(row[1]) >= recent_ms
    ]
    with transaction.atomic():
        CallStatistic.objects.raise_by(kept)


def _call(number: int, time_ms: int) -> tuple[Any, Any]:
    failed = number % FAILING == 0
    shared = (
        "support" if number % 7 == 0 else "default",
        *("tool", f"tool{number % TOOLS}", 1),
        "crashed" if failed else "answered",
        *("token", str(number % PEOPLE), f"person{number % PEOPLE}"),
        *("family", "client", "1.0", "", "2026-07-28"),
    )
    error = "tool failed." if failed else ""
    failure = f"{number:08x}" if failed else ""
    return shared, (time_ms, number % 300 * 1_000, 41, 20, "9c" * 16, failure, error)


def _measured() -> dict[str, float]:
    """Return the median of the CPU seconds that each page takes."""
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    from mcp_app.models import Call  # noqa: PLC0415

    assert Call.objects.count() == COUNT
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.create_superuser("admin"))
    text = unescape(client.get(PAGES["failed"]).content.decode())
    calls = re.findall(rf'href="({LIST}\d+/)"', text)
    assert len(calls) == 100
    (older,) = re.findall(r'href="(\?[^"]*older=[^"]*)"', text)
    pages = {**PAGES, "older": LIST + older, "call": calls[0]}
    return {name: _seconds(client, url) for name, url in pages.items()}


def _seconds(client: Any, url: str) -> float:
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        response = client.get(url)
        took.append(time.process_time() - began)
        assert response.status_code == 200
    return statistics.median(took)


if __name__ == "__main__":
    main()
