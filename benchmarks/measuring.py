"""What a figure is: a name, what was measured, and the bound it must keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from benchmarks.awake import awake
from benchmarks.load import Answer, Sample, run
from benchmarks.messages import IsRight, Request
from benchmarks.processes import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to measure, in seconds; the same for every subject of a figure."""

    rounds: int = 5
    seconds: float = 5
    warm_up: float = 1
    counting: float = 60
    """For statements, which are counted and not timed."""


QUICK = Effort(rounds=3, seconds=2, warm_up=1, counting=10)


@dataclass(frozen=True, slots=True)
class Bound:
    """What a number must keep; `sign` is ">=" or "<="."""

    sign: str
    limit: float

    def holds(self, value: float) -> bool:
        """Return whether the value keeps the bound."""
        return value >= self.limit if self.sign == ">=" else value <= self.limit

    def __str__(self) -> str:
        return f"{self.sign} {self.limit:g}"


AtLeast = partial(Bound, ">=")
AtMost = partial(Bound, "<=")


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table."""

    figure: str
    measured: float
    bound: Bound
    unit: str = ""
    raw: str = ""
    """The numbers that `measured` was computed from."""

    @property
    def ok(self) -> bool:
        """Whether the bound is kept."""
        return self.bound.holds(self.measured)


@dataclass(frozen=True, slots=True)
class Subject:
    """One request to one server, whose answers are known."""

    server: Process
    request: Request
    answer: Answer

    @classmethod
    def asked(cls, server: Process, request: Request, is_right: IsRight) -> Subject:
        """Return a subject whose first answer was right and is now the pattern."""
        return cls(server, request, Answer.learned(server.port, request, is_right))

    def sample(self, seconds: float, **pace: int) -> Sample:
        """Measure once; `pace` has `connections` and `pause_ms` of `load.run`."""
        return run(self.server, self.request, self.answer, seconds=seconds, **pace)


@dataclass(frozen=True, slots=True)
class Medians:
    """What the rounds of one subject have in the middle."""

    samples: list[Sample] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Calls a second."""
        return median(sample.calls_per_second for sample in self.samples)

    @property
    def cpu(self) -> float:
        """Microseconds of the server's processor time for one call."""
        return median(sample.cpu_per_call for sample in self.samples)

    @property
    def kernel(self) -> float:
        """Microseconds of it in the kernel."""
        return median(sample.kernel_per_call for sample in self.samples)

    def __str__(self) -> str:
        return f"{self.rate:,.0f}/s {self.cpu:.0f} us ({self.kernel:.0f} kernel)"


def compare_rates(figure: str, one: Medians, other: Medians, bound: Bound) -> Result:
    """Return the line of how many calls a second there are for each of the other's."""
    return Result(figure, one.rate / other.rate, bound, raw=f"{one} : {other}")


def compare_cpu(figure: str, one: Medians, other: Medians, bound: Bound) -> Result:
    """Return the line of what a call costs beside one of the other's."""
    raw = f"{one} : {other}"
    return Result(f"CPU: {figure}", one.cpu / other.cpu, bound, raw=raw)


def interleaved(effort: Effort, subjects: Sequence[Subject]) -> list[Medians]:
    """Measure the subjects in turn, after a warm-up of each."""
    for subject in subjects:
        subject.sample(effort.warm_up)
    found = alternately(
        subjects, lambda subject: subject.sample(effort.seconds), effort.rounds
    )
    return [Medians(samples) for samples in found]


def alternately(
    subjects: Sequence[Subject], measure: Callable[[Subject], Sample], rounds: int
) -> list[list[Sample]]:
    """Measure the subjects round by round, back and forth.

    What disturbs the machine for a while then falls on all of them.  The processors are
    kept awake meanwhile.
    """
    samples: list[list[Sample]] = [[] for _ in subjects]
    order = list(zip(subjects, samples, strict=True))
    with awake():
        for _ in range(rounds):
            for subject, found in order:
                found.append(measure(subject))
            order.reverse()
    return samples


Figure = Callable[[Effort], Iterable[Result]]
"""Starts what it needs, measures, and returns its lines of the table."""
