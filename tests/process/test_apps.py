"""Codes and refresh tokens that are shown at several processes at the same time."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import Final

import pytest

from tests.process.apps import sign_in
from tests.process.clusters import case_on, on_clusters
from tests.process.judging import kept
from tests.reliability.revocations import ends
from tests.reliability.site import Site

pytestmark = pytest.mark.programs

EACH: Final = 5
"""Requests at each process."""


@pytest.mark.parametrize(
    ("cluster", "apps"),
    [
        case_on("postgresql-redis", 15),
        case_on("postgresql-redis", 200, long=True),
        case_on("mariadb", 15, long=True),
        case_on("sqlite", 15, long=True),
    ],
    indirect=["cluster"],
)
def test_apps_end_everywhere(served: Site, apps: int) -> None:
    rounds = kept(ends(served, apps), apps)
    assert all(each.ended is not None for each in rounds)


@on_clusters("postgresql-redis", others=["mariadb", "sqlite"])
def test_a_refresh_token_at_all_processes_has_one_successor(served: Site) -> None:
    with closing(served.staff.at(served.cluster.urls[0])) as staff:
        app = sign_in(staff, "it refreshes")
    answers = app.refreshes(served.cluster.urls * EACH)
    assert Counter(each.status_code for each in answers) == {200: len(answers)}
    tokens = [each.json() for each in answers]
    assert len({each["refresh_token"] for each in tokens}) == 1
    assert len({each["access_token"] for each in tokens}) == len(answers)


@on_clusters("postgresql-redis", others=["mariadb", "sqlite"])
def test_a_code_at_all_processes_is_used_once_and_ends(served: Site) -> None:
    with closing(served.staff.at(served.cluster.urls[0])) as staff:
        app = sign_in(staff, "it exchanges", exchange=False)
        wrong = app.exchanges(served.cluster.urls, code_verifier="w" * 43)
        assert {each.status_code for each in wrong} == {400}
        answers = app.exchanges(served.cluster.urls * EACH)
        assert Counter(each.status_code for each in answers) == {
            200: 1,
            400: len(answers) - 1,
        }
        page = staff.get(f"/account/tokens/apps/{app.key}/").text
    assert "Its sign-in was used twice. Somebody else may have had it." in page
