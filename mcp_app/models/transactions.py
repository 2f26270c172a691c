"""Transactions of our own threads, whatever the site's settings make of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections, transaction

INNODB_DEADLOCK = 1213
POSTGRESQL_CONFLICTS = frozenset({"40001", "40P01"})


@contextmanager
def own_transaction(using: str) -> Iterator[None]:
    """Open a transaction that sees what others commit, and may write on SQLite.

    Under REPEATABLE READ one that reads and writes shared rows would block the site's
    inserts on MariaDB; a deferred transaction of SQLite cannot wait for the lock once
    it has read.
    """
    connection: Any = connections[using]
    outermost, sqlite = not connection.in_atomic_block, connection.vendor == "sqlite"
    mode = getattr(connection, "transaction_mode", None)
    if sqlite:
        connection.transaction_mode = "IMMEDIATE"
    try:
        with transaction.atomic(using=using):
            if outermost and not sqlite:
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            yield
    finally:
        if sqlite:
            connection.transaction_mode = mode


def is_conflict(error: Exception) -> bool:
    """Whether the database chose this transaction to let others go on.

    To do it again is all that it takes.
    """
    state = getattr(error.__cause__, "sqlstate", None)
    return error.args[:1] == (INNODB_DEADLOCK,) or state in POSTGRESQL_CONFLICTS
