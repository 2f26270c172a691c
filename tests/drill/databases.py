"""A pytest plugin: databases of a test's own, on the servers that can be reached.

Those of `PREPARED` have the tables and the fixture rows from the start, and the test
database of the process has the tables: they are copies of templates
(`tests.suite.template_databases`). To migrate a new one takes seconds.

POSTGRES_TEST_URL and MYSQL_TEST_URL name servers elsewhere, with a user who may
create databases.
"""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from django.db import connection

from tests.suite.stores import MYSQL, POSTGRES, STORES, Files, Unreachable, store_of
from tests.suite.template_databases import (
    PREPARE,
    ROWS,
    TABLES,
    run,
    template,
    temporary,
)

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

__all__ = [
    "DATABASES",
    "MYSQL",
    "POSTGRES",
    "PREPARE",
    "PREPARED",
    "postgresql_database",
    "prepare_database",
    "prepared_file",
]


@contextmanager
def _database(vendor: str, kind: str = "") -> Iterator[str]:
    """Give the URL of a new database; skip the test where there is no server."""
    store = STORES[vendor]()
    with ExitStack() as stack:
        try:
            name = stack.enter_context(temporary(store, kind))
        except Unreachable as error:
            pytest.skip(str(error))
        yield store.url(name)


def postgresql_database() -> AbstractContextManager[str]:
    """Give the URL of a new database; skip the test where there is no server."""
    return _database("postgresql")


DATABASES: Final[Mapping[str, Callable[[], AbstractContextManager[str]]]] = {
    vendor: partial(_database, vendor) for vendor in ("postgresql", "mysql")
}
PREPARED: Final[Mapping[str, Callable[[], AbstractContextManager[str]]]] = {
    vendor: partial(_database, vendor, ROWS) for vendor in DATABASES
}
"""As `DATABASES`, with the tables and the fixture rows."""

NEEDED: Final[Mapping[str, Collection[str]]] = {
    "on_servers.py": [*DATABASES],
    "on_postgresql.py": ["postgresql"],
    "on_mysql.py": ["mysql"],
}
"""Modules for some databases only; `tests.test_databases` names them."""


until_the_end: Final = ExitStack()
"""What a process of the tests keeps for all of them."""
# For programs that are no tests.
atexit.register(until_the_end.close)


def pytest_unconfigure() -> None:
    """End what all tests share."""
    until_the_end.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs another database, where somebody names such a module."""
    for item in items:
        needed = NEEDED.get(item.path.name)
        if needed is not None and connection.vendor not in needed:
            vendors = " or ".join(needed)
            reason = f"It needs a DATABASE_URL of {vendors}, not {connection.vendor}."
            item.add_marker(pytest.mark.skip(reason))


def prepared_file() -> Path:
    """Return a database file of SQLite with the fixture rows, to be copied."""
    files = Files()
    return files.setting(template(files, ROWS))


def prepare_database(url: str) -> None:
    """Give an empty database the tables and the fixture rows."""
    run(PREPARE, url)


@pytest.fixture(params=["sqlite", *DATABASES])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A new database that several processes may use: a file, or on each server."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/new.sqlite3"
        return
    with DATABASES[request.param]() as url:
        yield url


@pytest.fixture(params=["sqlite", *PREPARED])
def prepared_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The same, with the tables and the fixture rows."""
    if request.param == "sqlite":
        path = shutil.copy(prepared_file(), tmp_path / "new.sqlite3")
        yield f"sqlite:///{path}"
        return
    with PREPARED[request.param]() as url:
        yield url


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """The test database of this process, in the place of pytest-django's."""
    store = store_of(connection.vendor, os.environ.get("DATABASE_URL", ""))
    before = connection.settings_dict["NAME"]
    with django_db_blocker.unblock(), temporary(store, TABLES) as name:
        _connect(store.setting(name))
        yield
        _connect(before)


def _connect(name: str | Path) -> None:
    """Let the connections of this process go to another database from now on."""
    from django.conf import settings  # noqa: PLC0415

    connection.close()
    settings.DATABASES[connection.alias]["NAME"] = name
    connection.settings_dict["NAME"] = name
