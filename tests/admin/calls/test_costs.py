"""What the pages of calls cost where there are 10,000."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_app.admin.calls import log
from mcp_app.models import Call, call_rows
from tests.admin.calls.rows import crash, plan, write
from tests.admin.pages import Queries, Staff, page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_ten_thousand")]


LIST = page("call")
BUDGET = 8
"""Seven, and the strip that says what is stopped."""
MINUTE = 60_000

FILTERS = {
    "outcome": "any_failure",
    "kind": "tool",
    "server": "default",
    "slower": "100",
}
EVERY_FILTER = {**FILTERS, "name": "rare"}
ASKED: list[dict[str, str]] = [
    {},
    *({name: value} for name, value in EVERY_FILTER.items()),
    EVERY_FILTER,
    {"outcome": "crashed"},
    {"user": "maria"},
    {**EVERY_FILTER, "user": "maria"},
    {"q": "rare"},
    {**EVERY_FILTER, "q": "rare"},
    {"when": "hour"},
]


@pytest.fixture
def _ten_thousand(db: None) -> None:
    """Write 10,000 calls of a week, of which each hundredth failed."""
    write(
        *(
            crash(name="rare", ago_ms=n * MINUTE, user_name=f"user{n % 7}")
            if n % 100 == 0
            else {"ago_ms": n * MINUTE, "name": f"tool{n % 40}"}
            for n in range(10_000)
        )
    )


def scans(done: CaptureQueriesContext) -> list[str]:
    """Return the plans that read all calls, or all counters."""
    found = [each["sql"] for each in done if "mcp_app_call" in each["sql"]]
    assert found
    if connection.vendor != "sqlite":
        return []
    plans = [plan(statement, None) for statement in found]
    return [each for each in plans if re.search(r"SCAN mcp_app_call", each)]


def test_few_statements_and_none_that_scans(
    staff: Staff, django_assert_max_num_queries: Queries
) -> None:
    client = staff("view_call")
    call = page("call", "change", Call.objects.latest("pk").pk)
    lists = [(LIST, {"when": "month", **each}) for each in ASKED]
    for url, asked in [(call, {}), *lists]:
        with (
            django_assert_max_num_queries(BUDGET),
            CaptureQueriesContext(connection) as done,
        ):
            answer = client.get(url, asked)
        assert answer.status_code == 200
        assert scans(done) == [], asked


@pytest.mark.parametrize("more", [{}, {"q": "maria"}])
def test_many_are_looked_through_so_far_and_no_further(
    staff: Staff,
    monkeypatch: pytest.MonkeyPatch,
    django_assert_max_num_queries: Queries,
    more: dict[str, str],
) -> None:
    monkeypatch.setattr(call_rows, "LOOKED", 250)
    monkeypatch.setattr("mcp_app.models.calls.LOOKED", 250)
    client = staff("view_call")
    with django_assert_max_num_queries(BUDGET):
        answer = client.get(LIST, {"when": "month", "slower": "1000", **more})
    text = answer.content.decode()
    assert "Look further back" in text
    assert "No such call was found so far." in text
    further = client.get(LIST + unescape(answer.context["further_url"]))
    assert further.context["back_to"] < answer.context["back_to"]


def test_a_count_has_a_bound(staff: Staff, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_rows, "COUNTED", 51)
    monkeypatch.setattr(log, "COUNTED", 51)
    client = staff("view_call")
    text = client.get(LIST, {"when": "month", "user": "maria"}).content.decode()
    assert "more than 50 calls" in text
