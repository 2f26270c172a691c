"""Writes calls that have much in common to SQLite: what they share is bound once.

SQLite's driver takes longer to bind the values of a row than SQLite to insert it.  And
it lets go of the interpreter for each statement, and waits for it again; so one has
many rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from sqlite3 import SQLITE_LIMIT_VARIABLE_NUMBER
from typing import TYPE_CHECKING, Any, Final

from mcp_app.models import Call
from mcp_app.models.call_statements import Own, SharedValues, in_parts

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

_SHARED: Final = len(Call.SHARED)
_OWN: Final = len(Call.OWN)
SIZES: Final = (500, 100, 20, 5)
"""Rows of a statement, each number a multiple of the next.

They are no more because to bind 500 rows keeps the loop waiting for a millisecond.
"""
ALWAYS_POSSIBLE: Final = 999
"""Parameters of a statement, unless somebody has compiled SQLite to take fewer."""

Rows = Mapping[SharedValues, Sequence[Own]]


def insert_many(connection: BaseDatabaseWrapper, rows: Rows) -> Rows:
    """Insert what fills whole statements; return the rows that are left."""
    left: dict[SharedValues, Sequence[Own]] = {}
    table = connection.ops.quote_name(Call._meta.db_table)
    with connection.cursor() as cursor:
        most = _most_parameters(connection.connection)
        sizes = [size for size in SIZES if _SHARED + size * _OWN <= most]
        for shared, own in rows.items():
            rest = own
            for size, parts in in_parts(own, sizes):
                rest = rest[size * len(parts) :]
                values: list[tuple[Any, ...]] = [
                    (*shared, *chain.from_iterable(part)) for part in parts
                ]
                cursor.executemany(_statement(table, size), values)
            if rest:
                left[shared] = rest
    return left


def _most_parameters(connection: Any) -> int:
    """Return how many values a statement of this driver's connection may bind."""
    # Drivers like that of SQLCipher resemble Python's own, and not all have this.
    limit = getattr(connection, "getlimit", None)
    return limit(SQLITE_LIMIT_VARIABLE_NUMBER) if limit else ALWAYS_POSSIBLE


@cache
def _statement(table: str, size: int) -> str:
    names = ", ".join((*Call.SHARED, *Call.OWN))
    shared = ", ".join(["?"] * _SHARED)
    # So SQLite names the columns of VALUES.
    own = ", ".join([f"column{number}" for number in range(1, _OWN + 1)])
    values = ", ".join([f"({', '.join(['?'] * _OWN)})"] * size)
    insert = f"INSERT INTO {table} ({names})"
    return f"{insert} SELECT {shared}, {own} FROM (VALUES {values})"  # noqa: S608 - our own names
