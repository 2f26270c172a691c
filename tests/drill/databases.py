"""A pytest plugin: databases of a test's own, on the servers that can be reached.

POSTGRES_TEST_URL and MYSQL_TEST_URL name servers elsewhere, with a user who may
create databases.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

POSTGRES: Final = os.environ.get("POSTGRES_TEST_URL", "postgres://postgres@127.0.0.1")
MYSQL: Final = os.environ.get("MYSQL_TEST_URL", "mysql://root@127.0.0.1")
PATIENCE_S: Final = 3


def _name() -> str:
    return f"drill_{uuid4().hex[:12]}"


@contextmanager
def postgresql_database() -> Iterator[str]:
    """Give the URL of a new database; skip the test where there is no server."""
    name = _name()
    _on_postgresql(f"CREATE DATABASE {name}")
    try:
        yield f"{POSTGRES}/{name}"
    finally:
        _on_postgresql(f"DROP DATABASE {name} WITH (FORCE)")


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
    _on_mysql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    try:
        yield f"{MYSQL}/{name}"
    finally:
        _on_mysql(f"DROP DATABASE {name}")


def _on_mysql(statement: str) -> None:
    driver: Any = pytest.importorskip("MySQLdb")
    server = urlsplit(MYSQL)
    try:
        connection = driver.connect(
            host=server.hostname or "127.0.0.1",
            port=server.port or 3306,
            user=server.username or "root",
            password=server.password or "",
            connect_timeout=PATIENCE_S,
        )
    except driver.OperationalError as error:
        pytest.skip(f"MariaDB cannot be reached at {server.hostname}: {error}")
    with closing(connection), closing(connection.cursor()) as cursor:
        cursor.execute(statement)


DATABASES: Final[Mapping[str, Callable[[], AbstractContextManager[str]]]] = {
    "postgresql": postgresql_database,
    "mysql": mysql_database,
}


@pytest.fixture(params=["sqlite", *DATABASES])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A new database that several processes may use: a file, or on each server."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/new.sqlite3"
        return
    with DATABASES[request.param]() as url:
        yield url
