"""A PostgreSQL of the benchmark's own, which counts the statements that it runs.

`pg_stat_statements` is exact but must be loaded when PostgreSQL starts, which a
benchmark cannot ask of somebody's server; so it starts one, in a folder that is
deleted afterwards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tests.reliability.databases import DATABASE, Postgres, program


class Cluster:
    """A running PostgreSQL; `url` is the DATABASE_URL of the measured database."""

    def __init__(self, server: Postgres) -> None:
        self.url = server.url
        self._beside = f"{server.url.removesuffix(DATABASE)}postgres"

    def connected(self) -> psycopg.Connection:
        """Return a connection to the measured database, in autocommit."""
        return psycopg.connect(self.url, autocommit=True)

    def statements(self, part: str = "") -> int:
        """Return how many statements the measured database has run so far.

        BEGIN and COMMIT count as well; with `part` only those that have this text.
        Asked through another database, so that the asking is not counted.
        """
        with psycopg.connect(self._beside, autocommit=True) as connection:
            row = connection.execute(
                "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements"
                " JOIN pg_database ON pg_database.oid = dbid WHERE datname = %s"
                " AND strpos(query, %s) > 0",
                [DATABASE, part],
            ).fetchone()
        return int(row[0]) if row else 0


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Run a fresh PostgreSQL until the block ends."""
    program("postgres")
    with tempfile.TemporaryDirectory(prefix="benchmark-pg-") as folder:
        server = Postgres(folder, preload="pg_stat_statements")
        try:
            server.start()
            server.asked(f"CREATE DATABASE {DATABASE}", database="postgres")
            server.asked("CREATE EXTENSION pg_stat_statements", database="postgres")
            yield Cluster(server)
        finally:
            server.stop()
