"""What is promised of calls and streams: the short form of what is tried for long."""

from __future__ import annotations

import pytest

from tests.process.clusters import on_clusters
from tests.process.judging import kept
from tests.reliability.answers import answers
from tests.reliability.crashes import crashes
from tests.reliability.doorbells import FAULTS, doorbells
from tests.reliability.once import killed, restarts, zombies
from tests.reliability.resuming import cuts, resumes
from tests.reliability.site import Site

pytestmark = pytest.mark.programs


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
