"""Rows that have outlived their use: counted, and removed a portion at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from django.db import connections, models, router

from mcp_app.models.transactions import own_transaction, persistently

PORTION = 500
"""Rows that one transaction removes: nobody waits long for it."""

Row = TypeVar("Row", bound=models.Model)


@dataclass(frozen=True, slots=True)
class ExpiredRows:
    """Rows of one kind, named for people: "sessions".

    `count` returns how many there are; `take` deletes a portion and returns how many of
    them are gone, None when nothing is left.  If it first deletes what belongs to them,
    such as messages, that may be 0.  Both block.
    """

    what: str
    count: Callable[[], int]
    take: Callable[[], int | None]

    def remove(self) -> int | None:
        """Delete a portion as `take` does; repeat it after a conflict with a writer."""
        return persistently(self.take)


def expired_rows(what: str, rows: models.QuerySet[Any], limit: int = 0) -> ExpiredRows:
    """Return rows that no other rows belong to; without a `limit`, it is `PORTION`."""
    return ExpiredRows(what, rows.count, partial(_remove_portion, rows, limit))


def _remove_portion(rows: models.QuerySet[Any], limit: int) -> int | None:
    limit = limit or PORTION
    using = router.db_for_write(rows.model)
    with own_transaction(using):
        keys = list(claim_rows(rows.using(using)).values_list("pk", flat=True)[:limit])
        delete_rows(using, rows.model, keys)
    return len(keys) or None


def claim_rows(rows: models.QuerySet[Row]) -> models.QuerySet[Row]:
    """Return rows locked; if the database can skip what others have locked, it does."""
    skip = connections[rows.db].features.has_select_for_update_skip_locked
    return rows.select_for_update(skip_locked=skip)


def delete_rows(
    using: str, model: type[models.Model], keys: Sequence[Any], column: str = "pk"
) -> None:
    """Delete rows by a column, without what belongs to them; nothing is loaded."""
    is_one_column = column != "pk" or len(model._meta.pk_fields) == 1
    if is_one_column and connections[using].vendor != "mysql":
        rows = model._base_manager.using(using).filter(**{f"{column}__in": keys})
        rows._raw_delete(using)
    elif keys:
        _delete_one_by_one(using, model, keys, column)


def _delete_one_by_one(
    using: str, model: type[models.Model], keys: Sequence[Any], column: str
) -> None:
    """Delete rows with a statement for each key, all of them sent together.

    MariaDB and MySQL may read a whole table for a list of keys, and would wait for
    every transaction of the site that has written to it.
    """
    connection = connections[using]
    quoted = connection.ops.quote_name
    names = [str(field.column) for field in model._meta.pk_fields]
    where = [f"{quoted(each)} = %s" for each in (names if column == "pk" else [column])]
    table = quoted(model._meta.db_table)
    statement = f"DELETE FROM {table} WHERE {' AND '.join(where)}"  # noqa: S608 - our own names
    values = [key if isinstance(key, tuple) else (key,) for key in keys]
    with connection.cursor() as cursor:
        cursor.executemany(statement, values)
