"""How many rows the app's tables have, in a PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg import sql

PREFIX = "mcp_app_"

_TABLES = (
    "SELECT table_name FROM information_schema.tables"
    " WHERE table_schema = 'public' AND starts_with(table_name, %s)"
)


def counted(url: str) -> dict[str, int]:
    """Return the rows of each table of the app, by its name without the prefix."""
    with psycopg.connect(url, autocommit=True) as connection:
        names = [name for (name,) in connection.execute(_TABLES, [PREFIX])]
        return {
            name.removeprefix(PREFIX): _rows(connection, name) for name in sorted(names)
        }


def _rows(connection: psycopg.Connection, table: str) -> int:
    count = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
    row = connection.execute(count).fetchone()
    assert row is not None
    return int(row[0])


def more(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in grown.items() if count > 0}
