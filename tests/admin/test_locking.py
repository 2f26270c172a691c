from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from mcp_app.models import Tool
from tests.admin.pages import page

pytestmark = pytest.mark.django_db


def test_a_post_locks_its_row_where_the_database_can(admin_client: Client) -> None:
    tool = Tool.objects.create(name="a")
    url = page("tool", "change", tool.pk)
    with CaptureQueriesContext(
        connection,
    ) as got:
        admin_client.get(url)
    with CaptureQueriesContext(connection) as posted:
        admin_client.post(url, {})
    locks = connection.features.has_select_for_update
    assert not any("FOR UPDATE" in query["sql"] for query in got.captured_queries)
    assert any("FOR UPDATE" in query["sql"] for query in posted.captured_queries) is (
        locks
    )


def test_a_row_that_is_not_there_is_told(admin_client: Client) -> None:
    for answer in (
        admin_client.get(page("tool", "change", 7), follow=True),
        admin_client.post(page("tool", "change", 7), {}, follow=True),
    ):
        assert "Perhaps it was deleted?" in answer.content.decode()
