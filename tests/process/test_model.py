"""Sessions and calls against their model: the short form of what is drawn for long."""

from __future__ import annotations

from contextlib import closing
from typing import Final

import pytest

from tests.drill import switches
from tests.process.clusters import on_clusters
from tests.process.judging import kept
from tests.reliability.model import model, model_alone
from tests.reliability.site import Site

pytestmark = pytest.mark.programs

KILLS: Final = 31
"""The first seed of some that kill, of which one ends a call that runs."""
ENOUGH: Final = 200
"""Examples in which a fault must be found; the first in which it is ends its test."""

alone = on_clusters("sqlite")


@on_clusters("postgresql")
def test_four_processes_that_are_killed(served: Site) -> None:
    found = kept(model(served, 4, seed=KILLS, steps=15), 4)
    assert sum(each.kills for each in found)
    assert sum(each.resumes for each in found)


@alone
def test_one_process(served: Site) -> None:
    kept(model_alone(served, 10, steps=20), 10)


@pytest.mark.long
@alone
@pytest.mark.parametrize("fault", [switches.SENT_BEFORE_COMMIT, switches.GAPS_PASSED])
def test_what_would_be_found(served: Site, fault: str) -> None:
    with (
        served.cluster.faulty(fault),
        closing(model_alone(served, ENOUGH, steps=20)) as rounds,
    ):
        assert next(each for each in rounds if not each.kept).wrong
