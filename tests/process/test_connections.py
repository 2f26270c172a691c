"""How many connections a server process has, counted by the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import psycopg
import pytest

from mcp_app.conf import McpSettings
from mcp_app.pools.database import connections_of_process
from tests.drill.databases import MYSQL, POSTGRES, PREPARED
from tests.drill.running import THERE
from tests.marks import long_cases
from tests.process.programs import serving
from tests.process.streaming import PATIENCE_S, Session, listening, stateless

pytestmark = pytest.mark.programs

STREAMS: Final = 50
CALLS: Final = 50
KEPT: Final = 4
"""The reader's and the log's, that of async user code, and now and then a writer's."""
URI: Final = "test://static-text"


Count: TypeAlias = Callable[[], int]


@contextmanager
def on_postgresql(name: str) -> Iterator[Count]:
    with psycopg.connect(f"{POSTGRES}/postgres", autocommit=True) as connection:

        def count() -> int:
            found = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [name]
            ).fetchone()
            return int(found[0]) if found else 0

        yield count


@contextmanager
def on_mysql(name: str) -> Iterator[Count]:
    driver: Any = pytest.importorskip("MySQLdb")
    server = urlsplit(MYSQL)
    where = {"host": server.hostname or "127.0.0.1", "port": server.port or 3306}
    who = {"user": server.username or "root", "password": server.password or ""}
    with (
        closing(driver.connect(**where, **who)) as connection,
        closing(connection.cursor()) as cursor,
    ):

        def count() -> int:
            cursor.execute(
                "SELECT COUNT(*) FROM information_schema.processlist WHERE db = %s",
                [name],
            )
            return int(cursor.fetchone()[0])

        yield count


COUNTS: Final = {"postgresql": on_postgresql, "mysql": on_mysql}


@pytest.fixture(params=["postgresql", *long_cases("mysql")])
def counted(request: pytest.FixtureRequest) -> Iterator[tuple[str, Count]]:
    with (
        PREPARED[request.param]() as url,
        COUNTS[request.param](url.rpartition("/")[2]) as count,
        serving("uvicorn", {"DATABASE_URL": url, **THERE}) as drill,
    ):
        yield drill.url, count


def test_no_more_than_the_formula_says(counted: tuple[str, Count]) -> None:
    url, count = counted
    usual = connections_of_process(McpSettings().threads).usual
    sessions = [Session(url) for _ in range(5)]
    streams = [
        *(listening(url, resourceSubscriptions=[URI]) for _ in range(STREAMS // 2)),
        *(sessions[number % 5].standing() for number in range(STREAMS // 2)),
    ]
    calls = [
        *(
            stateless(url, "tools/call", name="drill_ledger", arguments=arguments)
            for arguments in [{"key": "many", "seconds": 0.3}] * CALLS
        ),
        *(
            sessions[number % 5].called("drill_ledger", key="many", seconds=0.3)
            for number in range(CALLS)
        ),
        *(
            stateless(url, "tools/call", name="drill_touch", arguments={"uri": URI})
            for _ in range(CALLS)
        ),
    ]
    most = 0
    while not all(each.ended for each in calls):
        most = max(most, count())
        time.sleep(0.01)
    assert {each.whole().status for each in calls} == {200}
    # All threads of user code were at work.
    assert McpSettings().threads < most <= usual
    # None stays for a call, a thread or a stream.
    end = time.monotonic() + PATIENCE_S
    while count() > KEPT:
        assert time.monotonic() < end, count()
        time.sleep(0.1)
    for each in streams:
        assert not each.ended
        each.leave()
