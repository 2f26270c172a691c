"""Whether sync functions that wait hold up anything but themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from benchmarks import servers
from benchmarks.client import result_of, send
from benchmarks.load import Sample
from benchmarks.measuring import AtMost, Effort, Medians, Result, Subject
from benchmarks.messages import call, is_sum
from benchmarks.processes import Process

SLEEPERS = 8
"""As many as there are threads for user code by default."""


def asleep(effort: Effort) -> Iterator[Result]:
    """Run `drill_add` alone and beside waves of eight `drill_sleep_sync` of 1 s."""
    alone, beside = Medians(), Medians()
    waves: list[float] = []
    with servers.drill() as server, ThreadPoolExecutor(SLEEPERS + 1) as pool:
        add = Subject.asked(server, call("drill_add"), is_sum)
        add.sample(effort.warm_up)
        for _ in range(effort.rounds):
            alone.samples.append(add.sample(effort.seconds))
            loaded = pool.submit(add.sample, effort.seconds)
            waves += _waves(server, pool, loaded)
            beside.samples.append(loaded.result())
    yield Result(
        figure=f"{SLEEPERS} sync sleeps of 1 s together, the slowest time",
        measured=max(waves),
        bound=AtMost(1.5),
        unit="s",
        raw=f"{len(waves)} times, beside {beside}",
    )
    yield Result(
        figure="p99 of drill_add beside them / alone",
        measured=beside.p99 / alone.p99,
        bound=AtMost(3),
        raw=f"{beside.p99:,.0f} us : {alone.p99:,.0f} us",
    )


def _waves(
    server: Process, pool: ThreadPoolExecutor, loaded: Future[Sample]
) -> Iterator[float]:
    """Yield how long all sleepers together took, until the load has ended."""
    sleep = call("drill_sleep_sync", {"seconds": 1})
    while not loaded.done():
        start = time.monotonic()
        replies = [pool.submit(send, server.port, sleep) for _ in range(SLEEPERS)]
        for reply in replies:
            result_of(reply.result())
        yield time.monotonic() - start
