"""Transactions: the site's, whatever its settings make of them, and our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import Error as DatabaseError
from django.db import connections, transaction

INNODB_DEADLOCK = 1213
POSTGRESQL_CONFLICTS = frozenset({"40001", "40P01"})
ATTEMPTS = 5
"""How often what gave way to others is tried again."""

Value = TypeVar("Value")


def in_atomic(using: str) -> bool:
    """Whether a block of `atomic` is open whose end is a commit or a rollback.

    Where a site commits by hand, Django's blocks are but savepoints: when it commits,
    and whether, nobody is told.
    """
    connection = connections[using]
    return connection.in_atomic_block and connection.commit_on_exit


def tells_of_commits(using: str) -> bool:
    """Whether Django calls what is given to `on_commit`, at once or later."""
    return in_atomic(using) or connections[using].get_autocommit()


@contextmanager
def own_transaction(using: str) -> Iterator[None]:
    """Open a transaction that sees what others commit, and may write on SQLite.

    Under REPEATABLE READ one that reads and writes shared rows would block the site's
    inserts on MariaDB; a deferred transaction of SQLite cannot wait for the lock once
    it has read.
    """
    connection: Any = connections[using]
    outermost, sqlite = not connection.in_atomic_block, connection.vendor == "sqlite"
    if sqlite:
        # To connect sets the mode of the settings.
        connection.ensure_connection()
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


def persistently(
    function: Callable[[], Value],
    attempts: int = ATTEMPTS,
    also: tuple[type[DatabaseError], ...] = (),
) -> Value:
    """Do it; again, so often, where the database made it give way to others.

    So after other errors, if they are named.  Inside a transaction only whoever opened
    that can.
    """
    for _attempt in range(attempts):
        try:
            return function()
        except DatabaseError as error:
            again = is_conflict(error) or isinstance(error, also)
            if not again or _inside():
                raise
    return function()


def _inside() -> bool:
    return any(each.in_atomic_block for each in connections.all(initialized_only=True))


def is_conflict(error: Exception) -> bool:
    """Whether the database chose this transaction to let others go on.

    To do it again is all that it takes.
    """
    state = getattr(error.__cause__, "sqlstate", None)
    return error.args[:1] == (INNODB_DEADLOCK,) or state in POSTGRESQL_CONFLICTS
