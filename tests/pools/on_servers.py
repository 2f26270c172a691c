"""Threads whose statements hang, on databases that are servers.

Run by `tests/test_databases.py`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Final

import pytest
from django.db import OperationalError, connection

from mcp_app.models import Worker
from mcp_app.pools.database import DatabaseThreads, writer
from mcp_app.protocol.errors import Unavailable

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]

PATIENCE_S: Final = 20
LONG_S: Final = 600
SLEEP: Final = {"postgresql": "SELECT pg_sleep(%s)", "mysql": "SELECT SLEEP(%s)"}
SLEEPING: Final = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
    " AND wait_event = 'PgSleep'",
    "mysql": "SELECT count(*) FROM information_schema.processlist WHERE id = %s"
    " AND info LIKE 'SELECT SLEEP%%'",
}
RUNNING: Final = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
    " AND state = 'active'",
    "mysql": "SELECT 0 * %s",
}
ID: Final = {
    "postgresql": "SELECT pg_backend_pid()",
    "mysql": "SELECT CONNECTION_ID()",
}


def asked(statements: dict[str, str], *values: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statements[connection.vendor], values)
        found: int = cursor.fetchone()[0]
        return found


class Hangs:
    """Asks something that is not answered, and then writes."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.thread: threading.Thread | None = None
        self.number = 0
        self.errors: list[Exception] = []

    def __call__(self) -> None:
        self.thread = threading.current_thread()
        self.number = asked(ID)
        self.began.set()
        try:
            asked(SLEEP, LONG_S)
        except OperationalError as error:
            self.errors.append(error)
            connection.close()
        self.write()

    def write(self) -> None:
        try:
            Worker.objects.create(pk="late", pid=1, started_ms=1, seen_ms=1)
        except OperationalError as error:
            self.errors.append(error)
            raise


@pytest.fixture(params=[False, True])
def threads(request: pytest.FixtureRequest) -> Iterator[DatabaseThreads]:
    made = DatabaseThreads("test-database", repeatable=request.param)
    yield made
    made.close()


async def test_a_statement_that_hangs_is_given_up(threads: DatabaseThreads) -> None:
    hangs = Hangs()
    hanging = asyncio.ensure_future(threads.run(hangs))
    await asyncio.to_thread(hangs.began.wait, PATIENCE_S)
    # What is cut a moment before the server begins with it would sleep to its end.
    async with asyncio.timeout(PATIENCE_S):
        while not await writer.run(asked, SLEEPING, hangs.number):
            await asyncio.sleep(0.01)
    waiting = asyncio.ensure_future(threads.run(asked, ID))
    await asyncio.sleep(0)
    threads.give_up(LONG_S)
    assert not hanging.done()
    async with asyncio.timeout(PATIENCE_S):
        threads.give_up(0)
        with pytest.raises(Unavailable):
            await hanging
        # Who waited behind it is served by another.
        assert await waiting != hangs.number
    thread = hangs.thread
    assert thread is not None
    await asyncio.to_thread(thread.join, PATIENCE_S)
    assert not thread.is_alive()
    # It heard of it, and could write nothing any more.
    assert len(hangs.errors) >= 2
    assert not await threads.run(Worker.objects.filter(pk="late").exists)
    async with asyncio.timeout(PATIENCE_S):
        while await threads.run(asked, RUNNING, hangs.number):
            await asyncio.sleep(0.01)


async def test_who_was_given_up_gets_no_connection(threads: DatabaseThreads) -> None:
    began, released, wrote = (threading.Event() for _ in range(3))

    def hangs() -> None:
        began.set()
        released.wait(PATIENCE_S)
        Worker.objects.create(pk="late", pid=1, started_ms=1, seen_ms=1)
        wrote.set()

    hanging = asyncio.ensure_future(threads.run(hangs))
    await asyncio.to_thread(began.wait, PATIENCE_S)
    hand = threads._hands[0].thread
    assert hand is not None
    threads.give_up(0)
    with pytest.raises(Unavailable):
        await asyncio.wait_for(hanging, PATIENCE_S)
    released.set()
    await asyncio.to_thread(hand.join, PATIENCE_S)
    assert not hand.is_alive()
    assert not wrote.is_set()
    assert await threads.run(asked, ID)
