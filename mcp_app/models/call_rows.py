"""The statements that read calls: pages by the key of the last one, and counts.

Each follows one index and has a limit, so a larger table costs no more.
Django's ORM cannot write them, because SQLite takes no limit in parts of a union.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

LOOKED: Final = 20_000
"""How many rows are looked through, if no index has what is asked for."""
COUNTED: Final = 10_001
"""How many calls are counted; people then read: more than 10,000."""

INDEXED: Final = {
    "outcome": "NOT (outcome = 'answered')",
    "user_name": "NOT (user_name = '')",
    "failure": "NOT (failure = '')",
}
"""Columns whose index has only some rows, and the condition of that index in SQL.

SQLite uses such an index only if a query has the same text, without parameters.
"""

Value: TypeAlias = str | int | tuple[str, ...]
Condition: TypeAlias = tuple[str, str, Value]
"""A column, an operator (= < <= >= IN) and what it is compared with."""
Statement: TypeAlias = tuple[str, list[str | int]]


@dataclass(frozen=True, slots=True)
class Key:
    """The place of a call in the order of all: times are in milliseconds."""

    time_ms: int
    pk: int


@dataclass(frozen=True, slots=True)
class CallQuery:
    """Calls of a period that meet one of the `ways`, and all `conditions`.

    Each of the `ways` has an index (see `INDEXED`); none means all calls.  No index has
    the columns of `conditions`: these are compared only in the first `LOOKED` calls.
    """

    start_ms: int
    end_ms: int | None = None
    ways: Sequence[Condition] = ()
    conditions: Sequence[Condition] = ()


@dataclass(frozen=True, slots=True)
class CallCount:
    """How many were found; `back_to` is where a search stopped, None if it is whole."""

    found: int
    back_to: Key | None = None


def page_statement(
    table: str,
    columns: Sequence[str],
    sought: CallQuery,
    limit: int,
    *,
    older: Key | None = None,
    newer: Key | None = None,
) -> Statement:
    """Return SQL for the newest calls before `older`, or the first after `newer`."""
    bound = LOOKED if sought.conditions else limit
    names, order = ", ".join(columns), _order_columns(newer)
    rows, values = _looked_at(table, names, sought, bound, older=older, newer=newer)
    where, where_values = _where_clause(sought.conditions)
    statement = (
        f"SELECT {names} FROM ({rows}) AS looked{where} ORDER BY {order} LIMIT {limit}"  # noqa: S608 - our own names
    )
    return statement, [*values, *where_values]


def count_statement(
    table: str, sought: CallQuery, older: Key | None = None
) -> Statement:
    """Return SQL for three values: rows looked at, their oldest time, rows that fit."""
    bound = LOOKED if sought.conditions else COUNTED
    needed = dict.fromkeys(("id", "time_ms", *(each[0] for each in sought.conditions)))
    rows, values = _looked_at(table, ", ".join(needed), sought, bound, older=older)
    where, where_values = _where_clause(sought.conditions)
    fits = where.removeprefix(" WHERE ") or "1 = 1"
    statement = (
        f"SELECT COUNT(*), MIN(time_ms), SUM(CASE WHEN {fits} THEN 1 ELSE 0 END) "  # noqa: S608 - our own names
        f"FROM ({rows}) AS looked"
    )
    return statement, [*where_values, *values]


class CallingClient(NamedTuple):
    """A caller and its client, the number of its calls, and when the newest began."""

    server: str
    session: str
    principal: str
    user_id: str
    user_name: str
    principal_client: str
    client_name: str
    client_version: str
    calls: int
    newest_ms: int


def client_statement(table: str, sought: CallQuery, limit: int) -> Statement:
    """Return SQL for a `CallingClient` of each client that made one of these calls."""
    # The last two fields are computed.
    names = ", ".join(CallingClient._fields[:-2])
    rows, values = _looked_at(table, f"{names}, time_ms, id", sought, limit)
    statement = (
        f"SELECT {names}, COUNT(*), MAX(time_ms) FROM ({rows}) AS looked "  # noqa: S608 - our own names
        f"GROUP BY {names}"
    )
    return statement, values


def _looked_at(
    table: str,
    names: str,
    sought: CallQuery,
    bound: int,
    *,
    older: Key | None = None,
    newer: Key | None = None,
) -> Statement:
    """Return SQL for the first `bound` rows of the query, by its `ways` alone."""
    time, border = _time_conditions(sought, older, newer), _key_condition(older, newer)
    parts, values = [], []
    for number, way in enumerate(sought.ways or [None]):
        where, parameters = _where_clause([*([way] if way else []), *time])
        if way and way[0] in INDEXED:
            where += f" AND {INDEXED[way[0]]}"
        # Rows that an earlier way leads to are not read again.
        unlike, other_values = _exclude_ways(sought.ways[:number])
        after, keys = border
        parts.append(
            f"SELECT * FROM (SELECT {names} FROM {table}{where}{unlike}{after} "  # noqa: S608 - our own names
            f"ORDER BY {_order_columns(newer)} LIMIT {bound}) AS way{number}"
        )
        values.append([*parameters, *other_values, *keys])
    union = " UNION ALL ".join(parts)
    if len(parts) > 1:
        order = f"ORDER BY {_order_columns(newer)} LIMIT {bound}"
        union = f"SELECT * FROM ({union}) AS every {order}"  # noqa: S608 - our own names
    return union, list(chain.from_iterable(values))


def _exclude_ways(ways: Iterable[Condition]) -> Statement:
    """Return SQL that leaves out the rows of these ways; no column is NULL."""
    conditions = [_where_clause([way]) for way in ways]
    text = "".join(
        f" AND NOT ({where.removeprefix(' WHERE ')})" for where, _ in conditions
    )
    return text, list(chain.from_iterable(values for _, values in conditions))


def _order_columns(newer: Key | None) -> str:
    return "time_ms DESC, id DESC" if newer is None else "time_ms, id"


def _time_conditions(
    sought: CallQuery, older: Key | None, newer: Key | None
) -> list[Condition]:
    start = sought.start_ms if newer is None else max(sought.start_ms, newer.time_ms)
    conditions: list[Condition] = [("time_ms", ">=", start)]
    if sought.end_ms is not None:
        conditions.append(("time_ms", "<", sought.end_ms))
    if older is not None:
        conditions.append(("time_ms", "<=", older.time_ms))
    return conditions


def _key_condition(older: Key | None, newer: Key | None) -> Statement:
    """Return SQL that leaves out shown calls of the same millisecond."""
    if older is not None:
        return " AND (time_ms < %s OR id < %s)", [older.time_ms, older.pk]
    if newer is not None:
        return " AND (time_ms > %s OR id > %s)", [newer.time_ms, newer.pk]
    return "", []


def _where_clause(conditions: Iterable[Condition]) -> Statement:
    parts: list[str] = []
    values: list[Any] = []
    for column, operator, value in conditions:
        if isinstance(value, tuple):
            parts.append(f"{column} IN ({', '.join(['%s'] * len(value))})")
            values += value
        else:
            parts.append(f"{column} {operator} %s")
            values.append(value)
    return (f" WHERE {' AND '.join(parts)}" if parts else ""), values
