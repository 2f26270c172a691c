"""Where tests make databases: on PostgreSQL, on MariaDB, or as files of SQLite."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import psycopg

from tests.suite.owners import shared_folder

POSTGRES: Final = os.environ.get("POSTGRES_TEST_URL", "postgres://postgres@127.0.0.1")
MYSQL: Final = os.environ.get("MYSQL_TEST_URL", "mysql://root@127.0.0.1")
FILES: Final = shared_folder() / f"mcp-databases-{os.getuid()}"
PATIENCE_S: Final = 30
MAKING_S: Final = 300
"""How long another process may take to make a template."""

Execute: TypeAlias = "Callable[..., list[Any]]"
"""Executes a statement with its parameters, and returns the rows."""
Rows: TypeAlias = "Iterator[tuple[str, Iterable[tuple[Any, ...]]]]"
"""The tables, and the rows of each."""


class Unreachable(Exception):
    """There is no such server here, or no driver for it."""


class Refused(Exception):
    """A server did not do what a statement says."""


class Store(ABC):
    """Databases by their names; methods raise `Unreachable` and `Refused`."""

    @abstractmethod
    def url(self, name: str) -> str:
        """Return the DATABASE_URL of a database."""

    def setting(self, name: str) -> str | Path:
        """Return what `DATABASES` calls it."""
        return name

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all databases."""

    @abstractmethod
    def create(self, name: str) -> None:
        """Make an empty database."""

    @abstractmethod
    def copy(self, original: str, name: str) -> None:
        """Make a database of what another one has, to which nobody is connected."""

    @abstractmethod
    def rename(self, name: str, template: str) -> None:
        """Let a database have another name, all of it at once."""

    @abstractmethod
    def holds(self, template: str) -> bool:
        """Whether a database was given this name."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove a database, if it is there, whoever is connected."""

    @abstractmethod
    def alone(self, lock: str) -> AbstractContextManager[None]:
        """Give a context of which there is one at a time, whatever process has it."""

    @abstractmethod
    def rows(self, name: str) -> Rows:
        """Yield each table with its rows."""


class Server(Store):
    """Databases of a server; `base` is their URL without the last name."""

    def __init__(self, base: str) -> None:
        self._base = base

    def url(self, name: str) -> str:
        return f"{self._base}/{name}"


class PostgreSQL(Server):
    """Databases of a PostgreSQL server."""

    def names(self) -> list[str]:
        with self._connected() as execute:
            return [name for (name,) in execute("SELECT datname FROM pg_database")]

    def create(self, name: str) -> None:
        with self._connected() as execute:
            execute(f"CREATE DATABASE {name}")

    def copy(self, original: str, name: str) -> None:
        with self._connected() as execute:
            execute(f"CREATE DATABASE {name} TEMPLATE {original}")

    def rename(self, name: str, template: str) -> None:
        with self._connected() as execute:
            execute(f"ALTER DATABASE {name} RENAME TO {template}")

    def holds(self, template: str) -> bool:
        return template in self.names()

    def drop(self, name: str) -> None:
        with self._connected() as execute:
            execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    @contextmanager
    def alone(self, lock: str) -> Iterator[None]:
        with self._connected() as execute:
            execute("SELECT pg_advisory_lock(hashtext(%s))", lock)
            yield

    def rows(self, name: str) -> Rows:
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        with self._connected(name) as execute:
            for (table,) in execute(tables):
                yield table, execute(f'SELECT * FROM "{table}"')  # noqa: S608 - our own names

    @contextmanager
    def _connected(self, name: str = "postgres") -> Iterator[Execute]:
        try:
            connection = psycopg.connect(
                self.url(name), autocommit=True, connect_timeout=PATIENCE_S
            )
        except psycopg.OperationalError as error:
            raise Unreachable(
                f"PostgreSQL cannot be reached at {self._base}: {error}"
            ) from None

        def execute(statement: str, *values: str) -> list[Any]:
            try:
                cursor = connection.execute(statement.encode(), values or None)
            except psycopg.Error as error:
                raise Refused(f"{statement}: {error}") from error
            return cursor.fetchall() if cursor.description else []

        with closing(connection):
            yield execute


class MariaDB(Server):
    """Databases of a MariaDB or MySQL server."""

    def names(self) -> list[str]:
        with self._connected() as execute:
            return [name for (name,) in execute("SHOW DATABASES")]

    def create(self, name: str) -> None:
        with self._connected() as execute:
            execute(f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4")

    def copy(self, original: str, name: str) -> None:
        self.create(name)
        with self._connected(name) as execute:
            for table in self._tables(execute, original):
                ((_, made),) = execute(f"SHOW CREATE TABLE {original}.{table}")
                execute(made)
                execute(f"INSERT INTO {table} SELECT * FROM {original}.{table}")  # noqa: S608 - our own names

    def rename(self, name: str, template: str) -> None:
        self.create(template)
        with self._connected() as execute:
            moves = (
                f"{name}.{table} TO {template}.{table}"
                for table in self._tables(execute, name)
            )
            # One statement: whoever looks sees all tables, or none.
            execute(f"RENAME TABLE {', '.join(moves)}")
        self.drop(name)

    def holds(self, template: str) -> bool:
        with self._connected() as execute:
            return bool(self._tables(execute, template))

    def drop(self, name: str) -> None:
        with self._connected() as execute:
            execute(f"DROP DATABASE IF EXISTS {name}")

    @contextmanager
    def alone(self, lock: str) -> Iterator[None]:
        with self._connected() as execute:
            if execute("SELECT GET_LOCK(%s, %s)", lock, MAKING_S) != [(1,)]:
                raise TimeoutError(f"{lock!r} was not free for {MAKING_S} s.")
            yield

    def rows(self, name: str) -> Rows:
        with self._connected(name) as execute:
            for table in self._tables(execute, name):
                yield table, execute(f"SELECT * FROM `{table}`")  # noqa: S608 - our own names

    @staticmethod
    def _tables(execute: Execute, name: str) -> list[str]:
        tables = "SELECT table_name FROM information_schema.tables"
        rows = execute(f"{tables} WHERE table_schema = %s", name)
        return [table for (table,) in rows]

    @contextmanager
    def _connected(self, name: str = "") -> Iterator[Execute]:
        try:
            import MySQLdb as driver  # noqa: N813, PLC0415 - not everybody can build it
        except ImportError as error:
            raise Unreachable(f"mysqlclient is not installed: {error}") from None
        server = urlsplit(self._base)
        try:
            connection = driver.connect(
                host=server.hostname or "127.0.0.1",
                port=server.port or 3306,
                user=server.username or "root",
                password=server.password or "",
                database=name,
                connect_timeout=PATIENCE_S,
                autocommit=True,
            )
        except driver.OperationalError as error:
            raise Unreachable(
                f"MariaDB cannot be reached at {server.hostname}: {error}"
            ) from None
        with closing(connection), closing(connection.cursor()) as cursor:
            # Tables and rows refer to others that come later.
            cursor.execute("SET foreign_key_checks = 0")
            # By default it waits a day for whoever has a table locked.
            cursor.execute(f"SET lock_wait_timeout = {PATIENCE_S}")

            def execute(statement: str, *values: str | int) -> list[Any]:
                try:
                    cursor.execute(statement, values or None)
                except driver.Error as error:
                    raise Refused(f"{statement}: {error}") from error
                return list(cursor.fetchall())

            yield execute


class Files(Store):
    """Files of SQLite, in a folder of this user's."""

    def __init__(self, folder: Path = FILES) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)

    def url(self, name: str) -> str:
        return f"sqlite:///{self.setting(name)}"

    def setting(self, name: str) -> Path:
        return self._folder / f"{name}.sqlite3"

    def names(self) -> list[str]:
        return sorted({path.name.partition(".")[0] for path in self._folder.iterdir()})

    def create(self, name: str) -> None:
        """Do nothing: who first connects makes the file."""

    def copy(self, original: str, name: str) -> None:
        shutil.copyfile(self.setting(original), self.setting(name))

    def rename(self, name: str, template: str) -> None:
        self.setting(name).rename(self.setting(template))

    def holds(self, template: str) -> bool:
        return self.setting(template).exists()

    def drop(self, name: str) -> None:
        # It has a log and a lock beside it.
        for path in self._folder.glob(f"{name}.*"):
            path.unlink(missing_ok=True)

    @contextmanager
    def alone(self, lock: str) -> Iterator[None]:
        with open(self._folder / f"{lock}.lock", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def rows(self, name: str) -> Rows:
        tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
        with closing(sqlite3.connect(self.setting(name))) as connection:
            for (table,) in connection.execute(tables).fetchall():
                yield table, connection.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - our own names


STORES: Final[dict[str, Callable[[], Store]]] = {
    "sqlite": Files,
    "postgresql": lambda: PostgreSQL(POSTGRES),
    "mysql": lambda: MariaDB(MYSQL),
}
"""By the names that Django has for them."""


def store_of(vendor: str, url: str) -> Store:
    """Return the store where a DATABASE_URL is."""
    if vendor == "sqlite":
        return Files()
    base = url.partition("?")[0].rpartition("/")[0]
    return PostgreSQL(base) if vendor == "postgresql" else MariaDB(base)
