"""When the connections of the pools' threads are closed."""

from __future__ import annotations

import atexit
import os
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from inspect import unwrap
from traceback import walk_tb
from typing import Any, Final, NamedTuple, Self
from weakref import WeakSet

from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    InternalError,
    OperationalError,
    close_old_connections,
    connections,
)
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

LAST_CLOSE_S: Final = 1.0
"""Seconds that an ending process waits for the threads of closed pools."""

REFUSED_S: Final = 10.0
"""Seconds for which the health tells of a connection that could not be opened."""
_CONNECT: Final = unwrap(BaseDatabaseWrapper.connect).__code__
"""A traceback with a frame of this code is of a connection that was not opened."""

_refusals = deque[float](maxlen=1)
"""When a connection last could not be opened; empty once another was opened."""
_ending: WeakSet[threading.Thread] = WeakSet()
_thread = threading.local()


@receiver(connection_created, dispatch_uid="mcp_app.pools.connections")
def _mark_connected(**_: object) -> None:
    _thread.connected = True
    _refusals.clear()


class _WithoutOldConnections:
    """Do before and after a call what Django does around a request.

    A thread that never opened a connection has nothing to check, and most calls open
    none.  One object without state serves all calls: a generator costs more.
    """

    def __enter__(self, *_: object) -> None:
        if getattr(_thread, "connected", False):
            close_old_connections()

    __exit__ = __enter__


without_old_connections: Final = _WithoutOldConnections()


@contextmanager
def own_connections() -> Iterator[None]:
    """Replace this thread's connections by others that only calls use.

    So a call does not meet what a view or the site's middleware has left in theirs (a
    tenant, a setting of the database's session), and leaves nothing there itself.
    """
    outer_connections = _detach_connections()
    for each in getattr(_thread, "own", ()):
        connections[each.alias] = each
    try:
        yield
    finally:
        _thread.own = _detach_connections()
        for each in outer_connections:
            connections[each.alias] = each


def _detach_connections() -> Sequence[BaseDatabaseWrapper]:
    wrappers = connections.all(initialized_only=True)
    for wrapper in wrappers:
        del connections[wrapper.alias]
    return wrappers


def end_before_exit(threads: Iterable[threading.Thread | None]) -> None:
    """Let an ending process wait for these: closing SQLite in a daemon can crash it."""
    _ending.update(thread for thread in threads if thread is not None)


@atexit.register
def _wait_for_last_close() -> None:
    until = time.monotonic() + LAST_CLOSE_S
    for each in tuple(_ending):
        each.join(max(0.0, until - time.monotonic()))


# -- cutting ---------------------------------------------------------------------------
# Cuts the connections of a hanging thread from another thread.
#
# A running statement then fails as with any broken connection.

CANCEL_S: Final = 2.0
DROPPED: Final = struct.pack("ii", 1, 0)
"""C's `struct linger`: switched on, with 0 seconds for data that is not sent."""


class ConnectionKiller(NamedTuple):
    """The socket of a driver's connection: its descriptor, and its inode number."""

    wrapper: Any
    driver: Any
    descriptor: int
    file: int

    @classmethod
    def from_wrapper(cls, wrapper: Any) -> Self | None:
        """Return the killer of Django's connection; None if that has no socket."""
        with suppress(Exception):
            driver = wrapper.connection
            descriptor = driver.fileno()
            return cls(wrapper, driver, descriptor, os.fstat(descriptor).st_ino)
        return None

    def is_attached(self) -> bool:
        """Return whether its thread still has it; it may be back in Django's pool."""
        return self.wrapper.connection is self.driver

    def break_connection(self) -> None:
        if not self.is_attached():
            return
        with suppress(OSError):
            duplicate = os.dup(self.descriptor)
            # The socket may be closed at any moment, and its descriptor reused.
            if os.fstat(duplicate).st_ino != self.file:
                os.close(duplicate)
                return
            with socket.socket(fileno=duplicate) as line:
                if line.family in (socket.AF_INET, socket.AF_INET6):
                    # Unsent data must not arrive when the network is back.
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, DROPPED)
                line.shutdown(socket.SHUT_RDWR)


def waits_for_a_lock(wrappers: Sequence[Any]) -> bool:
    """Return whether a connection is to a SQLite file, which waits for locks alone."""
    return any(
        each.vendor == "sqlite" and each.connection is not None for each in wrappers
    )


def cut_connections(lines: Sequence[ConnectionKiller]) -> None:
    """Cut these connections; does not wait."""
    for line in lines:
        # Cancel first: otherwise a reachable server goes on, and keeps its locks.
        if not _hears_of_cancelling(line.driver) or not _start_thread(
            _cancel_and_shut, line
        ):
            line.break_connection()


def _start_thread(
    function: Callable[[ConnectionKiller], None], line: ConnectionKiller
) -> bool:
    thread = threading.Thread(
        target=function, args=(line,), name="mcp-cut", daemon=True
    )
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _hears_of_cancelling(driver: Any) -> bool:
    # Older psycopg cancels in a way that may hang, and then all threads hang.
    try:
        from psycopg import capabilities  # noqa: PLC0415 - a site may have no psycopg

        return hasattr(driver, "cancel_safe") and capabilities.has_cancel_safe()
    except (ImportError, AttributeError):
        return False


def _cancel_and_shut(line: ConnectionKiller) -> None:
    if line.is_attached():
        with suppress(Exception):
            line.driver.cancel_safe(timeout=CANCEL_S)
    # The connection may have returned to the pool, and belong to another thread.
    line.break_connection()


# -- outages ---------------------------------------------------------------------------
# How databases report that they are away, or refuse writes for a while.

TOGETHER: Final = 2
"""Work that fails this often while the database answers is tried part by part."""

CANNOT_WRITE: Final = frozenset(
    {
        # PostgreSQL: read only, as a standby is; disk full.
        "25006",
        "53100",
        # MySQL, MariaDB: disk full; --read-only, read-only transactions, InnoDB's own.
        1021,
        1041,
        1114,
        1290,
        1792,
        1836,
        # SQLite.
        "attempt to write a readonly database",
        "database or disk is full",
        "disk I/O error",
    }
)
"""The errors of a database that takes no writes at all."""

BUSY: Final = frozenset(
    {
        # PostgreSQL: out of resources; lock not available; statement cancelled.
        "53000",
        "53200",
        "53300",
        "53400",
        "55P03",
        "57014",
        # MySQL, MariaDB: lock timeout; interrupted; a table was altered; time limit.
        1205,
        1317,
        1412,
        1969,
        3024,
        # SQLite.
        "database is locked",
    }
)
"""The errors of a database that others keep busy: they pass by themselves."""

UNKNOWN: Final = frozenset({"42P01", "42703", 1054, 1146})
UNKNOWN_WORDS: Final = ("no such table", "no such column")
"""PostgreSQL's, MySQL's and SQLite's errors for tables and columns that are missing."""

ENDED: Final = frozenset({"25P03", "25P04"})
"""PostgreSQL has ended a connection whose transaction took too long."""


def is_outage(error: BaseException) -> bool:
    """Return whether the database cannot be reached, or cannot answer or write now.

    `error` is what Django raises. psycopg counts some outages among the internal
    errors, which otherwise are faults.
    """
    if isinstance(error, InternalError):
        return not (CANNOT_WRITE | ENDED).isdisjoint(_error_codes(error))
    # MariaDB reports this if a column cannot store some characters.
    unstorable = error.args[:1] == (1366,)
    return isinstance(error, OperationalError | InterfaceError) and not unstorable


def note_refusal(error: BaseException | None) -> bool:
    """Take note if no connection could be opened; return whether that was the error.

    Only connections to the default database count: the site looks after the others.
    """
    frames = () if error is None else walk_tb(error.__traceback__)
    refused = DEFAULT_DB_ALIAS in [
        frame.f_locals["self"].alias for frame, _ in frames if frame.f_code is _CONNECT
    ]
    if refused:
        _refusals.append(time.monotonic())
    return refused


def are_refused() -> bool:
    """Return whether connections cannot be opened, as above the limit of a role."""
    return any(time.monotonic() - refusal < REFUSED_S for refusal in _refusals)


def lacks_migration(error: BaseException) -> bool:
    """Return whether a table or a column is missing."""
    codes, words = _error_codes(error), str(error)
    return not UNKNOWN.isdisjoint(codes) or words.startswith(UNKNOWN_WORDS)


def cannot_write(error: BaseException) -> bool:
    return not CANNOT_WRITE.isdisjoint(_error_codes(error))


def may_be_refused(error: BaseException) -> bool:
    """Return whether the database may have refused the data itself.

    Even if Django reports an outage, it was the data if the error comes again while the
    database answers.  MariaDB reports an outage for a text that its character set
    cannot store, and cuts the connection if a message is too large.
    """
    return (CANNOT_WRITE | BUSY).isdisjoint(_error_codes(error))


def _error_codes(error: BaseException) -> set[object]:
    """Return PostgreSQL's code, or MySQL's number, or SQLite's words."""
    words = {arg for arg in error.args[:1] if isinstance(arg, str | int)}
    return {getattr(error.__cause__, "sqlstate", None), *words}
