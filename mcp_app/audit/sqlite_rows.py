"""Writes calls that have much in common to SQLite: what they share is bound once.

SQLite's driver takes longer to bind the values of a row than SQLite to insert it.  And
it lets go of the interpreter for each statement, and waits for it again; so one has as
many rows as it may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from mcp_app.models import Call
from mcp_app.models.call_statements import PARAMETERS, Own, SharedValues

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

_SHARED: Final = len(Call.SHARED)
_OWN: Final = len(Call.OWN)
TOGETHER: Final = (PARAMETERS["sqlite"] - _SHARED) // _OWN
"""Rows of a statement."""

Rows = Mapping[SharedValues, Sequence[Own]]


def insert_many(connection: BaseDatabaseWrapper, rows: Rows) -> Rows:
    """Insert what fills whole statements; return the rows that are left."""
    left: dict[SharedValues, Sequence[Own]] = {}
    with connection.cursor() as cursor:
        for shared, own in rows.items():
            end = len(own) - len(own) % TOGETHER
            values: list[tuple[Any, ...]] = [
                (*shared, *chain.from_iterable(own[start : start + TOGETHER]))
                for start in range(0, end, TOGETHER)
            ]
            if values:
                cursor.executemany(_statement(connection), values)
            if own[end:]:
                left[shared] = own[end:]
    return left


def _statement(connection: BaseDatabaseWrapper) -> str:
    names = ", ".join((*Call.SHARED, *Call.OWN))
    table = connection.ops.quote_name(Call._meta.db_table)
    shared = ", ".join(["?"] * _SHARED)
    # So SQLite names the columns of VALUES.
    own = ", ".join([f"column{number}" for number in range(1, _OWN + 1)])
    values = ", ".join([f"({', '.join(['?'] * _OWN)})"] * TOGETHER)
    insert = f"INSERT INTO {table} ({names})"
    return f"{insert} SELECT {shared}, {own} FROM (VALUES {values})"  # noqa: S608 - our own names
