"""What a run prints at its end: what each part and room cost, and what is wrong."""

from __future__ import annotations

from collections import Counter

from tests.suite import budget, records
from tests.suite.run import Run, say
from tests.suite.verdict import Verdict

BOUND_S = 1_580
"""What `make test` may cost, in units of the yardstick."""


def print_costs(run: Run, wall: float, bound: int | None) -> None:
    """Print seconds of the processor, in units of the yardstick, and of the clock."""
    units = ", ".join(f"{each:.2f}" for each in run.units)
    say(f"\nprocessor seconds, divided by {run.unit:.2f} ({units}), and by the clock")
    for part in run.parts:
        _line(part.part.name, part.processor / run.unit, part.wall)
    say("\nrooms: the same, and the programs that their tests started")
    rooms = records.by_room(run.tests)
    for room, cost in rooms.items():
        programs = f"{cost.programs:6}"
        _line(room, cost.processor / run.unit, cost.wall, programs)
    if run.orphans:
        _line("programs without a parent", run.orphans / run.unit, 0)
    total = run.orphans + sum(part.processor for part in run.parts)
    pace = budget.pace(budget.read(budget.TABLE), rooms, run.unit)
    say(f"\n{sum_of(total / run.unit, wall, bound, pace)}")


def sum_of(seconds: float, wall: float, bound: int | None, pace: float) -> str:
    """Return the line for a whole run; `pace` is that of its rooms.

    A pace above 1 has two causes: a slow machine, or rooms that have all become
    dearer.  So both sums are printed.
    """
    most = "" if bound is None else f" of {bound:,}"
    here = (
        f" ({seconds / pace:,.0f} if divided by {pace:.2f}:"
        " so many times its line the median room took)"
        if pace > 1
        else ""
    )
    return f"{seconds:,.0f}{most} processor seconds{here}; {wall:.0f} by the clock"


def print_verdict(run: Run, verdict: Verdict) -> None:
    """Print what did not run, what is wrong, and how many tests passed."""
    tests = run.tests
    skipped = Counter(each.text for each in tests if each.outcome == "skipped")
    for reason, number in sorted(skipped.items()):
        say(f"NOT RUN, {number} tests: {' '.join(reason.split())}")
    for test in verdict.unsteady:
        say(f"UNSTEADY, to be mended: {test}")
    for line in verdict.wrong:
        say(line)
    outcomes = Counter(each.outcome for each in tests)
    passed, failed = outcomes["passed"] + len(verdict.unsteady), outcomes["failed"]
    say(
        f"{passed} passed, {failed - len(verdict.unsteady)} failed,"
        f" {outcomes['skipped']} skipped"
    )


def _line(name: str, seconds: float, wall: float, more: str = "") -> None:
    say(f"{seconds:8.1f} {wall:8.1f}  {name:24}{more}".rstrip())
