"""What any process tells of all calls, also of those at one that was killed."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Final

import pytest

from tests.process.clusters import Cluster, on_clusters
from tests.process.streaming import PATIENCE_S, Answer, called
from tests.reliability.flock import Flock

pytestmark = pytest.mark.programs

TOKEN: Final = "of-the-scraper-01"
TOOL: Final = "drill_add_sync"
CLIENTS: Final = 3
LOST_S: Final = 1.5
"""Calls are collected for a second, and then written."""


def counted_calls(url: str) -> int:
    answer = Answer(f"{url}/metrics", "GET", {"Authorization": f"Bearer {TOKEN}"})
    text = answer.whole().raw.decode()
    assert "mcp_workers" in text
    values = re.findall(rf'mcp_calls_total{{.*"{TOOL}".*}} (.+)', text)
    return sum(int(float(each)) for each in values)


def call_on(url: str, over: Event) -> list[float]:
    """Call until the process is gone, or it is over; return when there were answers."""
    times: list[float] = []
    while not over.is_set():
        (answer := called(url, TOOL, a=1, b=2)).wait()
        if answer.error is not None:
            break
        assert "result" in answer.messages[0]
        times.append(answer.over)
    return times


@on_clusters("postgresql", others=["mariadb", "sqlite"])
def test_calls_that_were_answered_are_counted_after_a_kill(cluster: Cluster) -> None:
    metrics, over = {"MCP_METRICS": json.dumps({"token": TOKEN})}, Event()
    with (
        Flock({**cluster.environment, **metrics}, 2) as flock,
        ThreadPoolExecutor(2 * CLIENTS) as pool,
    ):
        before = counted_calls(flock.urls[1])
        calls = [pool.submit(call_on, url, over) for url in flock.urls * CLIENTS]
        time.sleep(2 * LOST_S)  # They call.
        killed_at = time.monotonic()
        flock.kill(0)
        over.set()
        times = [each.result() for each in calls]
        answered = sum(map(len, times))
        at_killed = [each for those in times[::2] for each in those]
        late = sum(each > killed_at - LOST_S for each in at_killed)
        end = time.monotonic() + PATIENCE_S
        # What the others have called is written within a second, too.
        while (count := counted_calls(flock.urls[1]) - before) < answered - late:
            assert time.monotonic() < end, (count, answered, late)
            time.sleep(0.5)
    print(f"{answered} answered, {count} counted, {late} late")  # noqa: T201
    # A call may be counted whose answer was cut off.
    assert count <= answered + CLIENTS
    assert len(at_killed) > late > 0
