"""A revoked token lets nobody in at any process, once that was answered.

It is the short form of `python -m tests.reliability --part security`.
"""

from __future__ import annotations

import pytest

from tests.process.clusters import case_on, on_clusters
from tests.process.judging import kept
from tests.reliability.revocations import revocations
from tests.reliability.site import Site

pytestmark = pytest.mark.programs


@pytest.mark.parametrize(
    ("cluster", "tokens"),
    [case_on("postgresql-redis", 4), case_on("postgresql-redis", 30, long=True)],
    indirect=["cluster"],
)
def test_tokens_are_revoked(served: Site, tokens: int) -> None:
    found = kept(revocations(served, tokens), tokens)
    assert all(each.ended is not None for each in found)


@on_clusters("sqlite", others=["mariadb"])
def test_without_a_doorbell(served: Site) -> None:
    kept(revocations(served, 4), 4)
