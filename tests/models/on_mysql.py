"""How MySQL is set up; run by `tests/test_databases.py`."""

from __future__ import annotations

import pytest

from mcp_app.models import Topic
from mcp_app.models.durability import Kind, doubts
from tests.models.unsafe import execute, fresh, kinds

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]
__all__ = ["fresh"]


def test_the_isolation_of_a_connection_of_mysql() -> None:
    execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    assert kinds() == [Kind.ISOLATION]


def test_a_table_of_another_engine() -> None:
    table = Topic._meta.db_table
    execute(f"ALTER TABLE {table} ENGINE = MyISAM")
    try:
        (doubt,) = doubts("default")
    finally:
        execute(f"ALTER TABLE {table} ENGINE = InnoDB")
    assert doubt.kind == Kind.ENGINE
    assert f"{table} (MyISAM)" in doubt.sentence
