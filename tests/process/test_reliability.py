"""What is promised of changes: the short form of `python -m tests.reliability`."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import cycle
from typing import Final

import pytest

from tests.drill import switches
from tests.process.clusters import KINDS, LANES, case_on, on_clusters
from tests.process.judging import kept
from tests.reliability.commands import COMMANDS, commands
from tests.reliability.doorbells import doorbells
from tests.reliability.rounds import Round
from tests.reliability.site import Site
from tests.reliability.stale_reads import stale_reads
from tests.reliability.stops import stops, unheard
from tests.reliability.watchers import bursts, late_watchers

pytestmark = pytest.mark.programs

IMPATIENT_S: Final = 3.0
"""For faults: so long it takes until what is never told counts as untold."""
ENOUGH: Final = 400
"""Rounds in which a fault must be found; the first in which it is ends its test.

The rarest is there in a tenth of the rounds: that none of these has it is as likely as
one of 10^18.
"""
OVERTAKEN: Final = [name for name in COMMANDS if name != "subscription"]
"""Commands that would be overtaken; what is told of is ordered by its commits."""

COMMANDED: Final = dict(zip(COMMANDS, cycle(KINDS), strict=False))
"""On which kind of cluster `make test` has a command."""


@pytest.fixture
def impatient(served: Site) -> Site:
    return replace(served, patience=IMPATIENT_S)


# -- what is promised ----------------------------------------------------------------


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


# -- and that these tests would find it broken ---------------------------------------


def broken(rounds: Generator[Round]) -> Round:
    """Return the first round in which the promise was not kept."""
    with closing(rounds):
        return next(each for each in rounds if not each.kept)


@pytest.fixture
def whole_again(served: Site, impatient: Site) -> Iterator[None]:
    """Everything holds when a fault is gone; what was missed is published again."""
    yield
    list(stale_reads(impatient, 1))
    kept(stale_reads(served, 1), 1)


@pytest.mark.long
@on_clusters("postgresql")
@pytest.mark.usefixtures("whole_again")
def test_announced_without_waiting_for_the_others(impatient: Site) -> None:
    """Somebody is shown an old list: usually in one round of five or ten."""
    quickly = replace(impatient, patience=1.0)
    with (
        impatient.cluster.faulty(switches.ANNOUNCED_AT_ONCE),
        closing(stale_reads(quickly, ENOUGH)) as rounds,
    ):
        assert any(each.wrong for each in rounds)


@pytest.mark.long
@on_clusters("postgresql")
@pytest.mark.usefixtures("whole_again")
def test_versions_that_are_read_apart_from_changes(impatient: Site) -> None:
    with impatient.cluster.faulty(switches.READ_APART):
        found = broken(stale_reads(impatient, ENOUGH))
    assert found.wrong or found.untold


@pytest.mark.long
@on_clusters("postgresql")
@pytest.mark.usefixtures("whole_again")
def test_streams_that_are_told_only_of_what_is_seen_later(impatient: Site) -> None:
    with impatient.cluster.faulty(switches.NEW_STREAMS_FORGOTTEN):
        assert broken(stale_reads(impatient, ENOUGH)).untold


@pytest.mark.long
@on_clusters("postgresql-redis")
@pytest.mark.usefixtures("whole_again")
def test_a_ring_that_is_relied_upon(impatient: Site) -> None:
    redis = impatient.cluster.redis
    assert redis is not None
    with impatient.cluster.faulty(switches.LOOKED_WHEN_RUNG):
        redis.kill()
        try:
            assert broken(stale_reads(impatient, ENOUGH)).untold
        finally:
            redis.start()


@pytest.mark.long
@on_clusters("postgresql-redis")
@pytest.mark.usefixtures("whole_again")
def test_a_ring_that_is_relied_upon_while_calls_are_read(impatient: Site) -> None:
    with impatient.cluster.faulty(switches.LOOKED_WHEN_RUNG):
        assert broken(doorbells(impatient, 4)).untold


@pytest.mark.long
@on_clusters("postgresql")
@pytest.mark.parametrize("name", OVERTAKEN)
def test_a_command_that_is_answered_at_once(impatient: Site, name: str) -> None:
    with impatient.cluster.faulty(switches.ANSWERED_AT_ONCE):
        assert broken(commands(impatient, name, ENOUGH)).wrong


@pytest.mark.long
@on_clusters("postgresql")
def test_a_fold_that_raises_only_what_was_all_its_own(impatient: Site) -> None:
    with impatient.cluster.faulty(switches.FOLDED_BY_ITS_OWN):
        assert broken(bursts(impatient, ENOUGH)).untold


@pytest.mark.long
@on_clusters("postgresql")
def test_who_watches_asked_where_the_site_saves(impatient: Site) -> None:
    with impatient.cluster.faulty(switches.ASKED_WHO_WATCHES):
        assert broken(late_watchers(impatient, ENOUGH)).untold
