"""A PostgreSQL of the benchmark's own, which counts the statements that it runs.

`pg_stat_statements` is exact but must be loaded when PostgreSQL starts, which a
benchmark cannot ask of somebody's server; so it starts one, in a folder that is
deleted afterwards.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from benchmarks.processes import ServerFailedError, free_port

ROLE = "postgres"
_DATABASE = "measured"
_START_SECONDS = 30.0


class Cluster:
    """A running PostgreSQL with one database for the server under test."""

    def __init__(self, port: int) -> None:
        self._server = f"postgres://{ROLE}@127.0.0.1:{port}"

    @property
    def url(self) -> str:
        """The DATABASE_URL of the measured database."""
        return f"{self._server}/{_DATABASE}"

    def prepare(self) -> None:
        """Wait until it answers, then make the database and the counter."""
        with self._answering() as connection:
            connection.execute(f"CREATE DATABASE {_DATABASE}")
            connection.execute("CREATE EXTENSION pg_stat_statements")

    def connected(self) -> psycopg.Connection:
        """Return a connection to the measured database, in autocommit."""
        return psycopg.connect(self.url, autocommit=True)

    def statements(self, part: str = "") -> int:
        """Return how many statements the measured database has run so far.

        BEGIN and COMMIT count as well; with `part` only those that have this text.
        Asked through another database, so that the asking is not counted.
        """
        with self._connected() as connection:
            row = connection.execute(
                "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements"
                " JOIN pg_database ON pg_database.oid = dbid WHERE datname = %s"
                " AND strpos(query, %s) > 0",
                [_DATABASE, part],
            ).fetchone()
        return int(row[0]) if row else 0

    def _connected(self) -> psycopg.Connection:
        return psycopg.connect(f"{self._server}/postgres", autocommit=True)

    def _answering(self) -> psycopg.Connection:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            with suppress(psycopg.OperationalError):
                return self._connected()
            time.sleep(0.1)
        raise ServerFailedError("The benchmark's own PostgreSQL does not answer.")


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Run a fresh PostgreSQL until the block ends."""
    port, user = free_port(), unprivileged()
    with tempfile.TemporaryDirectory(prefix="benchmark-pg-") as folder:
        if user is not None:
            shutil.chown(folder, user)
        initialise(folder, user)
        child = subprocess.Popen(
            [program("postgres"), "-D", f"{folder}/data", *_settings(folder, port)],
            user=user,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            running = Cluster(port)
            running.prepare()
            yield running
        finally:
            # SIGINT is its fast stop: open connections are closed.
            child.send_signal(signal.SIGINT)
            child.wait(60)


def _settings(folder: str, port: int) -> list[str]:
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": folder,
        "shared_preload_libraries": "pg_stat_statements",
    }
    return [f"--{name}={value}" for name, value in settings.items()]


def initialise(folder: str, user: str | None) -> None:
    """Make an empty database cluster in `folder/data`."""
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


def unprivileged(*names: str) -> str | None:
    """Return whom to run a database as: it refuses to be root."""
    if os.geteuid() != 0:
        return None
    for name in (*(names or ("postgres",)), "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise ServerFailedError(
        "A database does not run as root, and nobody else is known."
    )
