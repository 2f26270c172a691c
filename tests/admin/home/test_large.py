"""The home page where there is much: as few statements as where there is little.

`python -m benchmarks --only home` does the same on PostgreSQL and MariaDB.
"""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchmarks import home as large
from mcp_app.models import Call, CallStatistic, Prompt, Tool
from tests.admin.home.pages import home

pytestmark = [pytest.mark.django_db, pytest.mark.long]


def test_a_million_calls_and_ten_thousand_definitions(admin_client: Client) -> None:
    large.fill_rows()
    large.fill_calls(large.CALLS)
    large.fill_counters()
    assert Call.objects.count() >= large.CALLS
    assert CallStatistic.objects.count() >= large.NAMES * large.HOURS
    with CaptureQueriesContext(connection) as done:
        response = home(admin_client)
    assert len(done) <= 15
    reading = [each["sql"] for each in done if "mcp_app_call" in each["sql"]]
    assert all("mcp_app_callstatistic" in sql for sql in reading)
    context = response.context
    drafts = sum(
        model.objects.filter(published=None).count() for model in (Tool, Prompt)
    )
    (line,) = [each for each in context["concerns"] if each.word == "Not published"]
    assert str(drafts + 2 * large.EACH) in line.sentence
    assert [each.name for each in context["calls"]["slowest"]] == [
        f"tool{large.NAMES - number}" for number in range(1, 6)
    ]
    assert len(context["calls"]["most_failing"]) == 5
