"""What the admin's home page costs where there is much, and where there are few calls.

`python -m benchmarks.home` in an environment whose database is empty; it prints as JSON
the seconds of the page with few and with many calls, and its statements. Both times
there are 10,000 definitions, 500 sessions and 100 access tokens.
"""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import django

if TYPE_CHECKING:
    from django.test import Client

FEW_CALLS: Final = 1_000
CALLS: Final = 1_000_000
NAMES: Final = 333
"""What is called; each has a counter for each hour of 30 days: 239,760 in all."""
HOURS: Final = 30 * 24
EACH: Final = 2_500
"""Rows of each of the four kinds of definitions."""
SESSIONS: Final = 500
TOKENS: Final = 100
ROUNDS: Final = 15
HOME: Final = "/admin/mcp_app/"


def main() -> None:
    """Fill the database, measure, and print."""
    django.setup()
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.core.management import call_command  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.create_superuser("admin"))
    fill_rows()
    fill_calls(FEW_CALLS)
    few = _seconds(client)
    fill_calls(CALLS)
    fill_counters()
    many = _seconds(client)
    print(json.dumps({"few": few, "many": many, "statements": statements(client)}))


def fill_rows() -> None:
    """Make definitions in all states, sessions and access tokens."""
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.utils.timezone import now  # noqa: PLC0415

    from mcp_app.models import (  # noqa: PLC0415
        AccessToken,
        Prompt,
        Resource,
        ResourceTemplate,
        Session,
        Tool,
    )

    names = [f"n{number:05}" for number in range(EACH)]
    Tool.objects.bulk_create([Tool(name=name) for name in names], 500)
    Tool.objects.publish(Tool.objects.filter(name__lt=names[EACH // 2]))
    Prompt.objects.bulk_create([Prompt(name=name) for name in names], 500)
    Resource.objects.bulk_create(
        [Resource(name=name, uri=f"shop://{name}") for name in names], 500
    )
    ResourceTemplate.objects.bulk_create(
        [
            ResourceTemplate(name=name, uri_template=f"shop://{name}/{{n}}")
            for name in names
        ],
        500,
    )
    now_ms = time.time_ns() // 1_000_000
    Session.objects.bulk_create(
        Session(
            digest=f"{number:064}",
            principal_key=f"token:{number}",
            server="default",
            revision="2025-11-25",
            client_info="{}",
            capabilities="{}",
            created_ms=now_ms,
            seen_ms=now_ms - number * 10_000,
        )
        for number in range(SESSIONS)
    )
    user = User.objects.create_user("somebody")
    AccessToken.objects.bulk_create(
        AccessToken(
            user=user,
            name=f"token {number}",
            prefix="mcp_abcdef",
            digest=f"{number:064}",
            family=f"{number:032}",
            expires=now() + timedelta(days=number),
        )
        for number in range(TOKENS)
    )


def fill_calls(count: int) -> None:
    """Make calls until there are at least so many, and counters of the first ones."""
    from mcp_app.audit.tallies import Tallies, begin_ms  # noqa: PLC0415
    from mcp_app.models import Call, CallStatistic  # noqa: PLC0415
    from mcp_app.models.calls import MINUTE_S  # noqa: PLC0415

    if not Call.objects.exists():
        now_ms = time.time_ns() // 1_000_000
        tallies = Tallies()
        rows: dict[Any, list[Any]] = {}
        for number in range(FEW_CALLS):
            shared, own = _call(number, now_ms - number * 60_000)
            rows.setdefault(shared, []).append(own)
            subject = (shared[0], shared[1], shared[2], shared[4])
            tallies.add(begin_ms(own[0], MINUTE_S), subject, [own[1]])
        Call.objects.insert(rows)
        CallStatistic.objects.raise_by(tallies.rows())
    columns = ", ".join((*Call.SHARED, *Call.OWN))
    while (there := Call.objects.count()) < count:
        # Who fills a table from itself waits for no program.
        more = min(there, count - there)
        _execute(
            f"INSERT INTO mcp_app_call ({columns})"  # noqa: S608 - our own names
            f" SELECT {columns} FROM mcp_app_call ORDER BY id LIMIT {more}"
        )


def _call(number: int, time_ms: int) -> tuple[Any, Any]:
    failed = number % 100 == 0
    shared = (
        "default",
        "tool",
        f"tool{number % NAMES}",
        1,
        "crashed" if failed else "answered",
        *("token", "7", "somebody", "family", "client", "1.0", "", "2026-07-28"),
    )
    failure = f"{number:08x}" if failed else ""
    error = "tool failed." if failed else ""
    return shared, (time_ms, number % 300 * 1_000, 41, 20, "9c" * 16, failure, error)


def fill_counters() -> None:
    """Make a counter for each name and hour of a month."""
    from mcp_app.audit.tallies import begin_ms  # noqa: PLC0415
    from mcp_app.models import CallStatistic  # noqa: PLC0415
    from mcp_app.models.calls import HOUR_S  # noqa: PLC0415

    hour_ms = HOUR_S * 1_000
    start_ms = begin_ms(time.time_ns() // 1_000_000, HOUR_S)
    CallStatistic.objects.bulk_create(
        CallStatistic(
            seconds=HOUR_S,
            start_ms=start_ms,
            server="shop",
            kind="tool",
            name=f"tool{number}",
            outcome="crashed" if number % 50 == 0 else "answered",
            calls=4,
            total_us=number * 1_000,
            most_us=number * 1_000,
            to_100=4,
        )
        for number in range(NAMES)
    )
    names = ", ".join((*CallStatistic.KEYS, *CallStatistic.COUNTERS))
    hours = 1
    while hours < HOURS:
        more = min(hours, HOURS - hours)
        values = names.replace("start_ms", f"start_ms - {hours * hour_ms}")
        _execute(
            f"INSERT INTO mcp_app_callstatistic ({names})"  # noqa: S608 - our own names
            f" SELECT {values} FROM mcp_app_callstatistic WHERE server = 'shop'"
            f" AND start_ms > {start_ms - more * hour_ms}"
        )
        hours += more


def _execute(statement: str) -> None:
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute(statement)


def statements(client: Client) -> int:
    """Count the statements of the page."""
    from django.db import connection  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    with CaptureQueriesContext(connection) as done:
        assert client.get(HOME).status_code == 200
    return len(done)


def _seconds(client: Client) -> float:
    """Return the least that the page takes: other programs only add to a time.

    It is the clock's, because a database may work in a process of its own.
    """
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        response = client.get(HOME)
        took.append(time.perf_counter() - began)
        assert response.status_code == 200
    return min(took)


if __name__ == "__main__":
    main()
