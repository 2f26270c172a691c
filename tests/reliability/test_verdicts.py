"""What the long forms judge: a promise that was broken is never called kept."""

from __future__ import annotations

import pytest

from mcp_app.invalidation import workers
from tests.reliability import rates, report, site
from tests.reliability.hour import GROWTH_MIB, Minute, Verdict
from tests.reliability.rounds import Round
from tests.reliability.stale_reads import TEST as STALE

GOOD = Round(test=STALE, asked=4, announced=0.4)


def last_cell(*rounds: Round) -> str:
    table = report.report([("postgresql", each) for each in rounds])
    return table.splitlines()[-1].strip("| ").rpartition("|")[2].strip()


def test_t_is_that_of_the_app() -> None:
    assert site.FRESHNESS == workers.FRESHNESS


@pytest.mark.parametrize(
    "broken",
    [
        Round(test=STALE, wrong=1),
        Round(test=STALE, unanswered=1),
        Round(test=STALE, untold=1),
        Round(test=STALE, deadlocks=1),
    ],
)
def test_a_round_that_breaks_a_promise(broken: Round) -> None:
    assert GOOD.kept
    assert not broken.kept
    assert (last_cell(GOOD), last_cell(GOOD, broken)) == ("yes", "NO")


def test_announcements_that_are_late() -> None:
    assert last_cell(Round(test=STALE, asked=1, announced=0.75)) == "yes"
    assert last_cell(Round(test=STALE, asked=1, announced=0.76)) == "NO"


@pytest.mark.parametrize(
    ("plain", "counter", "kept"), [(100, 30, "yes"), (101, 30, "NO"), (100, 31, "NO")]
)
def test_rates(plain: float, counter: float, kept: str) -> None:
    found = {
        rates.WATCHED: 90.0,
        rates.UNHEARD: 95.0,
        rates.PLAIN: plain,
        rates.COUNTER: 80.0,
    }
    found |= {rates.WATCHED_LONGER: 90.0, rates.COUNTER_LONGER: counter}
    assert last_cell(*[Round(test=rates.TEST, asked=8, rates=found)] * 3) == kept


def test_an_hour_that_leaves_something() -> None:
    def kept(last: float, rows: dict[str, int]) -> bool:
        memory = (50.0, 100.0, 130.0, last)
        minutes = [Minute(at, [GOOD], {}, [each]) for at, each in enumerate(memory, 1)]
        return Verdict(minutes, rows).kept

    assert kept(100.0 + GROWTH_MIB, {"call": 9, "callstatistic": 2, "callwriter": 1})
    assert not kept(100.5 + GROWTH_MIB, {})
    assert not kept(100.0, {"stream": 1, "call": 9})
