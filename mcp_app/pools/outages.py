"""What a database says where it is away, or takes nothing for a while."""

from __future__ import annotations

from typing import Final

from django.db import InterfaceError, InternalError, OperationalError

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


def _said(error: BaseException) -> set[object]:
    """Return PostgreSQL's code, and MySQL's or SQLite's words, whichever there are."""
    words = {each for each in error.args[:1] if isinstance(each, str | int)}
    return {getattr(error.__cause__, "sqlstate", None), *words}
