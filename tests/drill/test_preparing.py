"""Processes that share a new database prepare it once, whoever comes first."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.drill.calling import Stateless
from tests.drill.databases import DATABASES
from tests.drill.running import DrillServer, started
from tests.marks import long_cases


@pytest.fixture
def pair(database_url: str) -> Iterator[list[DrillServer]]:
    """Two servers that were started at the same time on a new database."""
    env = {"DATABASE_URL": database_url}
    with ThreadPoolExecutor() as threads:
        starting = [threads.submit(started, "uvicorn", env) for _ in range(2)]
    servers = [each.result() for each in starting if not each.exception()]
    try:
        assert len(servers) == len(starting), [each.exception() for each in starting]
        yield servers
    finally:
        for server in servers:
            server.stop()


@pytest.mark.parametrize(
    "database_url", ["sqlite", *long_cases(*DATABASES)], indirect=True
)
def test_both_serve_the_same(pair: list[DrillServer]) -> None:
    counts = [
        Stateless(server.url).call("drill_ledger", key="both", seconds=0)
        for server in pair
    ]
    assert [each["structuredContent"]["result"] for each in counts] == [1, 2]
