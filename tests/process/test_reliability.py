"""What is promised of changes: the short form of `python -m tests.reliability`."""

from __future__ import annotations

from itertools import cycle
from typing import Final

import pytest

from tests.process.clusters import KINDS, LANES, case_on, on_clusters
from tests.process.judging import kept
from tests.reliability.answers import answers
from tests.reliability.commands import COMMANDS, commands
from tests.reliability.crashes import crashes
from tests.reliability.doorbells import FAULTS, doorbells
from tests.reliability.model import model, model_alone
from tests.reliability.once import killed, restarts, zombies
from tests.reliability.resuming import cuts, resumes
from tests.reliability.site import Site
from tests.reliability.stale_reads import stale_reads
from tests.reliability.stops import stops, unheard
from tests.reliability.watchers import bursts, late_watchers

pytestmark = pytest.mark.programs

COMMANDED: Final = dict(zip(COMMANDS, cycle(KINDS), strict=False))
"""On which kind of cluster `make test` has a command."""


@on_clusters("postgresql", others=["postgresql-redis", "mariadb"])
def test_nobody_who_was_told_is_shown_an_old_list(served: Site) -> None:
    kept(stale_reads(served, 12), 12)


@on_clusters("mariadb", others=["postgresql", "postgresql-redis"])
def test_nor_while_the_database_is_slow(served: Site) -> None:
    kept(stale_reads(served, 10, slowed=True), 10)


@pytest.mark.parametrize(
    ("cluster", "name"),
    [
        case_on(kind, name, long=kind != COMMANDED[name])
        for kind in KINDS
        for name in COMMANDS
    ],
    indirect=["cluster"],
)
def test_a_command_holds_everywhere(served: Site, name: str) -> None:
    kept(commands(served, name, LANES), LANES)


@on_clusters("sqlite", others=["postgresql-redis"])
def test_what_is_stopped_is_served_by_nobody(served: Site) -> None:
    kept(stops(served, 4), 4)


@on_clusters("postgresql-redis")
def test_nor_where_redis_is_away(served: Site) -> None:
    kept(unheard(served, 4), 4)


@on_clusters("postgresql-redis", others=["postgresql", "mariadb"])
def test_whoever_watches_late_misses_nothing(served: Site) -> None:
    kept(late_watchers(served, 30), 30)


@on_clusters("mariadb", others=["postgresql", "postgresql-redis"])
def test_many_write_at_once_and_everything_is_told(served: Site) -> None:
    kept(bursts(served, 5), 5)


# -- calls and streams -----------------------------------------------------------------


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


# -- sessions and calls against their model --------------------------------------------


KILLS: Final = 31
"""The first seed of some that kill, of which one ends a call that runs."""


@on_clusters("postgresql")
def test_four_processes_that_are_killed(served: Site) -> None:
    found = kept(model(served, 4, seed=KILLS, steps=15), 4)
    assert sum(each.kills for each in found)
    assert sum(each.resumes for each in found)


@on_clusters("sqlite")
def test_one_process(served: Site) -> None:
    kept(model_alone(served, 10, steps=20), 10)
