"""Rows as they stand in their tables, to be written again without any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import Model


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    @classmethod
    def read(cls, model: type[Model]) -> _Table:
        fields = model._meta.concrete_fields
        columns = tuple(field.column for field in fields if field.column)
        name = model._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {_quoted(columns)} FROM {_quoted([name])}")  # noqa: S608 - our own names
            return cls(name, columns, cursor.fetchall())

    def write(self) -> None:
        values = ", ".join(["%s"] * len(self.columns))
        names = f"{_quoted([self.name])} ({_quoted(self.columns)})"
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {_quoted([self.name])}")  # noqa: S608 - our own names
            cursor.executemany(f"INSERT INTO {names} VALUES ({values})", self.rows)  # noqa: S608 - our own names


class RowCopy:
    """All rows of some tables, with their keys.

    No signal is sent and nothing is recorded when they are written: it is for what
    starts after that.
    """

    def __init__(self, models: Sequence[type[Model]]) -> None:
        self._tables = [_Table.read(model) for model in models]

    def write(self) -> None:
        with transaction.atomic(), connection.constraint_checks_disabled():
            for table in self._tables:
                table.write()


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(connection.ops.quote_name, names))
