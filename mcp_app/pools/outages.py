"""How databases report that they are away, or refuse writes for a while."""

from __future__ import annotations

from typing import Final

from django.db import InterfaceError, InternalError, OperationalError

TOGETHER: Final = 2
"""What fails this often while the database answers is tried part by part."""

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
"""The errors of a database that takes no writes, whatever they are."""

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

ENDED: Final = frozenset({"25P03", "25P04"})
"""PostgreSQL has ended a connection whose transaction took too long."""


def is_outage(error: BaseException) -> bool:
    """Return whether the database cannot be reached, or cannot answer or write now.

    `error` is what Django raises. psycopg counts some outages among the internal
    errors, which otherwise are faults.
    """
    if isinstance(error, InternalError):
        return not (CANNOT_WRITE | ENDED).isdisjoint(_said(error))
    return isinstance(error, OperationalError | InterfaceError)


def cannot_write(error: BaseException) -> bool:
    """Return whether the database takes no writes now, whatever they are."""
    return not CANNOT_WRITE.isdisjoint(_said(error))


def may_be_refused(error: BaseException) -> bool:
    """Return whether the database may have refused the data itself.

    Even if Django reports an outage, it was the data if the error comes again while the
    database answers.  MariaDB reports one for a text that its character set cannot
    store, and cuts the connection if a message is too large.
    """
    return (CANNOT_WRITE | BUSY).isdisjoint(_said(error))


def _said(error: BaseException) -> set[object]:
    """Return PostgreSQL's code, or MySQL's number, or SQLite's words."""
    words = {each for each in error.args[:1] if isinstance(each, str | int)}
    return {getattr(error.__cause__, "sqlstate", None), *words}
