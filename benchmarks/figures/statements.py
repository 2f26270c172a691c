"""Whether calls that only read cost statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from benchmarks import servers
from benchmarks.client import open_session
from benchmarks.load import Sample
from benchmarks.measuring import AtMost, Effort, Result, Subject
from benchmarks.messages import call, is_sum
from benchmarks.postgres import Cluster, cluster

_CONNECTIONS = 25
_SLOW_PAUSE, _FAST_PAUSE = 500, 50
"""Milliseconds between two calls of a connection. The two eras, 25 connections
each, then make 100 and 1,000 calls a second together, less the time of answers."""


def by_rate(effort: Effort) -> Iterator[Result]:
    """Count what PostgreSQL is asked at 100 and at 1,000 `drill_add` a second."""
    with ExitStack() as stack:
        database = stack.enter_context(cluster())
        server = stack.enter_context(servers.drill(database=database.url))
        session = open_session(server.port)
        requests = (call("drill_add"), call("drill_add", session=session))
        subjects = [Subject.asked(server, each, is_sum) for each in requests]
        _paced(subjects, effort.warm_up, _FAST_PAUSE)
        slow = _counted(database, subjects, effort.counting, _SLOW_PAUSE)
        fast = _counted(database, subjects, effort.counting, _FAST_PAUSE)
    yield Result(
        "more statements at 1,000 calls/s than at 100",
        abs(fast[0] - slow[0]),
        AtMost(10),
        "/s",
        " : ".join(
            f"{statements:.1f} statements/s at {calls:,.0f} calls/s"
            for statements, calls in (fast, slow)
        ),
    )


def _counted(
    database: Cluster, subjects: Sequence[Subject], seconds: float, pause_ms: int
) -> tuple[float, float]:
    """Return statements and calls, each a second."""
    before = database.statements()
    samples = _paced(subjects, seconds, pause_ms)
    statements = database.statements() - before
    return statements / seconds, sum(sample.calls for sample in samples) / seconds


def _paced(subjects: Sequence[Subject], seconds: float, pause_ms: int) -> list[Sample]:
    """Call all subjects at the same time, at a steady rate."""
    pace = {"connections": _CONNECTIONS, "pause_ms": pause_ms}
    with ThreadPoolExecutor(len(subjects)) as pool:
        runs = [pool.submit(each.sample, seconds, **pace) for each in subjects]
        return [run.result() for run in runs]
