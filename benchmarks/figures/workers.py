"""What a second worker adds, where each worker and the client have a processor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from benchmarks import servers
from benchmarks.measuring import AtLeast, Effort, Result, Subject, interleaved
from benchmarks.messages import call, is_sum

WORKERS: Final = 2
PROCESSORS: Final = WORKERS + 1
"""One for each worker, and at least one for the client."""
FIGURE: Final = "calls a second: two workers / one"
BOUND: Final = AtLeast(1.7)


def of_two(effort: Effort) -> Iterator[Result]:
    """Compare two workers of one server with one, if the machine can tell."""
    processors = len(os.sched_getaffinity(0))
    if reason := too_few(processors):
        yield Result(figure=FIGURE, measured=0, bound=BOUND, left_out=reason)
        return
    program = "uvicorn-worker"
    with (
        servers.drill(program, audit="off", workers=WORKERS) as several,
        servers.drill(program, audit="off") as single,
    ):
        # One thread of wrk may be slower than two workers.
        threads = min(WORKERS, processors - WORKERS)
        subjects = [
            Subject.asked(each, call("drill_add"), is_sum, threads)
            for each in (several, single)
        ]
        two, one = interleaved(effort, subjects)
    yield Result(
        figure=FIGURE, measured=two.rate / one.rate, bound=BOUND, raw=f"{two} : {one}"
    )


def too_few(processors: int) -> str:
    """Return why so many processors cannot tell; nothing if they can.

    Where the client has none of its own, it takes from the workers what it needs.
    """
    if processors >= PROCESSORS:
        return ""
    return (
        f"{PROCESSORS} processors are needed, one for each worker and at least one for"
        f" the client, and there are {processors}"
    )
