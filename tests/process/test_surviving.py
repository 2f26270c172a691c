"""What is promised of calls and streams: the short form of what is tried for long."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from typing import Final

import pytest

from tests.drill import switches
from tests.process.clusters import on_clusters
from tests.process.judging import kept
from tests.reliability.answers import answers
from tests.reliability.crashes import crashes
from tests.reliability.doorbells import FAULTS, doorbells
from tests.reliability.once import killed, restarts, zombies
from tests.reliability.resuming import cuts, resumes
from tests.reliability.rounds import Round
from tests.reliability.site import Site

pytestmark = pytest.mark.programs

Test = Callable[..., Generator[Round]]
ENOUGH: Final = 1_000
"""Rounds in which a fault must be found; the first in which it is ends its test."""
IMPATIENT_S: Final = 3.0
"""For faults: so long it takes until what is never told again counts as lost."""


@on_clusters("mariadb", others=["postgresql"])
def test_streams_are_resumed_whatever_is_killed(served: Site) -> None:
    found = kept(resumes(served, 25), 25)
    assert sum(each.resumes for each in found)


@on_clusters("postgresql", others=["mariadb"])
def test_an_answer_that_is_cut_anywhere_is_resumed(served: Site) -> None:
    kept(cuts(served, 40), 40)


@on_clusters("postgresql", others=["mariadb"])
def test_questions_are_answered_elsewhere(served: Site) -> None:
    kept(answers(served, 10), 10)


@on_clusters("postgresql", others=["mariadb"])
def test_a_call_runs_once_whatever_is_killed(served: Site) -> None:
    kept(killed(served, 20), 20)


@on_clusters("mariadb", others=["postgresql"])
def test_who_comes_back_from_the_dead_adds_nothing(served: Site) -> None:
    kept(zombies(served, 3), 3)


@on_clusters("postgresql", others=["mariadb"])
def test_a_rolling_restart_fails_no_call(served: Site) -> None:
    kept(restarts(served, 2, processes=2), 2)


@on_clusters("postgresql", others=["mariadb"])
def test_nothing_is_lost_when_the_database_crashes(served: Site) -> None:
    kept(crashes(served, 1), 1)


@on_clusters("postgresql-redis")
def test_nothing_is_lost_when_the_doorbell_fails(served: Site) -> None:
    kept(doorbells(served, len(FAULTS), seconds=1), len(FAULTS))


# -- and that these tests would find it broken ---------------------------------------


def broken(rounds: Generator[Round]) -> Round:
    """Return the first round in which the promise was not kept."""
    with closing(rounds):
        return next(each for each in rounds if not each.kept)


@pytest.mark.long
@on_clusters("postgresql")
@pytest.mark.parametrize(
    ("fault", "test"),
    [
        (switches.SENT_BEFORE_COMMIT, resumes),
        (switches.GAPS_PASSED, resumes),
        (switches.REFUSED_TOGETHER, killed),
    ],
)
def test_what_would_be_found(served: Site, fault: str, test: Test) -> None:
    with served.cluster.faulty(fault):
        found = broken(test(served, ENOUGH))
    assert found.wrong or found.unanswered


@pytest.mark.long
@on_clusters("postgresql")
def test_commits_that_do_not_wait_for_the_disk(served: Site) -> None:
    with served.cluster.faulty(switches.DISK_NOT_AWAITED):
        assert broken(crashes(replace(served, patience=IMPATIENT_S), ENOUGH)).wrong


@pytest.mark.long
@on_clusters("postgresql")
def test_appends_that_ask_for_no_owner(served: Site) -> None:
    with served.cluster.faulty(switches.OWNER_IGNORED):
        # Ten streams at a time, of which one is enough.
        assert broken(zombies(served, 50)).wrong
