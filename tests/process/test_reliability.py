"""What is promised of changes: the short form of `python -m tests.reliability`."""

from __future__ import annotations

from itertools import cycle
from typing import Final

import pytest

from tests.process.clusters import KINDS, LANES, case_on, on_clusters
from tests.process.judging import kept
from tests.reliability.commands import COMMANDS, commands
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
