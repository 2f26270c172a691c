"""Sessions and calls against their model: the short form of what is drawn for long."""

from __future__ import annotations

from typing import Final

import pytest

from tests.process.clusters import on_clusters
from tests.process.judging import kept
from tests.reliability.model import model, model_alone
from tests.reliability.site import Site

pytestmark = pytest.mark.programs

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
