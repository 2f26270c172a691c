from __future__ import annotations

import psycopg
import pytest

from benchmarks.postgres import cluster, program
from benchmarks.processes import ServerFailedError


def installed() -> bool:
    try:
        return bool(program("initdb") and program("postgres"))
    except ServerFailedError:
        return False


@pytest.mark.skipif(not installed(), reason="PostgreSQL's programs are not installed")
def test_each_statement_of_the_measured_database_is_counted() -> None:
    with cluster() as database:
        before = database.statements()
        with psycopg.connect(database.url, autocommit=True) as connection:
            for _ in range(7):
                connection.execute("SELECT 1")
        # Outside autocommit there are a BEGIN and a COMMIT around it.
        with psycopg.connect(database.url) as connection:
            connection.execute("SELECT 2")
        assert database.statements() - before == 10
        assert database.statements() - before == 10
        assert database.statements("SELECT") < database.statements()
        assert database.statements("a text that is in none") == 0
