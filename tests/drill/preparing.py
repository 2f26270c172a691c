"""Prepares the database of the fixture server: tables, then rows.

Several processes that share a database may do it at the same time.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from django.core.management import call_command
from django.db import connection

from tests.drill.fixtures import write_fixtures

LOCK: Final = "drill"
PATIENCE_S: Final = 120


def prepare(plain_tools: int = 0) -> None:
    """Migrate the database and write the fixture rows, one process at a time."""
    with LOCKS[connection.vendor]():
        call_command("migrate", verbosity=0, interactive=False)
        write_fixtures(plain_tools)
    connection.close()


@contextmanager
def _file_lock() -> Iterator[None]:
    with open(f"{connection.settings_dict['NAME']}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _postgresql_lock() -> Iterator[None]:
    _asked("SELECT pg_advisory_lock(hashtext(%s))", LOCK)
    try:
        yield
    finally:
        _asked("SELECT pg_advisory_unlock(hashtext(%s))", LOCK)


@contextmanager
def _mysql_lock() -> Iterator[None]:
    # Names of locks are the server's, not the database's.
    name = f"{LOCK}.{connection.settings_dict['NAME']}"
    if _asked("SELECT GET_LOCK(%s, %s)", name, PATIENCE_S) != 1:
        raise TimeoutError(f"The lock {name!r} was not free for {PATIENCE_S} s.")
    try:
        yield
    finally:
        _asked("SELECT RELEASE_LOCK(%s)", name)


def _asked(statement: str, *parameters: str | int) -> object:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchone()[0]


LOCKS: Final[Mapping[str, Callable[[], AbstractContextManager[None]]]] = {
    "sqlite": _file_lock,
    "postgresql": _postgresql_lock,
    "mysql": _mysql_lock,
}
