"""What a call costs of which all is asked: token, rights, rates, and a row."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from benchmarks import servers
from benchmarks.guarded_server import guard_server
from benchmarks.measuring import (
    AtLeast,
    AtMost,
    Effort,
    Result,
    Subject,
    compare_cpu,
    compare_rates,
    interleaved,
)
from benchmarks.messages import call, is_sum
from benchmarks.postgres import Cluster, cluster
from benchmarks.processes import Process

WRITTEN_S = 30.0
"""So long it may take until the last calls have their rows."""


def of_token_calls(effort: Effort) -> Iterator[Result]:
    """Compare `drill_add` by token, permission, group and row with the bare call.

    And with the floor, which gets the same request.
    """
    with ExitStack() as stack:
        given = stack.enter_context
        database = given(cluster())
        file, other = (
            f"sqlite:///{given(tempfile.TemporaryDirectory())}/db.sqlite3"
            for _ in range(2)
        )
        bare = Subject.asked(
            given(servers.drill(audit="off")), call("drill_add"), is_sum
        )
        server = given(servers.drill(database=database.url, sign_in=True, rates=True))
        calls = guard_server(server, database.url, servers.SIGN_IN)
        written, by_app = (
            Subject.asked(server, calls[name], is_sum) for name in ("token", "key")
        )
        embedded = _asked(given(servers.drill(database=file, rates=True)), file)
        unlimited = _asked(given(servers.drill(database=other)), other)
        least = given(servers.floor(written.answer))
        floor = Subject(least, written.request, written.answer)
        found = interleaved(effort, [written, embedded, bare, floor])
        # Short rounds: what a machine does meanwhile falls on both alike.
        short = replace(effort, rounds=5 * effort.rounds, seconds=effort.seconds / 5)
        by_key, by_token = interleaved(short, [by_app, written])
        rated, unrated = interleaved(short, [embedded, unlimited])
        kept = _each_has_a_row(effort, database, written)
    own, own_embedded, public, least_of_all = found
    what = "drill_add by token, with rights and audit / floor, PostgreSQL"
    yield compare_rates(what, own, least_of_all, AtLeast(0.42))
    what = "token, rights and audit / bare"
    yield compare_cpu(f"{what}, PostgreSQL", own, public, AtMost(1.45))
    yield compare_cpu(f"{what}, SQLite", own_embedded, public, AtMost(1.45))
    what = "by the key of an app / by a token, PostgreSQL"
    yield compare_cpu(what, by_key, by_token, AtMost(1.03))
    yield compare_cpu("with rates / without, SQLite", rated, unrated, AtMost(1.05))
    yield from kept


def _asked(server: Process, url: str) -> Subject:
    return Subject.asked(server, guard_server(server, url)["token"], is_sum)


def _each_has_a_row(
    effort: Effort, database: Cluster, subject: Subject
) -> list[Result]:
    """Call as fast as the server can, then look for a row of each call."""
    rows, statements = _settled(database), database.statements()
    sample = subject.sample(effort.counting)
    asked = database.statements() - statements
    missing = _missing(database, rows + sample.calls)
    return [
        Result(
            "calls a second by token, with rights and audit",
            sample.calls_per_second,
            AtLeast(2_000),
            "/s",
            f"{asked / effort.counting:.1f} statements/s",
        ),
        Result(
            "calls of them without a row",
            missing,
            AtMost(0),
            raw=f"of {sample.calls:,}",
        ),
    ]


def _settled(database: Cluster) -> int:
    """Return how many calls have a row, once no more come."""
    before, now = -1, _calls(database)
    while before != now:
        # A process writes what it has once a second.
        time.sleep(3)
        before, now = now, _calls(database)
    return now


def _missing(database: Cluster, due: int) -> int:
    """Return how many rows fewer there are than are due, once all are written."""
    until = time.monotonic() + WRITTEN_S
    while (there := _calls(database)) < due and time.monotonic() < until:
        time.sleep(0.5)
    return max(0, due - there)


def _calls(database: Cluster) -> int:
    with database.connected() as connection:
        row = connection.execute("SELECT count(*) FROM mcp_app_call").fetchone()
    return int(row[0]) if row else 0
