"""Processes that write calls side by side, are killed, and lose their database."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from threading import Event
from typing import Any, Final

import pytest

from mcp_app.models.calls import BOUNDS_MS, HOUR_S, MINUTE_S
from tests.audit.relays import relay
from tests.drill.databases import PREPARED
from tests.drill.running import THERE, DrillServer, started
from tests.marks import long_cases
from tests.process.clusters import run_python
from tests.process.rows import one_number, rows
from tests.process.streaming import Answer, stateless

pytestmark = pytest.mark.programs

WRITERS: Final = 3
PATIENCE_S: Final = 120
LOOK_S: Final = 0.05
CUTS: Final = 8
COMMITS: Final = 6

WRITE: Final = """
import random, sys
from concurrent.futures import ThreadPoolExecutor
import django
django.setup()
from django.db import connections
from mcp_app.audit.writing import write
from tests.audit.records import batch, record

def batches(seed):
    chance = random.Random(seed)
    for number in range(1, 11):
        records = [
            record(chance.random(), name=f"tool{chance.randrange(20)}")
            for _ in range(40)
        ]
        write(batch(*records, writer=f"{sys.argv[1]}-{seed}", number=number))
    connections.close_all()

with ThreadPoolExecutor(3) as pool:
    list(pool.map(batches, range(3)))
"""
KEPT: Final = "SELECT count(*) FROM mcp_app_call"
COUNTED: Final = (
    "SELECT seconds, name, sum(calls), sum(dropped) FROM mcp_app_callstatistic"
    " GROUP BY seconds, name"
)
BUCKETS: Final = " + ".join(f"to_{bound}" for bound in BOUNDS_MS)
WRONG: Final = (
    "SELECT count(*) FROM mcp_app_callstatistic"  # noqa: S608 - our own names
    f" WHERE calls <> longer + {BUCKETS} OR start_ms % (seconds * 1000) <> 0"
)


def on_database(vendor: str, other: str) -> pytest.MarkDecorator:
    """Run a test with one kind of database, and with the other in `make test-all`."""
    return pytest.mark.parametrize(
        "environment", [vendor, *long_cases(other)], indirect=True
    )


@pytest.fixture
def environment(request: pytest.FixtureRequest) -> Iterator[Mapping[str, str]]:
    with PREPARED[request.param]() as url:
        yield {"DATABASE_URL": url, **THERE}


@dataclass(frozen=True, slots=True)
class Figures:
    rows: int
    calls: int
    dropped: int
    names: Mapping[str, int]


def figures(environment: Mapping[str, str]) -> Figures:
    """Read what is kept of calls; hours and minutes must say the same."""
    url = environment["DATABASE_URL"]
    assert one_number(url, WRONG) == 0
    spans: dict[int, dict[str, tuple[int, int]]] = {HOUR_S: {}, MINUTE_S: {}}
    for seconds, name, calls, dropped in rows(url, COUNTED):
        spans[seconds][name] = int(calls), int(dropped)
    assert spans[HOUR_S] == spans[MINUTE_S]
    by_name = spans[HOUR_S]
    return Figures(
        one_number(url, KEPT),
        sum(calls for calls, _ in by_name.values()),
        sum(dropped for _, dropped in by_name.values()),
        {name: calls for name, (calls, _) in by_name.items()},
    )


def until_kept(environment: Mapping[str, str], calls: int) -> Figures:
    end = time.monotonic() + PATIENCE_S
    while (found := figures(environment)).calls < calls:
        assert time.monotonic() < end, found
        time.sleep(LOOK_S)
    return found


@contextmanager
def serving(environment: Mapping[str, str], **more: str) -> Iterator[DrillServer]:
    server = started("uvicorn", {**environment, **more})
    try:
        yield server
    finally:
        server.kill()


def begun(server: DrillServer, **arguments: Any) -> Answer:
    tool = "drill_sleep" if "seconds" in arguments else "drill_add"
    given = arguments or {"a": 1, "b": 1}
    return stateless(
        server.url, "tools/call", {"Mcp-Name": tool}, name=tool, arguments=given
    )


def call(server: DrillServer) -> int:
    return begun(server).whole().status


@on_database("mysql", "postgresql")
def test_counters_are_exact_whoever_writes_them(environment: Mapping[str, str]) -> None:
    run = partial(run_python, environment, "-c", WRITE)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(run, map(str, range(WRITERS))))
    found = figures(environment)
    assert (found.rows, found.calls) == (3_600, 3_600)
    expected: dict[str, int] = {}
    for seed in range(3):
        chance = random.Random(seed)  # noqa: S311 - no secret
        for _ in range(10 * 40):
            chance.random()
            name = f"tool{chance.randrange(20)}"
            expected[name] = expected.get(name, 0) + WRITERS
    assert found.names == expected


@on_database("postgresql", "mysql")
def test_who_is_killed_loses_what_nobody_saw(environment: Mapping[str, str]) -> None:
    """What is written is whole, and goes on to be counted by the next process."""
    with serving(environment) as server:
        for _ in range(20):
            assert call(server) == 200
        assert until_kept(environment, 20).rows == 20
        for _ in range(10):
            call(server)
        server.kill()
    after = figures(environment)
    assert after.rows == after.calls
    assert 20 <= after.calls <= 30
    with serving(environment) as server:
        assert call(server) == 200
        found = until_kept(environment, after.calls + 1)
    assert found.rows == found.calls == after.calls + 1


@on_database("mysql", "postgresql")
def test_who_stops_writes_its_calls_first(environment: Mapping[str, str]) -> None:
    with serving(environment) as server:
        for _ in range(10):
            assert call(server) == 200
        assert server.stop() == 0
    found = figures(environment)
    assert (found.rows, found.calls) == (10, 10)


@on_database("postgresql", "mysql")
def test_cuts_neither_lose_nor_double_a_call(environment: Mapping[str, str]) -> None:
    answered, over = count(), Event()
    with (
        relay(environment["DATABASE_URL"]) as way,
        serving(environment, DATABASE_URL=way.url) as server,
        ThreadPoolExecutor(3) as pool,
    ):

        def calling() -> None:
            while not over.is_set():
                if call(server) == 200:
                    next(answered)

        callers = [pool.submit(calling) for _ in range(3)]
        chance = random.Random(1)  # noqa: S311 - no secret
        for _ in range(CUTS):
            Event().wait(chance.uniform(0.1, 0.5))
            way.cut()
        way.break_commits(COMMITS)
        end = time.monotonic() + PATIENCE_S
        while way.breaks and time.monotonic() < end:
            Event().wait(LOOK_S)
        # The last batch of all is written again, too.
        over.set()
        for each in callers:
            each.result()
        total = next(answered)
        assert way.breaks == 0
        assert server.stop() == 0, server.output
    found = figures(environment)
    assert found.calls == found.rows == total


@on_database("mysql", "postgresql")
def test_calls_of_an_outage_are_counted_later(environment: Mapping[str, str]) -> None:
    limits = json.dumps({"audit_buffer": 4, "rates": False})
    with (
        relay(environment["DATABASE_URL"]) as way,
        serving(environment, DATABASE_URL=way.url, MCP_LIMITS=limits) as server,
    ):
        assert call(server) == 200
        until_kept(environment, 1)
        asleep = [begun(server, seconds=3 + n / 10) for n in range(20)]
        # They have begun before the way is cut: after a second their streams open.
        for each in asleep:
            each.until(lambda answer: answer.raw)
        with way.away():
            statuses = [each.whole().status for each in asleep]
        served = statuses.count(200)
        assert served > 4 + 4
        found = until_kept(environment, 1 + served)
        assert server.stop() == 0, server.output
    assert found.calls == 1 + served
    assert found.dropped > 0
    assert found.rows + found.dropped == found.calls
