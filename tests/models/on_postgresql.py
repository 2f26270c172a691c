"""How PostgreSQL is set up; run by `tests/test_databases.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

import pytest
from django.db import connection

from mcp_app.checks.deployment import check_databases
from mcp_app.models.durability import Kind, most_connections
from tests.drill.ports import HOST
from tests.models.unsafe import execute, fresh, kinds
from tests.process.passages import Passage

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]
__all__ = ["fresh"]

KEY: Final = b"K\x00\x00\x00\x0c"
"""The beginning of PostgreSQL's BackendKeyData; the number of the backend follows."""


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("SET synchronous_commit = off", Kind.DURABILITY),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            Kind.ISOLATION,
        ),
    ],
)
def test_what_a_connection_of_postgresql_is_set_to(statement: str, kind: Kind) -> None:
    execute(statement)
    assert kinds() == [kind]


@pytest.fixture
def limited() -> Iterator[None]:
    """Be a role, in a database, that may each have so many connections."""
    quoted = connection.ops.quote_name
    name, role = quoted(connection.settings_dict["NAME"]), f"limited_{uuid4().hex[:8]}"
    execute(f"CREATE ROLE {role}")
    execute(f"SET SESSION AUTHORIZATION {role}")
    try:
        yield
    finally:
        execute("RESET SESSION AUTHORIZATION")
        execute(f"ALTER DATABASE {name} CONNECTION LIMIT -1")
        execute(f"DROP ROLE {role}")


@pytest.mark.parametrize(
    ("role", "database", "most"), [(5, -1, 5), (9, 7, 7), (-1, 8, 8), (0, 8, 0)]
)
@pytest.mark.usefixtures("limited")
def test_a_role_and_a_database_may_have_limits_of_their_own(
    role: int, database: int, most: int
) -> None:
    quoted = connection.ops.quote_name
    with connection.cursor() as cursor:
        cursor.execute("SELECT session_user")
        [name] = cursor.fetchone()
    execute("RESET SESSION AUTHORIZATION")
    superuser = most_connections("default")
    own = quoted(connection.settings_dict["NAME"])
    execute(f"ALTER ROLE {name} CONNECTION LIMIT {role}")
    execute(f"ALTER DATABASE {own} CONNECTION LIMIT {database}")
    assert most_connections("default") == superuser
    execute(f"SET SESSION AUTHORIZATION {name}")
    assert most_connections("default") == most


def renumbered(piece: bytes) -> bytes:
    """Give a connection a number of its own, as a pooler does."""
    before, key, after = piece.partition(KEY)
    return before + key + (b"\x00\x00\x00\x07" + after[4:] if key else after)


@contextmanager
def pooled() -> Iterator[None]:
    given = connection.settings_dict
    where = (given["HOST"], given["PORT"])
    passage = Passage((where[0] or HOST, int(where[1] or 5432)), renumbered)
    passage.open()
    given.update(HOST=HOST, PORT=passage.port)
    try:
        yield
    finally:
        connection.close()
        given.update(HOST=where[0], PORT=where[1])
        passage.cut()


@pytest.mark.parametrize(("cursors", "found"), [(False, [Kind.POOLER]), (True, [])])
def test_a_pooler_on_the_way(
    cursors: bool, found: list[Kind], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "DISABLE_SERVER_SIDE_CURSORS"
    monkeypatch.setitem(connection.settings_dict, name, cursors)
    with pooled():
        assert kinds() == found


@pytest.mark.parametrize(("size", "found"), [(20, ["mcp_app.W017"]), (21, [])])
def test_a_pool_that_is_too_small(
    size: int, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here: Any = connection
    pool = {"min_size": 1, "max_size": size}
    with monkeypatch.context() as patched:
        patched.setitem(here.settings_dict["OPTIONS"], "pool", pool)
        messages = check_databases(None, databases=["default"])
        here.close()
        here.close_pool()
    assert [each.id for each in messages] == found
    for each in messages:
        assert "at most 20 connections, but mcp_app's threads may use 21" in each.msg
