"""A transaction on one database that always ends with a rollback.

Two means detect code that commits by itself: the guard, which looks at its statements,
and a savepoint, which is gone at the end if a commit got past the guard.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, Self

from django.db import Error, IntegrityError, OperationalError, connections, transaction
from django.db.backends.signals import connection_created
from django.db.transaction import TransactionManagementError

from mcp_app.models.transactions import INNODB_DEADLOCK
from mcp_app.pools.connections import ConnectionKiller
from mcp_app.pools.statement_time import limit_transaction
from mcp_app.workbench.trying.dry_run_outcome import Ending

# -- committing statements -------------------------------------------------------------
# Which SQL statements end a transaction, as their first words say.
#
# A text may hold several statements, if the driver takes them.  Commits that no text
# shows, by a procedure or the driver's method, are left to the savepoint.

_ENDING: Final = (
    r"COMMIT|END|BEGIN|START|PREPARE|ABORT"
    r"|ROLLBACK(?!\s+(?:(?:WORK|TRANSACTION)\s+)?TO\b)"
)
_IMPLICIT: Final = (
    r"ALTER|CREATE(?!\s+(?:OR\s+REPLACE\s+)?TEMPORARY\b)|DROP(?!\s+TEMPORARY\b)"
    r"|RENAME|TRUNCATE|INSTALL|UNINSTALL|IMPORT|GRANT|REVOKE|SET\s+PASSWORD"
    r"|SET\b(?=[^;]*\bautocommit\b)|EXECUTE\s+IMMEDIATE|LOCK|UNLOCK|CACHE|CHECK|FLUSH"
    r"|LOAD\s+INDEX|OPTIMIZE|REPAIR|RESET|STOP|CHANGE"
    r"|ANALYZE\s+(?:(?:NO_WRITE_TO_BINLOG|LOCAL)\s+)?TABLE"
)
"""Statements before which MySQL and MariaDB commit, and those that run other texts."""
_WITHOUT_DDL: Final = re.compile(rf"(?:{_ENDING})\b", re.IGNORECASE)
_WITH_DDL: Final = re.compile(rf"(?:{_ENDING}|{_IMPLICIT})\b", re.IGNORECASE)
_READING: Final = re.compile(
    r"(?:SELECT|WITH|VALUES|EXPLAIN|PRAGMA|SHOW|SAVEPOINT|RELEASE|ROLLBACK)\b",
    re.IGNORECASE,
)
_UNDOES_DDL: Final = frozenset({"sqlite", "postgresql"})
"""Databases, by Django's vendor, on which DDL is part of a transaction."""

_BLANK: Final = re.compile(r"[\s;(]+|--[^\n]*")
"""What may stand before the first word; code skips `/* */`."""
_MYSQL_BLANK: Final = re.compile(r"[\s;(]+|--[^\n]*|#[^\n]*|/\*M?!\d*|\*/")
"""MySQL executes the text in `/*! */`."""
_MARK: Final = re.compile(r"/\*|\*/")
_QUOTED: Final = (
    r'"(?:[^"]|"")*"|`[^`]*`|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|--[^\n]*|/\*(?!M?!).*?\*/'
)
_APART: Final = re.compile(rf"'(?:[^']|'')*'|{_QUOTED}|(?P<end>;)", re.DOTALL)
_MYSQL_APART: Final = re.compile(
    rf"'(?:[^'\\]|\\.|'')*'|{_QUOTED}|#[^\n]*|(?P<end>;)", re.DOTALL
)
"""A semicolon that ends a statement (`end`), or a text in which it ends nothing."""


def committing_words(sql: str, vendor: str) -> str:
    """Return the words by which a text would end a transaction, "" without any.

    `vendor` is that of Django's connection.  On databases other than SQLite and
    PostgreSQL, the statements count before which MySQL commits.
    """
    pattern = _WITHOUT_DDL if vendor in _UNDOES_DDL else _WITH_DDL
    for statement in _statements(sql, vendor):
        if match := pattern.match(_without_comments(statement, vendor)):
            return " ".join(match[0].upper().split())
    return ""


def may_write(sql: str, vendor: str) -> bool:
    """Whether a text may change rows, as its first word says."""
    return not _READING.match(_without_comments(sql, vendor))


def _statements(sql: str, vendor: str) -> Iterator[str]:
    begin = 0
    if ";" in sql:
        apart = _MYSQL_APART if vendor == "mysql" else _APART
        for match in apart.finditer(sql):
            if match["end"]:
                yield sql[begin : match.start()]
                begin = match.end()
    yield sql[begin:]


def _without_comments(sql: str, vendor: str) -> str:
    """Return a text from its first word on."""
    blank = _MYSQL_BLANK if vendor == "mysql" else _BLANK
    position, before = 0, -1
    while position != before:
        before = position
        if match := blank.match(sql, position):
            position = match.end()
        elif sql.startswith("/*", position):
            position = _comment_end(sql, position, nests=vendor == "postgresql")
    return sql[position:]


def _comment_end(sql: str, begin: int, *, nests: bool) -> int:
    depth = 0
    for match in _MARK.finditer(sql, begin):
        depth += 1 if match[0] == "/*" and (nests or not depth) else 0
        depth -= match[0] == "*/"
        if not depth:
            return match.end()
    return len(sql)


# -- trial transaction -----------------------------------------------------------------

SAVEPOINT: Final = "mcp_dry_run"
_LEAST_S: Final = 0.001
"""The least time of a statement: 0 would mean no limit."""


class Statements:
    """The statements of one dry run, on all databases."""

    def __init__(self) -> None:
        self.count = 0
        self.refusals: dict[str, None] = {}
        """The first words of the statements that were refused because they commit."""
        self.are_over = False
        """Other threads set it: from then on each statement is refused."""


class TrialTransaction:
    """One thread enters, uses and leaves it; others may ask, interrupt and cut it."""

    def __init__(self, alias: str, statements: Statements, seconds: float) -> None:
        """`seconds` is how long a statement may take, if the database can end it."""
        self.alias = alias
        self._seconds = max(seconds, _LEAST_S)
        self._usual_seconds: float | None = None
        self.ending = Ending.UNDONE
        self.is_cut = False
        self.line: ConnectionKiller | None = None
        """Cuts its connection from another thread; None if nobody can."""
        self._statements = statements
        self._is_lost = False
        self._is_beside = False
        """Whether the code opened another connection to the same database."""
        self._may_have_written = False
        self._changes = 0
        """How many rows SQLite had changed on this connection before."""
        self._connection: Any = None
        self._driver: Any = None

    def __enter__(self) -> Self:
        """Begin; raises `django.db.Error` if the database cannot be reached."""
        self._connection = connection = connections[self.alias]
        was_open = connection.connection is not None and not connection.in_atomic_block
        try:
            self._begin_transaction()
        except Error:
            if not was_open:
                raise
            # The server has ended the old connection: this opens another.
            self._begin_transaction()
        self._driver = connection.connection
        self._changes = _driver_state(self._driver, "total_changes", 0)
        self.line = ConnectionKiller.from_wrapper(connection)
        return self

    def _begin_transaction(self) -> None:
        connection = self._connection
        self._block = block = transaction.atomic(using=self.alias)
        try:
            connection.ensure_connection()
            with _deferred_mode(connection):
                block.__enter__()
            self._outer = [*connection.savepoint_ids], [*connection.atomic_blocks]
            _execute_sql(connection, connection.ops.savepoint_create_sql(SAVEPOINT))
            self._limit_statements()
        except Error:
            connection.close()
            if block in connection.atomic_blocks:
                block.__exit__(None, None, None)
            raise

    def _limit_statements(self) -> None:
        """Let the database end long statements: MariaDB goes on after a cut."""
        limit_transaction(self.alias, self._seconds)
        wrapper = self._connection
        if wrapper.vendor == "mysql" and wrapper.mysql_is_mariadb:
            with wrapper.cursor() as cursor:
                cursor.execute("SELECT @@max_statement_time")
                usual = float(cursor.fetchone()[0])
                if not 0 < usual <= self._seconds:
                    self._usual_seconds = usual
                    cursor.execute("SET max_statement_time = %s", [self._seconds])

    # -- the guard --------------------------------------------------------------

    @contextmanager
    def statement_guard(self) -> Iterator[None]:
        """Look at each statement of the code inside."""
        connection = self._connection
        wrappers = connection.execute_wrappers
        wrappers.append(self._execute_guarded)
        # Django would close the connection, because it has an open transaction; outside
        # a dry run, `close_old_connections()` finds no open transaction.
        connection.close_if_unusable_or_obsolete = lambda: None
        note = partial(self._note_connection, threading.get_ident())
        connection_created.connect(note, weak=False)
        try:
            yield
        finally:
            connection_created.disconnect(note)
            vars(connection).pop("close_if_unusable_or_obsolete", None)
            # The code may have left other wrappers there, or removed this one.
            wrappers[:] = [each for each in wrappers if each != self._execute_guarded]

    def _note_connection(self, thread: int, connection: Any, **_: object) -> None:
        """Take note of a connection that the code opened beside this one."""
        if connection.alias == self.alias and threading.get_ident() == thread:
            self._is_beside |= connection is not self._connection

    def _execute_guarded(
        self, run: Any, sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        self._check_is_open()
        text, vendor = _statement_text(sql, self._driver), self._connection.vendor
        if words := committing_words(text, vendor):
            self._statements.refusals[words] = None
            raise TransactionManagementError(
                f"A dry run refuses {words}: it commits, and nothing could be undone."
            )
        self._statements.count += 1
        self._may_have_written |= may_write(text, vendor)
        try:
            return run(sql, params, many, context)
        except Error as error:
            # The database may have ended the transaction after this error.
            deadlock = error.args[:1] == (INNODB_DEADLOCK,)
            is_open = _driver_state(self._driver, "in_transaction", 1)
            self._is_lost |= deadlock or not is_open
            raise

    def _check_is_open(self) -> None:
        if self._statements.are_over:
            raise OperationalError("The dry run is over.")
        driver = self._connection.connection
        is_open = driver is self._driver and _driver_state(driver, "in_transaction", 1)
        if self._is_lost or not is_open:
            raise TransactionManagementError(
                f"The transaction of the dry run on {self.alias!r} has ended: what is"
                " written now could not be undone."
            )

    # -- the end ----------------------------------------------------------------

    def check_constraints(self) -> None:
        """Raise errors that only a commit would find; only PostgreSQL can tell them."""
        connection = self._connection
        if connection.vendor != "postgresql" or connection.needs_rollback:
            return
        try:
            _execute_sql(connection, "SET CONSTRAINTS ALL IMMEDIATE")
        except IntegrityError:
            raise
        except Error:
            # After an error that the function has caught, PostgreSQL cannot tell.
            return

    def __exit__(self, *_: object) -> None:
        self.ending = self._back_to_savepoint()
        if self.ending is Ending.UNDONE and self._is_beside:
            self.ending = Ending.BESIDE
        self._leave_transaction()

    def _back_to_savepoint(self) -> Ending:
        connection = self._connection
        closed = connection.closed_in_transaction
        if closed or connection.connection is not self._driver:
            return Ending.LOST
        if connections[self.alias] is not connection:
            # The code has replaced the connection by one without a transaction.
            return Ending.LOST
        connection.needs_rollback = False
        try:
            _execute_sql(connection, connection.ops.savepoint_rollback_sql(SAVEPOINT))
            if self._usual_seconds is not None:
                # A rollback does not reset this variable.
                usual = f"SET max_statement_time = {self._usual_seconds}"
                _execute_sql(connection, usual)
        except Error:
            # The savepoint is gone.
            try:
                self._driver.rollback()
            except Exception:  # of whatever driver
                return Ending.LOST
            usable = connection.is_usable() and not self._is_lost
            return Ending.COMMITTED if usable else Ending.LOST
        return Ending.UNDONE

    def _leave_transaction(self) -> None:
        """Roll back, even if the code has changed Django's state of the connection."""
        connection = self._connection
        connections[self.alias] = connection
        connection.in_atomic_block = connection.needs_rollback = True
        connection.savepoint_ids[:], connection.atomic_blocks[:] = self._outer
        if self.ending is not Ending.UNDONE:
            # Nobody else may get the connection in this state.
            self.close()
        with suppress(Error):
            self._block.__exit__(None, None, None)
            if not (connection.in_atomic_block or connection.get_autocommit()):
                # If a site commits by hand, the block was only a savepoint.
                connection.rollback()

    # -- from other threads -------------------------------------------------------

    @property
    def may_hold_lock(self) -> bool:
        """Whether it may hold a lock; only SQLite shows that it has changed nothing."""
        if self._may_have_written or self._connection.vendor != "sqlite":
            return True
        before = self._changes
        return _driver_state(self._driver, "total_changes", before) != before

    def interrupt_statement(self) -> None:
        """End a running statement of SQLite; other databases' connections are cut."""
        if self._driver is not None and self._connection.vendor == "sqlite":
            # The connection may be closed at this moment.
            with suppress(Exception):
                self._driver.interrupt()

    def close(self) -> None:
        """Close its connection, in its own thread."""
        with suppress(Error):
            self._connection.close()


@contextmanager
def _deferred_mode(connection: Any) -> Iterator[None]:
    """Let a transaction of SQLite begin without the lock: reading needs none."""
    if connection.vendor != "sqlite":
        yield
        return
    mode = connection.transaction_mode
    connection.transaction_mode = "DEFERRED"
    try:
        yield
    finally:
        connection.transaction_mode = mode


def _execute_sql(connection: Any, sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def _driver_state(driver: Any, name: str, otherwise: int) -> int:
    """Return an attribute of SQLite's connection; `otherwise` for other databases."""
    try:
        return int(getattr(driver, name, otherwise))
    except Exception:  # The connection is closed.
        return 0


def _statement_text(sql: Any, driver: Any) -> str:
    if isinstance(sql, bytes):
        return sql.decode(errors="replace")
    # With psycopg, a statement may be composed of parts.
    return sql.as_string(driver) if hasattr(sql, "as_string") else str(sql)
