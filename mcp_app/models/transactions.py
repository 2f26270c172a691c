"""Transactions of the site and our own, and the clock of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
"""Repetitions after conflicts."""

Value = TypeVar("Value")


def in_atomic(using: str) -> bool:
    """Whether a block of `atomic` is open whose end is a commit or a rollback.

    If a site commits by hand, `atomic` only makes savepoints, and Django does not
    report the commit.
    """
    connection = connections[using]
    return connection.in_atomic_block and connection.commit_on_exit


def tells_of_commits(using: str) -> bool:
    """Whether Django runs `on_commit` callbacks, at once or later."""
    return in_atomic(using) or connections[using].get_autocommit()


@contextmanager
def own_transaction(using: str) -> Iterator[None]:
    """Open a transaction that sees what others commit, and may write on SQLite.

    MariaDB: under REPEATABLE READ, if it reads and writes shared rows, it would block
    the site's inserts.
    SQLite: a deferred transaction that has read cannot wait for the write lock.
    """
    connection: Any = connections[using]
    outermost, sqlite = not connection.in_atomic_block, connection.vendor == "sqlite"
    if sqlite:
        # Connecting sets the mode of the settings: connect before it is changed.
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
    """Call the function; repeat it after a conflict or an error of the types `also`.

    Inside a transaction raise the error: only the transaction's owner can repeat it.
    """
    for _attempt in range(attempts):
        try:
            return function()
        except DatabaseError as error:
            may_repeat = is_conflict(error) or isinstance(error, also)
            opened = connections.all(initialized_only=True)
            if not may_repeat or any(each.in_atomic_block for each in opened):
                raise
    return function()


def is_conflict(error: Exception) -> bool:
    """Whether the database rolled back for a conflict: the transaction is repeated."""
    state = getattr(error.__cause__, "sqlstate", None)
    return error.args[:1] == (INNODB_DEADLOCK,) or state in POSTGRESQL_CONFLICTS


def is_busy(error: Exception) -> bool:
    """Whether the database gave up waiting for somebody else's lock."""
    state = getattr(error.__cause__, "sqlstate", None)
    is_waiting = error.args[:1] == (INNODB_WAIT,) or state == POSTGRESQL_WAIT
    return is_waiting or "is locked" in str(error)


def slices(values: Sequence[Value], size: int) -> Iterator[Sequence[Value]]:
    """Yield the values in parts of this size, each for a statement of its own."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


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
    """Return the SQL for the time now, in milliseconds."""
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
    """The time at which a statement begins: the same at each place in it."""

    clocks = _STATEMENT
