"""Indexes of some rows: what they have, and that the pages of calls go along them."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from django.db import connection

from mcp_app.models import Call
from mcp_app.models.call_rows import INDEXED, CallQuery, count_statement, page_statement
from tests.admin.calls.rows import plan

pytestmark = [pytest.mark.databases, pytest.mark.django_db]

TABLE = Call._meta.db_table
NAMES = {
    "outcome": "mcp_call_outcome",
    "user_name": "mcp_call_user",
    "failure": "mcp_call_failure",
}
DEFINITIONS = {
    "sqlite": "SELECT sql FROM sqlite_master WHERE name = %s",
    "postgresql": "SELECT indexdef FROM pg_indexes WHERE indexname = %s",
}


def test_every_column_has_its_index() -> None:
    assert INDEXED.keys() == NAMES.keys()
    with connection.cursor() as cursor:
        there = connection.introspection.get_constraints(cursor, TABLE)
    for column, name in NAMES.items():
        assert there[name]["columns"][0] == column


@pytest.mark.parametrize("name", NAMES.values())
def test_it_has_some_rows_where_the_database_can(name: str) -> None:
    if connection.vendor not in DEFINITIONS:
        assert not connection.features.supports_partial_indexes
        return
    with connection.cursor() as cursor:
        cursor.execute(DEFINITIONS[connection.vendor], [name])
        (definition,) = cursor.fetchone()
    assert " WHERE " in definition


def test_no_site_is_warned_of_it() -> None:
    assert "models.W037" not in {each.id for each in run_checks(databases=["default"])}


@pytest.mark.parametrize("column", NAMES)
def test_pages_and_counts_go_along_it(column: str) -> None:
    if connection.vendor != "sqlite":
        return  # Others choose by how many rows there are.
    sought = CallQuery(0, ways=[(column, "=", "a")])
    for statement in (
        page_statement(TABLE, ["id", "time_ms"], sought, 9),
        count_statement(TABLE, sought),
    ):
        steps = plan(*statement).replace("COVERING ", "")
        assert f"USING INDEX {NAMES[column]}" in steps
