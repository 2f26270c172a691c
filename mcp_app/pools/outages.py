"""What a database says where it is away, or takes nothing for a while."""

from __future__ import annotations

from typing import Final

from django.db import InterfaceError, InternalError, OperationalError

TOGETHER: Final = 2
"""What breaks so often, although the database answers, is tried part by part."""

CANNOT_WRITE: Final = frozenset(
    {
        # PostgreSQL: read only, as a standby is; no room.
        "25006",
        "53100",
        # MySQL, MariaDB: no room; --read-only, read-only transactions, InnoDB's own.
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
"""How databases say that they take nothing, whatever it is."""

BUSY: Final = frozenset(
    {
        # PostgreSQL: too little of what it needs; waited too long; cut short.
        "53000",
        "53200",
        "53300",
        "53400",
        "55P03",
        "57014",
        # MySQL, MariaDB: waited for a lock; cut short; a table was altered; took long.
        1205,
        1317,
        1412,
        1969,
        3024,
        # SQLite.
        "database is locked",
    }
)
"""How databases say that others hold them up: it passes by itself."""

ENDED: Final = frozenset({"25P03", "25P04"})
"""PostgreSQL has ended a connection whose transaction took too long."""


def is_outage(error: BaseException) -> bool:
    """Whether the database cannot be reached, or cannot answer or write for now.

    `error` is what Django raises.  psycopg counts some of it among the internal errors,
    which else are faults.
    """
    if isinstance(error, InternalError):
        return not (CANNOT_WRITE | ENDED).isdisjoint(_said(error))
    return isinstance(error, OperationalError | InterfaceError)


def cannot_write(error: BaseException) -> bool:
    """Whether the database takes nothing for now, whatever it is given."""
    return not CANNOT_WRITE.isdisjoint(_said(error))


def may_be_refused(error: BaseException) -> bool:
    """Whether it may be because of what it was given that a database did not take it.

    Where Django speaks of an outage all the same, that is known when it comes again
    although the database answers: a text that its characters cannot say is one to
    MariaDB, and at a message that is too large it cuts the connection.
    """
    return (CANNOT_WRITE | BUSY).isdisjoint(_said(error))


def _said(error: BaseException) -> set[object]:
    """Return PostgreSQL's code, and MySQL's or SQLite's words, whichever there are."""
    words = {each for each in error.args[:1] if isinstance(each, str | int)}
    return {getattr(error.__cause__, "sqlstate", None), *words}
