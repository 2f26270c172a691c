"""What the log of requests costs: events that are committed before they are sent."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median

import psycopg

from benchmarks import servers
from benchmarks.client import WrongAnswerError, open_session
from benchmarks.counting import Callers, Counted
from benchmarks.measuring import AtLeast, AtMost, Effort, Result, Subject, interleaved
from benchmarks.messages import call
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
_DONE = [{"type": "text", "text": "done 0"}]
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


class Sampled:
    """Looks some events up in the database, in the moment in which they come."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.found = 0
        self._connection = connection
        self._numbers = itertools.count()

    def seen(self, name: str, number: int) -> None:
        """Look one event of `SAMPLE` up; raise where it is not there."""
        if next(self._numbers) % SAMPLE:
            return
        if self._connection.execute(_THERE, [name, number]).fetchone() is None:
            raise WrongAnswerError(f"Event {name}.{number} came and is not committed.")
        self.found += 1


def _events(effort: Effort, database: Cluster, server: Process) -> Result:
    with database.connected() as connection:
        connection.execute(
            "CREATE TABLE plain (id bigserial PRIMARY KEY, payload text)"
        )
        callers, sampled = Callers(server, STREAMS, EVENTS), Sampled(connection)
        callers.run(effort.warm_up)
        rounds: list[Counted] = []
        inserts: list[float] = []
        for _ in range(effort.rounds):
            inserts.append(_inserted(connection, effort.seconds))
            rounds.append(callers.run(effort.seconds, sampled.seen))
    rate = median(each.messages / each.seconds for each in rounds)
    plain = median(inserts)
    cpu = median(each.cpu_seconds / each.messages * 1e6 for each in rounds)
    reader = median(each.reader for each in rounds)
    return Result(
        f"events of {STREAMS} streams, committed first",
        rate,
        AtLeast(round(min(TIMES * plain, ENOUGH))),
        "/s",
        (
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


def _calls(effort: Effort, database: Cluster, server: Process) -> Iterator[Result]:
    session = open_session(server.port)
    request = call("drill_count", {"n": 0, "delay_ms": 0}, session=session)
    ours = Subject.asked(server, request, lambda result: result["content"] == _DONE)
    with servers.floor(ours.answer) as bare:
        floor = Subject(bare, request, ours.answer)
        before = _statements(database)
        own, least = interleaved(effort, [ours, floor])
        after = _statements(database)
    yield Result(
        "calls that run once / floor",
        100 * own.rate / least.rate,
        AtLeast(8),
        "%",
        f"{own} : {least}",
    )
    yield Result(
        "CPU of a call that runs once",
        own.cpu,
        AtMost(300),
        "us",
        f"{least.cpu:.0f} us of it are the floor's",
    )
    # The warm-up is in the statements and not in the samples: the ratio is too high.
    count = sum(sample.calls for sample in own.samples)
    batches, others = after[0] - before[0], after[1] - before[1]
    yield Result(
        "statements for a call that runs once",
        (batches + others) / count,
        AtMost(0.5),
        raw=(
            f"{batches:,} batches and {others:,} others for {count:,} streams, each"
            f" with two commits: {2 * count / batches:.0f} in a batch"
        ),
    )


def _statements(database: Cluster) -> tuple[int, int]:
    """Return how many batches were sent so far, and how many other statements."""
    batches = database.statements(_APPEND)
    checks = database.statements(_FOREIGN_KEY)
    return batches, database.statements() - checks - batches
