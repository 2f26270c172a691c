"""What the admin's pages cost with 1,000,000 calls and 10,000 tools.

`python -m benchmarks.call_log` in an environment whose database is empty; it measures
in a process of its own, and prints as JSON, for each page, the CPU seconds, SQLite's
included, the seconds, and the queries.
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
MADE: Final = 10_000
"""Tools; of resources and prompts there are a tenth of that."""
ADMIN: Final = "/admin/mcp_app/"
LIST: Final = f"{ADMIN}call/"
PAGES: Final[Mapping[str, str]] = {
    "list": LIST,
    "failed": f"{LIST}?outcome=any_failure&when=month",
    "filters": f"{LIST}?when=month&kind=tool&server=support&slower=5000",
    "person": f"{LIST}?when=month&user=person7",
    "search": f"{LIST}?when=month&q=tool3",
    "refused": f"{LIST}refused/",
    "home": ADMIN,
    "live": f"{ADMIN}session/live/",
    "stop": f"{ADMIN}server/stop/",
    "find": f"{ADMIN}server/find/?q=look",
    "connect": f"{ADMIN}server/1/connect/",
    "who sees a server": f"{ADMIN}server/1/who/",
    "tools": f"{ADMIN}tool/",
    "tools, searched": f"{ADMIN}tool/?q=tool3&state=changed",
    "resources": f"{ADMIN}resource/",
    "prompts": f"{ADMIN}prompt/",
    "add a tool": f"{ADMIN}tool/add/",
    "add a look-up": f"{ADMIN}tool/add/?kind=query&model=shop.Order",
    "add a call": f"{ADMIN}tool/add/?kind=http",
    "OpenAPI": f"{ADMIN}tool/openapi/",
}
OF_A_TOOL: Final = ("change", "try", "who", "publish", "history", "version/1", "delete")
LOOKUP: Final = {
    "model": "shop.Order",
    "fields": ["number", "customer", "status", "total"],
    "filters": [
        {"path": "status", "lookup": "in", "parameter": "status"},
        {"path": "placed", "lookup": "range", "parameter": "placed"},
    ],
    "order": ["-placed"],
}


def main() -> None:
    """Fill the database, measure, and print."""
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    _fill_catalog()
    _fill()
    print(json.dumps(_measured()))


def _fill_catalog() -> None:
    """Publish tools, resources and prompts, and change one tool of a hundred."""
    from mcp_app.models import Prompt, Resource, Server, Tool  # noqa: PLC0415

    texts = [{"type": "text", "text": "A text."}]
    text = {"kind": "text", "config": json.dumps({"text": "A text."})}
    content = {"kind": "text", "config": json.dumps({"content": texts})}
    messages = {
        "kind": "text",
        "config": json.dumps({"messages": [{"content": texts[0]}]}),
    }
    query = {"kind": "query", "config": json.dumps(LOOKUP)}
    server = Server.objects.get()
    Server.objects.publish([server])
    rows: dict[Any, list[Any]] = {
        Tool: [
            Tool(
                name=f"tool{n}",
                description=f"Looks up {n}.",
                **(query if n % 2 else content),
            )
            for n in range(MADE)
        ],
        Resource: [
            Resource(name=f"page{n}", uri=f"shop://page/{n}", **text)
            for n in range(MADE // 10)
        ],
        Prompt: [Prompt(name=f"prompt{n}", **messages) for n in range(MADE // 10)],
    }
    for model, made in rows.items():
        model.objects.bulk_create(made, batch_size=PART)
        model.objects.publish(made)
    changed = [each.pk for each in rows[Tool][::100]]
    Tool.objects.filter(pk__in=changed).update(title="Another title")


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
    took_us = number % 300 * 1_000
    return shared, (time_ms, took_us, 41, 20, "9c" * 16, failure, "", error)


def _measured() -> dict[str, Mapping[str, float]]:
    """Return what each page costs, by its name."""
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    from mcp_app.models import Call, Tool  # noqa: PLC0415

    assert Call.objects.count() == COUNT
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.create_superuser("admin"))
    text = unescape(client.get(PAGES["failed"]).content.decode())
    calls = re.findall(rf'href="({LIST}\d+/)"', text)
    assert len(calls) == 100
    (older,) = re.findall(r'href="(\?[^"]*older=[^"]*)"', text)
    key = Tool.objects.get(name="tool101").pk
    of_tool = {f"a tool: {each}": f"{ADMIN}tool/{key}/{each}/" for each in OF_A_TOOL}
    pages = {**PAGES, "older": LIST + older, "call": calls[0], **of_tool}
    return {name: _cost(client, url) for name, url in pages.items()}


def _cost(client: Any, url: str) -> Mapping[str, float]:
    """Return the medians of seconds, and how many queries there are."""
    from django.db import connection  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    cpu, took = [], []
    for _ in range(ROUNDS):
        cpu_began, began = time.process_time(), time.monotonic()
        response = client.get(url)
        cpu.append(time.process_time() - cpu_began)
        took.append(time.monotonic() - began)
        assert response.status_code == 200, f"{url}: {response.status_code}"
    with CaptureQueriesContext(connection) as queries:
        client.get(url)
    times = {"CPU": statistics.median(cpu), "seconds": statistics.median(took)}
    return {**times, "queries": len(queries)}


if __name__ == "__main__":
    main()
