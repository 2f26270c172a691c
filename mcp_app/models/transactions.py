"""Transactions: the site's, whatever its settings make of them, and our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db import Error as DatabaseError
from django.db import connections, models, transaction

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

INNODB_DEADLOCK = 1213
INNODB_WAIT = 1205
POSTGRESQL_WAIT = "55P03"
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
            if not again or _is_in_transaction():
                raise
    return function()


def _is_in_transaction() -> bool:
    return any(each.in_atomic_block for each in connections.all(initialized_only=True))


def is_conflict(error: Exception) -> bool:
    """Whether the database chose this transaction to let others go on.

    To do it again is all that it takes.
    """
    state = getattr(error.__cause__, "sqlstate", None)
    return error.args[:1] == (INNODB_DEADLOCK,) or state in POSTGRESQL_CONFLICTS


def is_busy(error: Exception) -> bool:
    """Whether the database waited for somebody else's lock until it gave up."""
    state = getattr(error.__cause__, "sqlstate", None)
    is_waiting = error.args[:1] == (INNODB_WAIT,) or state == POSTGRESQL_WAIT
    return is_waiting or "is locked" in str(error)


# -- clock -----------------------------------------------------------------------------
# The database's clock, which all processes share: integer milliseconds in UTC.

_NOW: Final[Mapping[str, str]] = {
    "sqlite": "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
    "postgresql": "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint",
    # UNIX_TIMESTAMP(NOW()) would be ambiguous when the server's clocks go back.
    "mysql": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000",
}

# SQLite and MySQL read their clock once in a statement.
_STATEMENT: Final[Mapping[str, str]] = {
    **_NOW,
    "postgresql": "(EXTRACT(EPOCH FROM statement_timestamp()) * 1000)::bigint",
}


def now_sql(connection: BaseDatabaseWrapper) -> str:
    """Return what stands for the time in a statement of our own."""
    return _NOW[connection.vendor]


class NowMilliseconds(models.Func):
    """Milliseconds since 1970 in UTC, on the database's own clock."""

    arity = 0
    output_field = models.BigIntegerField()
    clocks = _NOW

    def as_sql(
        self,
        compiler: SQLCompiler,
        connection: BaseDatabaseWrapper,
        *positional: Any,
        **extra_context: Any,
    ) -> tuple[str, Any]:
        return self.clocks[connection.vendor], ()


class StatementMilliseconds(NowMilliseconds):
    """The time at which a statement begins: the same wherever it stands in it."""

    clocks = _STATEMENT
