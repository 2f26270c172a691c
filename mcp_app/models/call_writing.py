"""The statements that write calls: many rows at once, and counters that are raised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from mcp_app.models.transactions import slices

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

SharedValues: TypeAlias = tuple[str | int, ...]
"""The values that many calls have in common."""
Own: TypeAlias = tuple[Any, ...]
"""The other values of a call, in the order of `Call.OWN`."""
TallyValues: TypeAlias = tuple[str | int, ...]
Row = TypeVar("Row")

PARAMETERS: Final = {"sqlite": 999}
"""How many parameters a statement has at most: SQLite took no more before 3.32."""
MAX_PARAMETERS: Final = 4_800
"""The same limit for all other databases."""
FEW: Final = 7
"""Rows of SQLite's smaller statement, for rows that do not fill a large one."""

_ESCAPED: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def rows_per_statement(vendor: str, columns: int) -> int:
    return PARAMETERS.get(vendor, MAX_PARAMETERS) // columns


def insert_calls(
    connection: BaseDatabaseWrapper,
    table: str,
    columns: Sequence[str],
    rows: Mapping[SharedValues, Sequence[Own]],
) -> None:
    """Insert rows: with COPY on PostgreSQL, else with `executemany`."""
    quoted, names = connection.ops.quote_name(table), ", ".join(columns)
    with connection.cursor() as cursor:
        # psycopg 2 has no such method.
        if connection.vendor == "postgresql" and hasattr(cursor, "copy"):
            statement = f"COPY {quoted} ({names}) FROM STDIN"
            # Django does not turn errors of this method into its own exceptions.
            with connection.wrap_database_errors, cursor.copy(statement) as copy:
                copy.write("".join(_lines(rows)))
            return
        statement = f"INSERT INTO {quoted} ({names}) VALUES "  # noqa: S608 - our own names
        marks = f"({', '.join(['%s'] * len(columns))})"
        merged = [(*shared, *own) for shared, each in rows.items() for own in each]
        if connection.vendor != "sqlite":
            # MySQL's driver makes one statement of all rows by itself.
            cursor.executemany(statement + marks, merged)
            return
        for size, parts in split_into_parts(
            merged, (rows_per_statement("sqlite", len(columns)), FEW, 1)
        ):
            values = [tuple(chain.from_iterable(part)) for part in parts]
            cursor.executemany(statement + ", ".join([marks] * size), values)


def split_into_parts(
    rows: Sequence[Row], sizes: Iterable[int]
) -> Iterator[tuple[int, list[Sequence[Row]]]]:
    """Yield the rows in parts of the first size, then the rest in parts of the next.

    Rows that do not fill a part of the last size are left out.  For each statement
    SQLite's driver releases the interpreter lock, and waits for it again: beside a busy
    thread that costs more than to insert a few rows.
    """
    for size in sizes:
        if end := len(rows) - len(rows) % size:
            yield size, [rows[start : start + size] for start in range(0, end, size)]
            rows = rows[end:]


def _lines(rows: Mapping[SharedValues, Sequence[Own]]) -> Iterator[str]:
    for shared, each in rows.items():
        begin = _line(shared)
        for own in each:
            yield f"{begin}\t{_line(own)}\n"


def _line(values: Sequence[Any]) -> str:
    """Return values as COPY takes them; hardly any needs to be escaped."""
    line = "\t".join(["%s"] * len(values)) % tuple(values)
    has_no_tab = line.count("\t") < len(values)
    if has_no_tab and "\\" not in line and "\n" not in line and "\r" not in line:
        return line
    return "\t".join([str(value).translate(_ESCAPED) for value in values])


def raise_statistics(
    connection: BaseDatabaseWrapper,
    table: str,
    keys: Sequence[str],
    counters: Sequence[str],
    maximum: str,
    rows: Sequence[TallyValues],
) -> None:
    """Insert counters, or add to existing ones; `maximum` keeps the greater value."""
    quoted = connection.ops.quote_name(table)
    columns = (*keys, *counters)
    names, marks = ", ".join(columns), f"({', '.join(['%s'] * len(columns))})"
    batch_size = rows_per_statement(connection.vendor, len(columns))
    raised = _conflict_clause(connection.vendor, quoted, keys, counters, maximum)
    with connection.cursor() as cursor:
        for batch in slices(rows, batch_size):
            values = ", ".join([marks] * len(batch))
            statement = f"INSERT INTO {quoted} ({names}) VALUES {values} {raised}"  # noqa: S608 - our own names
            cursor.execute(statement, [value for row in batch for value in row])


def _conflict_clause(
    vendor: str, table: str, keys: Sequence[str], counters: Sequence[str], maximum: str
) -> str:
    mysql = vendor == "mysql"
    greatest = "MAX" if vendor == "sqlite" else "GREATEST"
    changes = []
    for name in counters:
        old, new = f"{table}.{name}", f"VALUES({name})" if mysql else f"excluded.{name}"
        value = f"{greatest}({old}, {new})" if name == maximum else f"{old} + {new}"
        changes.append(f"{name} = {value}")
    if mysql:
        return f"ON DUPLICATE KEY UPDATE {', '.join(changes)}"
    return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {', '.join(changes)}"
