"""The threads for our own statements."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Final

import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError, connection

from mcp_app.pools import database
from mcp_app.pools.database import DatabaseThreads, authenticators, reader, writer
from mcp_app.protocol.errors import Unavailable
from tests.drill.running import ROOT

PATIENCE_S: Final = 60
where: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")


@pytest.fixture
def threads() -> Iterator[DatabaseThreads]:
    made = DatabaseThreads("test-database")
    yield made
    made.close()


async def test_a_function_runs_in_the_named_thread(threads: DatabaseThreads) -> None:
    first = await threads.run(threading.current_thread)
    second = await threads.run(threading.current_thread)
    assert first is second
    assert first.name == "test-database"
    assert first.daemon


async def test_arguments_and_result(threads: DatabaseThreads) -> None:
    assert await threads.run(sorted, [2, 3, 1], reverse=True) == [3, 2, 1]


async def test_a_function_sees_the_context_of_its_caller(
    threads: DatabaseThreads,
) -> None:
    where.set("here")
    assert await threads.run(where.get) == "here"
    await threads.run(where.set, "there")
    assert where.get() == "here"


@pytest.mark.parametrize("error", [KeyError("no"), ProgrammingError("no")])
async def test_what_is_raised_there_is_raised_here(
    threads: DatabaseThreads, error: Exception
) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(type(error), match="no"):
        await threads.run(fails)


@pytest.mark.parametrize("error", [OperationalError("gone"), InterfaceError("gone")])
async def test_a_database_that_is_away_is_a_503(
    threads: DatabaseThreads, error: Exception
) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(Unavailable) as raised:
        await threads.run(fails)
    assert raised.value.http_status == 503
    assert raised.value.headers == {"Retry-After": "5"}
    assert raised.value.__cause__ is error


async def test_work_that_nobody_waits_for_any_more_is_not_begun(
    threads: DatabaseThreads,
) -> None:
    ran: list[str] = []
    go, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert go.wait(PATIENCE_S)

    holding = asyncio.ensure_future(threads.run(hold))
    waiting = asyncio.ensure_future(threads.run(ran.append, "ran"))
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()
    await holding
    await threads.run(int)
    assert ran == []


async def test_as_many_threads_as_it_says() -> None:
    several = DatabaseThreads("test-several", 3)
    barrier = threading.Barrier(3)
    try:
        names = await asyncio.gather(
            *(
                several.run(
                    lambda: (barrier.wait(PATIENCE_S), threading.get_ident())[1]
                )
                for _ in range(3)
            )
        )
        assert len(set(names)) == 3
    finally:
        several.close()


@pytest.mark.usefixtures("served_rows")
async def test_a_thread_has_connections_of_its_own_and_closes_them(
    threads: DatabaseThreads,
) -> None:
    def is_open() -> bool:
        return connection.connection is not None

    def used() -> bool:
        connection.ensure_connection()
        return is_open()

    assert await threads.run(used)
    # CONN_MAX_AGE is 0: nothing is kept between two runs.
    assert not await threads.run(is_open)


async def test_closed_threads_end_and_others_take_their_place(
    threads: DatabaseThreads,
) -> None:
    first = await threads.run(threading.current_thread)
    threads.close()
    await asyncio.to_thread(first.join, PATIENCE_S)
    assert not first.is_alive()
    assert await threads.run(threading.current_thread) is not first


class Reads:
    """Reads on a connection; the calls that are named find it cut."""

    def __init__(self, *cut: int) -> None:
        self._cut = cut
        self.connections: list[object] = []

    def __call__(self) -> int:
        connection.ensure_connection()
        self.connections.append(connection.connection)
        if len(self.connections) in self._cut:
            raise OperationalError("The connection was cut.")
        return len(self.connections)


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseThreads]:
    monkeypatch.setattr(database, "IDLE_SECONDS", 600.0)
    made = DatabaseThreads("test-reader", repeatable=True)
    yield made
    made.close()


@pytest.mark.usefixtures("served_rows")
async def test_a_reader_keeps_its_connection_while_there_is_work(
    reading: DatabaseThreads,
) -> None:
    reads = Reads()
    for _ in range(3):
        await reading.run(reads)
    assert len(set(reads.connections)) == 1


@pytest.mark.usefixtures("served_rows")
async def test_a_reader_closes_its_connection_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database, "IDLE_SECONDS", 0.05)
    hurried = DatabaseThreads("test-reader", repeatable=True)
    reads = Reads()
    async with asyncio.timeout(PATIENCE_S):
        while len(set(reads.connections)) < 2:
            await hurried.run(reads)
            await asyncio.sleep(0.2)
    hurried.close()


@pytest.mark.usefixtures("served_rows")
async def test_a_reader_reads_again_where_its_kept_connection_was_cut(
    reading: DatabaseThreads,
) -> None:
    reads = Reads(2)
    assert await reading.run(reads) == 1
    assert await reading.run(reads) == 3
    assert reads.connections[2] is not reads.connections[1]


@pytest.mark.usefixtures("served_rows")
async def test_a_reader_does_not_try_for_ever(reading: DatabaseThreads) -> None:
    reads = Reads(1, 3, 4)
    with pytest.raises(Unavailable):
        await reading.run(reads)
    assert await reading.run(reads) == 2
    with pytest.raises(Unavailable):
        await reading.run(reads)
    assert await reading.run(reads) == 5


async def test_what_waits_behind_a_statement_that_hangs_is_done_by_others(
    threads: DatabaseThreads,
) -> None:
    began, released = threading.Event(), threading.Event()

    def hangs() -> str:
        began.set()
        released.wait(PATIENCE_S)
        return "late"

    hanging = asyncio.ensure_future(threads.run(hangs))
    await asyncio.to_thread(began.wait, PATIENCE_S)
    waiting = asyncio.ensure_future(threads.run(threading.current_thread))
    await asyncio.sleep(0)
    threads.replace()
    other = await asyncio.wait_for(waiting, PATIENCE_S)
    assert await threads.run(threading.current_thread) is other
    released.set()
    assert await hanging == "late"
    # The thread that was left alone has ended.
    async with asyncio.timeout(PATIENCE_S):
        while [each.name for each in threading.enumerate()].count(other.name) > 1:
            await asyncio.sleep(0.001)


async def test_so_many_threads_are_left_alone_and_no_more(
    threads: DatabaseThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each holds a connection of the site's database."""
    monkeypatch.setattr(database, "MOST_LEFT", 2)
    released, began = threading.Event(), threading.Semaphore(0)
    hanging: list[asyncio.Future[bool]] = []

    def hangs() -> bool:
        began.release()
        return released.wait(PATIENCE_S)

    for number in range(5):
        hanging.append(asyncio.ensure_future(threads.run(hangs)))
        # Two are left alone; the third one that hangs is not replaced.
        if number < 3:
            await asyncio.to_thread(began.acquire, timeout=PATIENCE_S)
        threads.replace()
    names = [each.name for each in threading.enumerate()]
    assert names.count("test-database") == 3
    released.set()
    assert all(await asyncio.gather(*hanging))
    async with asyncio.timeout(PATIENCE_S):
        await threads.run(threading.current_thread)


def test_a_loop_that_closed_meanwhile_does_not_hurt(threads: DatabaseThreads) -> None:
    go = threading.Event()

    async def leave() -> None:
        holding = asyncio.ensure_future(threads.run(go.wait, PATIENCE_S))
        await asyncio.sleep(0)
        holding.cancel()

    asyncio.run(leave())
    go.set()
    assert asyncio.run(threads.run(lambda: "well")) == "well"


def test_the_threads_of_the_app() -> None:
    assert len({reader, writer, authenticators}) == 3


def test_a_fork_has_threads_of_its_own() -> None:
    async def pid() -> int:
        return await reader.run(os.getpid)

    assert asyncio.run(pid()) == os.getpid()
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE_S)
        os._exit(0 if asyncio.run(pid()) == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0


HANGS: Final = """
import asyncio, threading
import django
from django.conf import settings
settings.configure(DATABASES={})
django.setup()
from mcp_app.pools.database import reader

async def main():
    waiting = asyncio.ensure_future(reader.run(threading.Event().wait))
    await asyncio.sleep(0.05)
    waiting.cancel()

asyncio.run(main())
print("ended")
"""


def test_a_database_that_hangs_does_not_keep_the_process() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", HANGS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert finished.stdout == "ended\n"
