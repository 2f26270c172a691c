"""How long callers wait at a rate that every server can keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks import servers
from benchmarks.load import LATE_MS, Sample
from benchmarks.measuring import AtMost, Effort, Result, Subject, alternately
from benchmarks.messages import call, is_sum
from benchmarks.postgres import cluster

RUNS: Final = 3
SLICE_S: Final = 10.0
CONNECTIONS: Final = 9
PAUSE_MS: Final = 8
"""About 1,000 calls a second, if an answer takes less than 2 ms."""
NAMES: Final = ("floor", "no call log", "SQLite", "PostgreSQL", "SDK")
AGREED: Final = 1.25
"""The floor's runs may differ by this factor; otherwise the machine decides."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long the callers of one server waited in one run, in microseconds."""

    samples: Sequence[Sample]

    @property
    def p99(self) -> float:
        """Return the median of what each slice has."""
        return median(each.p99 for each in self.samples)

    def __str__(self) -> str:
        calls = sum(each.calls for each in self.samples)
        return (
            f"p50 {median(each.p50 for each in self.samples):,.0f}, "
            f"p99.9 {median(each.p999 for each in self.samples):,.0f}, "
            f"longest {max(each.longest for each in self.samples):,.0f} us, "
            f"{sum(each.late for each in self.samples):,} of {calls:,} "
            f"above {LATE_MS} ms"
        )


Run = dict[str, Waits]


def at_a_steady_rate(effort: Effort) -> Iterator[Result]:
    """Call five servers in turn at the same rate, in three runs."""
    with ExitStack() as stack:
        started = stack.enter_context
        database = started(cluster())
        own = [
            started(servers.drill(audit="off")),
            started(servers.drill()),
            started(servers.drill(database=database.url)),
        ]
        asked = [
            Subject.asked(each, call("drill_add"), is_sum)
            for each in (*own, started(servers.sdk()))
        ]
        first = asked[0]
        bare = started(servers.floor(first.answer))
        subjects = [Subject(bare, first.request, first.answer), *asked]
        runs = [_run(subjects, effort.counting) for _ in range(RUNS)]
    yield from compared(runs)


def _run(subjects: Sequence[Subject], seconds: float) -> Run:
    """Measure each subject for so long, in slices."""
    length = min(seconds, SLICE_S)
    pace = {"connections": CONNECTIONS, "pause_ms": PAUSE_MS}
    slices = max(1, round(seconds / SLICE_S))
    found = alternately(subjects, lambda each: each.sample(length, **pace), slices)
    return {name: Waits(samples) for name, samples in zip(NAMES, found, strict=True)}


def compared(runs: Sequence[Run]) -> Iterator[Result]:
    """Return a line for each server and run, and the ratios of the medians."""
    for number, run in enumerate(runs, 1):
        for name, waits in run.items():
            yield Result(
                f"p99 at 1,000 calls a second, run {number}: {name}",
                waits.p99,
                AtMost(float("inf")),
                "us",
                str(waits),
            )
    p99 = {name: median(run[name].p99 for run in runs) for name in NAMES}
    floors = [run["floor"].p99 for run in runs]
    differ = max(floors) / min(floors)
    for figure, one, other, limit in (
        ("p99: no call log / SDK", "no call log", "SDK", 0.5),
        ("p99: call log in SQLite / none", "SQLite", "no call log", 1.5),
        ("p99: call log in PostgreSQL / none", "PostgreSQL", "no call log", 1.5),
    ):
        sure = differ <= AGREED
        raw = f"{p99[one]:,.0f} : {p99[other]:,.0f} us"
        if not sure:
            raw += f"; this machine cannot tell: the floor's runs differ {differ:.1f}x"
        yield Result(
            figure,
            p99[one] / p99[other],
            AtMost(limit if sure else float("inf")),
            raw=raw,
        )
