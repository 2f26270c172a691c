"""The statements that write calls: many rows at once, and counters that are raised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

SharedValues: TypeAlias = tuple[str | int, ...]
"""What many calls have in common."""
Own: TypeAlias = tuple[int, int, int, int, str, str, str]
"""What is a call's own: four numbers, two texts without a blank, and any text."""
TallyValues: TypeAlias = tuple[str | int, ...]
Row = TypeVar("Row")

PARAMETERS: Final = {"sqlite": 999}
"""How many parameters a statement has at most: SQLite took no more before 3.32."""
MOST_PARAMETERS: Final = 4_800
"""The same for all others."""
FEW: Final = 7
"""Rows of a smaller statement for SQLite, for what does not fill one of the largest."""

_ESCAPED: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
"""What stands for these characters in the text format of COPY."""


def at_once(vendor: str, columns: int) -> int:
    """Return how many rows with so many columns one statement has at most."""
    return PARAMETERS.get(vendor, MOST_PARAMETERS) // columns


def insert(
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
            # Django passes the method on without its own exceptions.
            with connection.wrap_database_errors, cursor.copy(statement) as copy:
                copy.write("".join(_lines(rows)))
            return
        statement = f"INSERT INTO {quoted} ({names}) VALUES "  # noqa: S608 - our own names
        marks = f"({', '.join(['%s'] * len(columns))})"
        whole = [(*shared, *own) for shared, each in rows.items() for own in each]
        if connection.vendor != "sqlite":
            # MySQL's driver makes one statement of all rows by itself.
            cursor.executemany(statement + marks, whole)
            return
        for size, parts in in_parts(whole, (at_once("sqlite", len(columns)), FEW, 1)):
            values = [tuple(chain.from_iterable(part)) for part in parts]
            cursor.executemany(statement + ", ".join([marks] * size), values)


def in_parts(
    rows: Sequence[Row], sizes: Iterable[int]
) -> Iterator[tuple[int, list[Sequence[Row]]]]:
    """Yield the rows in parts of the first size, then the rest in parts of the next.

    Rows that do not fill a part of the last size are not in any.  SQLite's driver lets
    go of the interpreter for each statement, and waits for it again: beside a busy loop
    that costs more than to insert a few rows.
    """
    for size in sizes:
        end = len(rows) - len(rows) % size
        if end:
            yield size, [rows[start : start + size] for start in range(0, end, size)]
            rows = rows[end:]


def _lines(rows: Mapping[SharedValues, Sequence[Own]]) -> Iterator[str]:
    """Yield each row in the text format of COPY; what is shared is made once."""
    for shared, each in rows.items():
        begin = "\t".join([str(value).translate(_ESCAPED) for value in shared])
        for time_ms, took_us, size, given, digest, failure, error in each:
            end = error and error.translate(_ESCAPED)
            yield (
                f"{begin}\t{time_ms}\t{took_us}\t{size}\t{given}"
                f"\t{digest}\t{failure}\t{end}\n"
            )


def raise_statistics(
    connection: BaseDatabaseWrapper,
    table: str,
    keys: Sequence[str],
    counters: Sequence[str],
    most: str,
    rows: Sequence[TallyValues],
) -> None:
    """Insert counters, or add to those that are there; `most` is the greater one."""
    quoted = connection.ops.quote_name(table)
    columns = (*keys, *counters)
    names, marks = ", ".join(columns), f"({', '.join(['%s'] * len(columns))})"
    several = at_once(connection.vendor, len(columns))
    raised = _raised(connection.vendor, quoted, keys, counters, most)
    with connection.cursor() as cursor:
        for start in range(0, len(rows), several):
            some = rows[start : start + several]
            values = ", ".join([marks] * len(some))
            statement = f"INSERT INTO {quoted} ({names}) VALUES {values} {raised}"  # noqa: S608 - our own names
            cursor.execute(statement, [value for row in some for value in row])


def _raised(
    vendor: str, table: str, keys: Sequence[str], counters: Sequence[str], most: str
) -> str:
    """Return what is done where a counter is there already."""
    mysql = vendor == "mysql"
    greatest = "MAX" if vendor == "sqlite" else "GREATEST"
    changes = []
    for name in counters:
        given = f"VALUES({name})" if mysql else f"excluded.{name}"
        own = f"{table}.{name}"
        value = f"{greatest}({own}, {given})" if name == most else f"{own} + {given}"
        changes.append(f"{name} = {value}")
    if mysql:
        return f"ON DUPLICATE KEY UPDATE {', '.join(changes)}"
    return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {', '.join(changes)}"
