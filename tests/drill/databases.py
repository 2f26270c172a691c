"""A pytest plugin: databases of a test's own, on the servers that can be reached.

Those of `PREPARED` have the tables and the fixture rows from the start: they are copies
of one, which each process makes once. To migrate a new one takes seconds.

POSTGRES_TEST_URL and MYSQL_TEST_URL name servers elsewhere, with a user who may
create databases.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from tests.secrecy import is_watching, look_at_rows

POSTGRES: Final = os.environ.get("POSTGRES_TEST_URL", "postgres://postgres@127.0.0.1")
MYSQL: Final = os.environ.get("MYSQL_TEST_URL", "mysql://root@127.0.0.1")
PATIENCE_S: Final = 30
ROOT: Final = Path(__file__).resolve().parents[2]
TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
PREPARE: Final = """
import django
django.setup()
from tests.drill.preparing import prepare
prepare()
"""


def _name() -> str:
    return f"drill_{uuid4().hex[:12]}"


def postgresql_database() -> AbstractContextManager[str]:
    """Give the URL of a new database; skip the test where there is no server."""
    return _on_postgresql_server("")


@contextmanager
def _on_postgresql_server(template: str) -> Iterator[str]:
    name = _name()
    _on_postgresql(f"CREATE DATABASE {name} {template}")
    try:
        yield f"{POSTGRES}/{name}"
        _look_at_postgresql(name)
    finally:
        _on_postgresql(f"DROP DATABASE {name} WITH (FORCE)")


def _look_at_postgresql(name: str) -> None:
    if not is_watching():
        return
    with psycopg.connect(f"{POSTGRES}/{name}", autocommit=True) as connection:
        for (table,) in connection.execute(TABLES).fetchall():
            every = SQL("SELECT * FROM {}").format(Identifier(table))
            look_at_rows(table, connection.execute(every).fetchall())


def _on_postgresql(statement: str) -> None:
    try:
        connection = psycopg.connect(
            f"{POSTGRES}/postgres", autocommit=True, connect_timeout=PATIENCE_S
        )
    except psycopg.OperationalError as error:
        pytest.skip(f"PostgreSQL cannot be reached at {POSTGRES}: {error}")
    with closing(connection):
        connection.execute(statement.encode())


@contextmanager
def mysql_database() -> Iterator[str]:
    """Give the URL of a new database; skip the test where there is no server."""
    name = _name()
    with _mysql() as execute:
        execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    try:
        yield f"{MYSQL}/{name}"
        _look_at_mysql(name)
    finally:
        with _mysql() as execute:
            execute(f"DROP DATABASE {name}")


def _look_at_mysql(name: str) -> None:
    if not is_watching():
        return
    with _mysql() as execute:
        for (table,) in execute(f"SHOW TABLES FROM {name}"):
            rows = execute(f"SELECT * FROM {name}.`{table}`")  # noqa: S608 - our own
            look_at_rows(table, rows)


@contextmanager
def _mysql() -> Iterator[Callable[[str], list[Any]]]:
    """Give a function that executes a statement, and returns its rows."""
    driver: Any = pytest.importorskip("MySQLdb")
    server = urlsplit(MYSQL)
    try:
        connection = driver.connect(
            host=server.hostname or "127.0.0.1",
            port=server.port or 3306,
            user=server.username or "root",
            password=server.password or "",
            connect_timeout=PATIENCE_S,
            autocommit=True,
        )
    except driver.OperationalError as error:
        pytest.skip(f"MariaDB cannot be reached at {server.hostname}: {error}")
    with closing(connection), closing(connection.cursor()) as cursor:

        def execute(statement: str) -> list[Any]:
            cursor.execute(statement)
            return list(cursor.fetchall())

        yield execute


DATABASES: Final[Mapping[str, Callable[[], AbstractContextManager[str]]]] = {
    "postgresql": postgresql_database,
    "mysql": mysql_database,
}


# -- with rows -----------------------------------------------------------------------

_originals = ExitStack()
# For programs that are no tests.
atexit.register(_originals.close)


def pytest_unconfigure() -> None:
    """Remove what copies were made of."""
    _originals.close()
    for each in (_original, prepared_file):
        each.cache_clear()


@cache
def _original(vendor: str) -> str:
    """Return the URL of the database that is copied."""
    url = _originals.enter_context(DATABASES[vendor]())
    prepare_database(url)
    return url


@cache
def prepared_file() -> Path:
    """Return a database file of SQLite with the fixture rows, to be copied."""
    directory = _originals.enter_context(tempfile.TemporaryDirectory())
    path = Path(directory) / "db.sqlite3"
    prepare_database(f"sqlite:///{path}")
    return path


def prepare_database(url: str) -> None:
    """Give an empty database the tables and the fixture rows."""
    settings = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.drill.settings"}
    subprocess.run(
        [sys.executable, "-c", PREPARE],
        cwd=ROOT,
        env={**os.environ, **settings},
        check=True,
    )


def _prepared_on_postgresql() -> AbstractContextManager[str]:
    name = _original("postgresql").rpartition("/")[2]
    return _on_postgresql_server(f"TEMPLATE {name}")


@contextmanager
def _prepared_on_mysql() -> Iterator[str]:
    original = _original("mysql").rpartition("/")[2]
    with mysql_database() as url:
        _copy_on_mysql(original, url.rpartition("/")[2])
        yield url


def _copy_on_mysql(original: str, name: str) -> None:
    with _mysql() as execute:
        # Tables and rows refer to others that come later.
        execute("SET foreign_key_checks = 0")
        execute(f"USE {name}")
        for (table,) in execute(f"SHOW TABLES FROM {original}"):
            ((_, made),) = execute(f"SHOW CREATE TABLE {original}.{table}")
            execute(made)
            execute(f"INSERT INTO {table} SELECT * FROM {original}.{table}")  # noqa: S608 - our own names


PREPARED: Final[Mapping[str, Callable[[], AbstractContextManager[str]]]] = {
    "postgresql": _prepared_on_postgresql,
    "mysql": _prepared_on_mysql,
}
"""As `DATABASES`, with the tables and the fixture rows."""


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
