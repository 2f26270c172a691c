"""Database servers of a test's own, which crash and come back.

Each keeps its data in a folder that is deleted at the end, and writes it as in
production: a commit is on the disk before it is answered.  A crash ends processes, and
not the machine.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import psycopg
import pytest

from benchmarks.processes import Process, ServerFailedError
from tests.drill.ports import HOST, free_port
from tests.drill.programs import Program

START_S: Final = 60.0
DATABASE: Final = "crashing"
ROLE: Final = "postgres"


class Owned(ABC):
    """A database server; `url` is the DATABASE_URL of the one database in it."""

    url: str

    def __init__(self, folder: str, user: str) -> None:
        self.port = free_port()
        self._folder = folder
        self._user = unprivileged(user)
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._program: Program | None = None

    @property
    @abstractmethod
    def command(self) -> Sequence[str]:
        """The server's command line."""

    @abstractmethod
    def asked(self, statement: str, *, database: str = DATABASE) -> list[Any]:
        """Return the rows of a statement; raise if the server does not answer."""

    @abstractmethod
    def crash(self, chance: Random) -> None:
        """End it at once, and lose what is in its memory."""

    def start(self) -> None:
        self._program = Program(
            self.command, user=self._user, cwd="/", env=_own_folder(self._folder)
        )
        self._program.wait_until(self._answers, START_S)

    @abstractmethod
    def _answers(self) -> bool:
        """Whether it serves statements."""

    def stop(self) -> None:
        if self._program is not None:
            # PostgreSQL's fast stop; MariaDB does not listen to it.
            self._program.process.send_signal(signal.SIGINT)
            self._program.stop()

    def ledger(self) -> Counter[str]:
        counted = "SELECT one.key, count(*) FROM drill_ledger one GROUP BY one.key"
        return Counter({key: int(count) for key, count in self.asked(counted)})


class Postgres(Owned):
    """A PostgreSQL, which loads the library `preload` at its start."""

    def __init__(self, folder: str, preload: str = "") -> None:
        try:
            program("postgres")
        except ServerFailedError as missing:
            pytest.skip(str(missing))
        super().__init__(folder, "postgres")
        initialise(folder, self._user)
        self._preload = preload
        self._server = f"postgres://{ROLE}@{HOST}:{self.port}"
        self.url = f"{self._server}/{DATABASE}"

    @property
    def command(self) -> Sequence[str]:
        settings = {
            "listen_addresses": HOST,
            "port": self.port,
            "unix_socket_directories": self._folder,
            "shared_preload_libraries": self._preload,
            "max_connections": "300",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [program("postgres"), "-D", f"{self._folder}/data", *options]

    def asked(self, statement: str, *, database: str = DATABASE) -> list[Any]:
        url = f"{self._server}/{database}"
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError):
            return bool(self.asked("SELECT 1", database="postgres"))
        return False

    def crash(self, chance: Random) -> None:
        """Ask for it by SIGQUIT, or kill every one of its processes."""
        assert self._program is not None
        process = self._program.process
        if chance.random() < 1 / 2:
            process.send_signal(signal.SIGQUIT)
        else:
            # So that it has no more children than are seen.
            process.send_signal(signal.SIGSTOP)
            for pid in reversed(Process(process.pid, self.port).tree()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._program.wait()


class MariaDB(Owned):
    def __init__(self, folder: str) -> None:
        super().__init__(folder, "mysql")
        subprocess.run(
            [*_found("mariadb-install-db"), *self._where(folder), "--skip-test-db"],
            user=self._user,
            cwd="/",
            env=_own_folder(folder),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        self.url = f"mysql://root@{HOST}:{self.port}/{DATABASE}"

    @staticmethod
    def _where(folder: str) -> Sequence[str]:
        # What the machine's own server is told is not for this one.
        return "--no-defaults", f"--datadir={folder}/data"

    @property
    def command(self) -> Sequence[str]:
        settings = {
            "bind-address": HOST,
            "port": self.port,
            "socket": f"{self._folder}/socket",
            "pid-file": f"{self._folder}/pid",
            "innodb-flush-log-at-trx-commit": 1,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        where = self._where(self._folder)
        return [*_found("mariadbd"), *where, *options, "--skip-grant-tables"]

    def asked(self, statement: str, *, database: str = DATABASE) -> list[Any]:
        driver: Any = pytest.importorskip("MySQLdb")
        connection = driver.connect(
            host=HOST, port=self.port, user="root", database=database, autocommit=True
        )
        with closing(connection), closing(connection.cursor()) as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def _answers(self) -> bool:
        driver: Any = pytest.importorskip("MySQLdb")
        with suppress(driver.OperationalError):
            return bool(self.asked("SELECT 1", database="mysql"))
        return False

    def crash(self, chance: Random) -> None:
        assert self._program is not None
        self._program.kill()


def _own_folder(folder: str) -> dict[str, str]:
    # Another user may not write where this process has its temporary files.
    return {**os.environ, "TMPDIR": folder}


def _found(name: str) -> Sequence[str]:
    # Debian keeps servers off the PATH of users.
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found is None:
        pytest.skip(f"{name} is missing: it comes with MariaDB.")
    return [found]


OWNED: Final[Mapping[str, Callable[[str], Owned]]] = {
    "postgresql": Postgres,
    "mysql": MariaDB,
}


@contextmanager
def owned(vendor: str) -> Iterator[Owned]:
    """Run a server until the block ends; `vendor` is a key of `OWNED`."""
    with tempfile.TemporaryDirectory(prefix="crashing-") as folder:
        server = OWNED[vendor](folder)
        try:
            server.start()
            system = {"postgresql": "postgres", "mysql": "mysql"}[vendor]
            charset = " CHARACTER SET utf8mb4" if vendor == "mysql" else ""
            server.asked(f"CREATE DATABASE {DATABASE}{charset}", database=system)
            yield server
        finally:
            server.stop()


def initialise(folder: str, user: str | None) -> None:
    command = [program("initdb"), "-D", f"{folder}/data", "-U", ROLE, "-A", "trust"]
    finished = subprocess.run(
        [*command, "--no-sync"],
        user=user,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise ServerFailedError(f"initdb failed: {finished.stderr}")


def program(name: str) -> str:
    """Find a server program, which Debian keeps off the PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(installed[-1]) if installed else None)
    if found is None:
        raise ServerFailedError(f"PostgreSQL's {name} program is missing.")
    return found


def unprivileged(user: str) -> str | None:
    """Return whom to run a database as: it refuses to be root."""
    if os.geteuid() != 0:
        return None
    for name in (user, "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise ServerFailedError("A database refuses to be root, and nobody else is known.")
