"""A revoked token lets nobody in at any process, once that was answered.

It is the short form of `python -m tests.reliability --part security`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from typing import Final

import pytest

from tests.drill import switches
from tests.process.clusters import case_on, on_clusters
from tests.process.judging import kept
from tests.reliability.revocations import revocations
from tests.reliability.rounds import Round
from tests.reliability.site import Site

pytestmark = pytest.mark.programs

ENOUGH: Final = 200
"""Rounds in which the fault must be found; the first in which it is ends its test."""
IMPATIENT_S: Final = 3.0


@pytest.mark.parametrize(
    ("cluster", "tokens"),
    [case_on("postgresql-redis", 4), case_on("postgresql-redis", 30, long=True)],
    indirect=["cluster"],
)
def test_tokens_are_revoked(served: Site, tokens: int) -> None:
    """By a command and on a page; their streams end, and others go on."""
    found = kept(revocations(served, tokens), tokens)
    assert all(each.ended is not None for each in found)


@on_clusters("sqlite", others=["mariadb"])
def test_without_a_doorbell(served: Site) -> None:
    kept(revocations(served, 4), 4)


@pytest.mark.long
@on_clusters("postgresql")
def test_a_page_that_answers_at_once_is_found(served: Site) -> None:
    impatient = replace(served, patience=IMPATIENT_S)
    with (
        impatient.cluster.faulty(switches.ANSWERED_AT_ONCE),
        closing(revocations(impatient, ENOUGH)) as rounds,
    ):
        assert broken(rounds).wrong


def broken(rounds: Generator[Round]) -> Round:
    """Return the first round in which the promise was not kept."""
    return next(each for each in rounds if not each.kept)
