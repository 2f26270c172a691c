"""What a call costs of which all is asked: token, rights, rates, and a row."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from benchmarks import servers
from benchmarks.guarded_server import calls_of_both, guarded_call
from benchmarks.measuring import (
    AtLeast,
    AtMost,
    Effort,
    Medians,
    Result,
    Subject,
    interleaved,
)
from benchmarks.messages import call, is_sum
from benchmarks.postgres import Cluster, cluster
from benchmarks.processes import Process
from benchmarks.rows import counted

WRITTEN_S = 30.0
"""So long it may take until the last calls have their rows."""


def by_token(effort: Effort) -> Iterator[Result]:
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
        calls = calls_of_both(server, database.url)
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
        pair = interleaved(short, [by_app, written])
        rated = interleaved(short, [embedded, unlimited])
        kept = _each_has_a_row(effort, database, written)
    yield from _compared(*found)
    yield _beside("by the key of an app / by a token, PostgreSQL", pair, 1.03)
    yield _beside("with rates / without, SQLite", rated, 1.05)
    yield from kept


def _compared(
    written: Medians, embedded: Medians, bare: Medians, floor: Medians
) -> Iterator[Result]:
    yield Result(
        figure="drill_add by token, with rights and audit / floor, PostgreSQL",
        measured=written.rate / floor.rate,
        bound=AtLeast(0.42),
        raw=f"{written} : {floor}",
    )
    for name, own in {"PostgreSQL": written, "SQLite": embedded}.items():
        yield Result(
            figure=f"CPU: token, rights and audit / bare, {name}",
            measured=own.cpu / bare.cpu,
            bound=AtMost(1.45),
            raw=f"{own} : {bare}",
        )


def _beside(what: str, pair: Sequence[Medians], most: float) -> Result:
    """Return what calls of the first cost beside those of the second."""
    first, second = pair
    return Result(
        figure=f"CPU: {what}",
        measured=first.cpu / second.cpu,
        bound=AtMost(most),
        raw=f"{first} : {second}",
    )


def _asked(server: Process, url: str) -> Subject:
    return Subject.asked(server, guarded_call(server, url), is_sum)


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
            figure="calls a second by token, with rights and audit",
            measured=sample.calls_per_second,
            bound=AtLeast(2_000),
            unit="/s",
            raw=f"{asked / effort.counting:.1f} statements/s",
        ),
        Result(
            figure="calls of them without a row",
            measured=missing,
            bound=AtMost(0),
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
    return counted(database.url)["call"]
