"""Whether a run is green: which tests failed, and which of them by chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from tests.suite import budget, records, unsteady
from tests.suite.records import Cost, Record
from tests.suite.run import PartRun, Run, say


@dataclass(frozen=True, slots=True)
class Verdict:
    """Sentences that make a run red, and tests that passed on being run again."""

    wrong: list[str]
    unsteady: list[str]


def judge(run: Run, form: str, *, may_be_unsteady: bool) -> Verdict:
    """Judge a run that has ended; runs failed tests again if those may be unsteady."""
    failed = [(part, test) for part in run.parts for test in part.failed]
    again = failed if may_be_unsteady and _may_be_chance(failed) else []
    chance = {test.test for part, test in again if _passes_again(run, part, test)}
    wrong = [line for part in run.parts for line in _wrong_of(part, chance)]
    if form == "all":
        wrong += unsteady.overdue(unsteady.listed(unsteady.LISTED), date.today())
    return Verdict(wrong, sorted(chance))


def _may_be_chance(failed: list[tuple[PartRun, Record]]) -> bool:
    # What several tests share fails when the last of them is over, and that one would
    # pass alone, whatever the others did.
    at_end = any(test.at_end for _, test in failed)
    return len(failed) <= unsteady.MOST and not at_end


def excesses(run: Run) -> list[str]:
    """Return a sentence for each room that cost more than it may.

    One is not judged of which a test ended its worker, by a crash or a hang: another
    worker starts everything again.
    """
    # Nobody could say what such a test has cost.
    ended = {
        each.room
        for each in run.tests
        if each.outcome == "failed" and each.cost == Cost()
    }
    rooms = records.by_room(run.tests)
    costs = {room: cost for room, cost in rooms.items() if room not in ended}
    return list(budget.excesses(budget.read(budget.TABLE), costs, run.unit))


def _passes_again(run: Run, part: PartRun, record: Record) -> bool:
    say(f"\nAgain, {unsteady.TIMES} times beside the tests of its room: {record.test}")
    environment = {**run.environment, **part.part.environment}
    if not unsteady.is_unsteady(record.test, environment):
        return False
    unsteady.note(record, unsteady.JOURNAL)
    return True


def _wrong_of(part: PartRun, chance: set[str]) -> Iterator[str]:
    failed = {each.test for each in part.failed}
    yield from (f"FAILED {test}" for test in sorted(failed - chance))
    number, ended = records.read(part.records)
    missing = number - len({each.test for each in ended})
    if missing > 0:
        yield f"{part.part.name}: {missing} of {number} tests did not end."
    # pytest says itself that it found none, unless something has ended it.
    if part.part.has_tests and not (number or part.status):
        yield f"{part.part.name}: no test is known to have run."
    for sentence in records.read_problems(part.records):
        yield f"{part.part.name}: {sentence}"
    # pytest ends with 1 if tests have failed, or could not be collected.
    if part.status and not (part.status == 1 and failed):
        yield f"{part.part.name} ended with {part.status}."
