"""What the log of requests costs: events that are committed before they are sent."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

import psycopg

from benchmarks import servers
from benchmarks.client import WrongAnswerError, open_session
from benchmarks.counting import Callers, Counted
from benchmarks.measuring import (
    AtLeast,
    AtMost,
    Effort,
    Medians,
    Result,
    Subject,
    interleaved,
)
from benchmarks.messages import call, is_text
from benchmarks.postgres import Cluster, cluster
from benchmarks.processes import Process

STREAMS = 50
EVENTS = 200
"""Of each call, before its answer."""
TIMES = 3.0
ENOUGH = 6_000.0
"""Events a second that are enough, where single rows are inserted very fast."""
SAMPLE = 101
"""One event of so many is looked up; calls have another number of them."""

_APPEND = "WITH given AS"
_FOREIGN_KEY = "FOR KEY SHARE OF x"
"""What PostgreSQL asks itself at a commit; nobody sends it."""
_PAYLOAD = (
    '{"jsonrpc":"2.0","method":"notifications/progress",'
    '"params":{"progressToken":100000001,"progress":100,"total":200}}'
)
_INSERT = "INSERT INTO plain (payload) VALUES (%s)"
_THERE = (
    "SELECT 1 FROM mcp_app_event JOIN mcp_app_stream ON stream_id = id"
    " WHERE public_id = %s AND seq = %s"
)


def of_calls(effort: Effort) -> Iterator[Result]:
    """Measure events of many streams, and calls that have only an answer."""
    with ExitStack() as stack:
        database = stack.enter_context(cluster())
        server = stack.enter_context(servers.drill(database=database.url))
        # First, because PostgreSQL tidies up after so many events.
        calls = list(_calls(effort, database, server))
        yield _events(effort, database, server)
        yield from calls


# -- events --------------------------------------------------------------------------


@dataclass(slots=True)
class Sampled:
    """Looks some events up in the database, in the moment in which they come."""

    connection: psycopg.Connection
    found: int = 0
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def seen(self, name: str, number: int) -> None:
        """Look one event of `SAMPLE` up; raise where it is not there."""
        if next(self._numbers) % SAMPLE:
            return
        if self.connection.execute(_THERE, [name, number]).fetchone() is None:
            raise WrongAnswerError(f"Event {name}.{number} came and is not committed.")
        self.found += 1


def _events(effort: Effort, database: Cluster, server: Process) -> Result:
    with ExitStack() as stack:
        connection = stack.enter_context(database.connected())
        connection.execute(
            "CREATE TABLE plain (id bigserial PRIMARY KEY, payload text)"
        )
        callers = Callers(server, STREAMS, EVENTS)
        sampled = Sampled(connection)
        callers.run(effort.warm_up)
        rounds: list[Counted] = []
        inserts: list[float] = []
        for _ in range(effort.rounds):
            inserts.append(_inserted(connection, effort.seconds))
            rounds.append(callers.run(effort.seconds, sampled.seen))
    rate, plain = median(each.rate for each in rounds), median(inserts)
    cpu = median(each.cpu_seconds / each.messages * 1e6 for each in rounds)
    reader = median(each.reader for each in rounds)
    return Result(
        figure=f"events of {STREAMS} streams, committed first",
        measured=rate,
        bound=AtLeast(round(min(TIMES * plain, ENOUGH))),
        unit="/s",
        raw=(
            f"{cpu:.0f} us an event : {plain:,.0f}/s single inserts; {sampled.found:,}"
            f" looked up and there, the reader took {reader:.0%} of a processor"
        ),
    )


def _inserted(connection: psycopg.Connection, seconds: float) -> float:
    """Return how many rows a second one connection inserts, each by itself."""
    began, rows = time.monotonic(), 0
    while (now := time.monotonic()) < began + seconds:
        connection.execute(_INSERT, [_PAYLOAD])
        rows += 1
    return rows / (now - began)


# -- calls that only answer ----------------------------------------------------------


def _calls(effort: Effort, database: Cluster, server: Process) -> Iterator[Result]:
    session = open_session(server.port)
    request = call("drill_count", {"n": 0, "delay_ms": 0}, session=session)
    ours = Subject.asked(server, request, is_text("done 0"))
    with servers.floor(ours.answer) as bare:
        floor = Subject(bare, request, ours.answer)
        before = _statements(database)
        own, least = interleaved(effort, [ours, floor])
        after = _statements(database)
    yield from _compared(own, least)
    yield _batched(own, after[0] - before[0], after[1] - before[1])


def _statements(database: Cluster) -> tuple[int, int]:
    """Return how many batches were sent so far, and how many other statements."""
    batches = database.statements(_APPEND)
    checks = database.statements(_FOREIGN_KEY)
    return batches, database.statements() - checks - batches


def _compared(own: Medians, floor: Medians) -> Iterator[Result]:
    yield Result(
        figure="calls that run once / floor",
        measured=100 * own.rate / floor.rate,
        bound=AtLeast(8),
        unit="%",
        raw=f"{own} : {floor}",
    )
    yield Result(
        figure="CPU of a call that runs once",
        measured=own.cpu,
        bound=AtMost(300),
        unit="us",
        raw=f"{floor.cpu:.0f} us of it are the floor's",
    )


def _batched(own: Medians, batches: int, others: int) -> Result:
    # The warm-up is in the statements and not in the samples: the ratio is too high.
    calls = sum(sample.calls for sample in own.samples)
    return Result(
        figure="statements for a call that runs once",
        measured=(batches + others) / calls,
        bound=AtMost(0.5),
        raw=(
            f"{batches:,} batches and {others:,} others for {calls:,} streams, each"
            f" with two commits: {2 * calls / batches:.0f} in a batch"
        ),
    )
