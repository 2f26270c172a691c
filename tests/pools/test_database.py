"""The threads for our own statements."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import opentelemetry.context
import pytest
from django.db import (
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connection,
    connections,
)
from django.db.backends.signals import connection_created
from opentelemetry.sdk.trace import TracerProvider

from mcp_app.pools import database
from mcp_app.pools.database import DatabaseThreads, reader
from mcp_app.protocol.errors import Unavailable
from tests.drill.running import ROOT
from tests.serving import until

PATIENCE_S: Final = 60
where: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")


@pytest.fixture
def threads() -> Iterator[DatabaseThreads]:
    made = DatabaseThreads("test-database")
    yield made
    made.close()


async def test_a_function_runs_in_the_named_thread(threads: DatabaseThreads) -> None:
    first = await threads.run(threading.current_thread)
    assert await threads.run(threading.current_thread) is first
    assert (first.name, first.daemon) == ("test-database", True)
    assert await threads.run(sorted, [2, 3, 1], reverse=True) == [3, 2, 1]
    # It sees the context of its caller.
    where.set("here")
    assert await threads.run(where.get) == "here"
    await threads.run(where.set, "there")
    assert where.get() == "here"


def fail(error: Exception) -> None:
    raise error


async def test_work_without_a_span_begins_no_trace(threads: DatabaseThreads) -> None:
    """Instrumentations of databases ask for this value."""
    silent = partial(opentelemetry.context.get_value, "suppress_instrumentation")
    assert await threads.run(silent)
    assert not await database.authenticators.run(silent)
    with TracerProvider().get_tracer("test").start_as_current_span("request"):
        assert not await threads.run(silent)
    assert not silent()


async def test_what_is_raised_there_is_raised_here(threads: DatabaseThreads) -> None:
    for error in (KeyError("no"), ProgrammingError("no")):
        with pytest.raises(type(error), match="no"):
            await threads.run(fail, error)
    for outage in (OperationalError("gone"), InterfaceError("gone")):
        with pytest.raises(Unavailable) as raised:
            await threads.run(fail, outage)
        assert raised.value.http_status == 503
        assert raised.value.headers == {"Retry-After": "5"}
        assert raised.value.__cause__ is outage


async def test_the_log_says_why_it_is_one_not_each_time(
    threads: DatabaseThreads, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for seconds, reason in ((0, "gone"), (9, "still gone"), (1, "gone again")):
        clock.now += seconds
        with pytest.raises(Unavailable):
            await threads.run(fail, OperationalError(reason))
    assert [each.getMessage() for each in caplog.records] == [
        "test-database: the database could not be used: OperationalError('gone')",
        "test-database: the database could not be used: OperationalError('gone again')",
    ]


async def test_work_that_nobody_waits_for_is_left(threads: DatabaseThreads) -> None:
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

    def meet() -> int:
        barrier.wait(PATIENCE_S)
        return threading.get_ident()

    found = await asyncio.gather(*(several.run(meet) for _ in range(3)))
    assert len(set(found)) == 3
    several.close()


@pytest.mark.usefixtures("served_rows")
async def test_a_thread_closes_its_own_connections(threads: DatabaseThreads) -> None:
    def is_open() -> bool:
        return connection.connection is not None

    def used() -> bool:
        connection.ensure_connection()
        return is_open()

    assert await threads.run(used)
    # CONN_MAX_AGE is 0: nothing is kept between two runs.
    assert not await threads.run(is_open)


async def test_closed_threads_end_and_others_begin(threads: DatabaseThreads) -> None:
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
async def test_a_reader_reads_again_after_a_cut(reading: DatabaseThreads) -> None:
    reads = Reads(4)
    assert [await reading.run(reads) for _ in range(3)] == [1, 2, 3]
    assert len(set(reads.connections)) == 1
    assert await reading.run(reads) == 5
    assert reads.connections[4] is not reads.connections[3]


@pytest.mark.usefixtures("served_rows")
async def test_a_reader_does_not_try_for_ever(reading: DatabaseThreads) -> None:
    reads = Reads(1, 3, 4)
    with pytest.raises(Unavailable):
        await reading.run(reads)
    assert await reading.run(reads) == 2
    with pytest.raises(Unavailable):
        await reading.run(reads)
    assert await reading.run(reads) == 5


async def test_others_do_what_waits_behind_a_hang(threads: DatabaseThreads) -> None:
    hanging = await hang(threads)
    waiting = asyncio.ensure_future(threads.run(threading.current_thread))
    await asyncio.sleep(0)
    threads.replace_hanging()
    other = await asyncio.wait_for(waiting, PATIENCE_S)
    assert await threads.run(threading.current_thread) is other
    await hanging.ends_well()
    await hanging.thread_ended()


async def test_what_was_left_between_two_pieces_of_work_ends_with_its_pool() -> None:
    pool = DatabaseThreads("test-left")
    thread = await pool.run(threading.current_thread)
    await until(lambda: not pool.busy)
    with pool._lock:
        pool._abandon_thread(pool._hands[0])
    pool.close()
    await asyncio.to_thread(thread.join, PATIENCE_S)
    assert not thread.is_alive()


@pytest.mark.parametrize("closes", [False, True])
async def test_what_a_thread_has_in_hand_when_it_is_left_is_done(
    monkeypatch: pytest.MonkeyPatch, closes: bool
) -> None:
    taken, goes_on, take = threading.Event(), threading.Event(), database._next

    def slowly(*arguments: Any) -> Any:
        work = take(*arguments)
        taken.set()
        assert goes_on.wait(PATIENCE_S)
        return work

    monkeypatch.setattr(database, "_next", slowly)
    pool = DatabaseThreads("test-left")
    waiting = asyncio.ensure_future(pool.run(threading.current_thread))
    assert await asyncio.to_thread(taken.wait, PATIENCE_S)
    with pool._lock:
        pool._abandon_thread(pool._hands[0])
    if closes:
        pool.close()
    goes_on.set()
    thread = await asyncio.wait_for(waiting, PATIENCE_S)
    await asyncio.to_thread(thread.join, PATIENCE_S)
    assert not thread.is_alive()
    pool.close()


async def test_so_many_threads_are_left_alone_and_no_more(
    threads: DatabaseThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "MAX_ABANDONED", 2)
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
        threads.replace_hanging()
    names = [each.name for each in threading.enumerate()]
    assert names.count("test-database") == 3
    released.set()
    assert all(await asyncio.gather(*hanging))
    async with asyncio.timeout(PATIENCE_S):
        await threads.run(threading.current_thread)


class Hangs:
    """Work that begins, and ends when it is released."""

    def __init__(self, pool: DatabaseThreads) -> None:
        self.released = threading.Event()
        self._began = threading.Event()
        self._thread = threading.current_thread()
        self.future = asyncio.ensure_future(pool.run(self._hang))

    def _hang(self) -> str:
        self._thread = threading.current_thread()
        self._began.set()
        assert self.released.wait(PATIENCE_S)
        return "well"

    async def began(self) -> None:
        assert await asyncio.to_thread(self._began.wait, PATIENCE_S)

    async def ends_well(self) -> None:
        self.released.set()
        assert await self.future == "well"

    async def given_up(self) -> None:
        """Return when whoever waits has heard of it, and the thread is gone."""
        with pytest.raises(Unavailable):
            await asyncio.wait_for(self.future, PATIENCE_S)
        self.released.set()
        await self.thread_ended()

    async def thread_ended(self) -> None:
        await asyncio.to_thread(self._thread.join, PATIENCE_S)
        assert not self._thread.is_alive()


async def hang(pool: DatabaseThreads) -> Hangs:
    hanging = Hangs(pool)
    await hanging.began()
    return hanging


def no_thread(self: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_without_a_thread_nobody_waits_for_one(threads: DatabaseThreads) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(Unavailable):
            await asyncio.wait_for(threads.run(int), PATIENCE_S)
    assert await asyncio.wait_for(threads.run(int), PATIENCE_S) == 0


async def test_what_found_no_thread_is_done_by_the_next() -> None:
    two = DatabaseThreads("test-two", 2)
    hanging = await hang(two)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        waiting = asyncio.ensure_future(two.run(int))
        await asyncio.sleep(0)
    two.give_up()
    assert await asyncio.wait_for(waiting, PATIENCE_S) == 0
    await hanging.ends_well()
    two.close()


async def test_a_thread_that_died_has_no_place(threads: DatabaseThreads) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # It ends at once.
        patch.setattr(database, "_next", lambda *_: None)
        waiting = asyncio.ensure_future(threads.run(int))
        await asyncio.sleep(0)
        # `threading.enumerate` leaves a thread out a moment before it has ended.
        [hand] = threads._hands
        assert hand.thread is not None
        await asyncio.to_thread(hand.thread.join, PATIENCE_S)
    threads.give_up()
    assert await asyncio.wait_for(waiting, PATIENCE_S) == 0
    assert await asyncio.wait_for(threads.run(int), PATIENCE_S) == 0


async def test_a_connection_that_cannot_be_closed_does_not_end_a_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database, "IDLE_SECONDS", 0.01)
    hurried = DatabaseThreads("test-reader", repeatable=True)
    closed = threading.Event()

    def fails() -> None:
        del vars(connections["default"])["close"]
        closed.set()
        raise KeyError("no")

    def spoil() -> threading.Thread:
        vars(connections["default"])["close"] = fails
        return threading.current_thread()

    thread = await hurried.run(spoil)
    assert await asyncio.to_thread(closed.wait, PATIENCE_S)
    again = hurried.run(threading.current_thread)
    assert await asyncio.wait_for(again, PATIENCE_S) is thread
    assert "KeyError: 'no'" in caplog.text
    hurried.close()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(database, "time", clock)
    return clock


async def cut_after(seconds: float, pool: DatabaseThreads, clock: Clock) -> None:
    """Let something hang: it is given up after so many seconds, and no sooner."""
    hangs = await hang(pool)
    clock.now += seconds - 1
    pool.give_up()
    await asyncio.sleep(0)
    assert not hangs.future.done()
    clock.now += 1
    pool.give_up()
    await hangs.given_up()


@pytest.mark.parametrize("size", [1, 2])
async def test_what_is_only_slow_gets_more_time(clock: Clock, size: int) -> None:
    pool = DatabaseThreads("test-slow", size, patience=30.0)
    barrier = threading.Barrier(size)
    await asyncio.gather(*(pool.run(barrier.wait, PATIENCE_S) for _ in range(size)))
    for seconds in (30, 60, 120, 240, 240):
        await cut_after(seconds, pool, clock)
        await pool.run(int)
        # Its thread has more to do than to answer.
        await until(lambda: not pool.busy)
        pool.give_up()
    # What hangs long afterwards is no longer the same outage.
    clock.now += 2 * 240
    pool.give_up()
    await cut_after(30, pool, clock)
    pool.close()


async def test_several_that_hang_at_once_are_one_attempt(clock: Clock) -> None:
    several = DatabaseThreads("test-several", 3, patience=30.0)
    hanging = [Hangs(several) for _ in range(3)]
    for each in hanging:
        await each.began()
    clock.now += 30
    several.give_up()
    for each in hanging:
        await each.given_up()
    await cut_after(60, several, clock)
    several.close()


async def test_work_that_begins_while_other_work_is_judged_is_not_cut(
    threads: DatabaseThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Hangs(threads), Hangs(threads)
    await first.began()
    give_up = threads._give_up

    def late(*judged: Any) -> None:
        first.released.set()
        assert second._began.wait(PATIENCE_S)
        give_up(*judged)

    monkeypatch.setattr(threads, "_give_up", late)
    threads.give_up(0.0)
    second.released.set()
    assert [await first.future, await second.future] == ["well", "well"]


async def test_an_open_file_does_not_keep_others_open(threads: DatabaseThreads) -> None:
    here, there = socket.socketpair()
    silent = SimpleNamespace(alias="silent", vendor="postgresql", connection=here)
    file = SimpleNamespace(alias="file", vendor="sqlite", connection=object())
    reads = threading.Event()

    def read() -> bytes:
        database._here.hand.wrappers = (file, silent)
        connection_created.send(sender=SimpleNamespace, connection=silent)
        reads.set()
        if received := here.recv(1):
            return received
        raise OperationalError("The connection was cut.")

    with here, there:
        there.settimeout(PATIENCE_S)
        hanging = asyncio.ensure_future(threads.run(read))
        await asyncio.to_thread(reads.wait, PATIENCE_S)
        threads.give_up(0.0)
        with pytest.raises(Unavailable):
            await asyncio.wait_for(hanging, PATIENCE_S)
        assert await asyncio.to_thread(there.recv, 1) == b""


async def test_what_waits_can_be_refused(threads: DatabaseThreads) -> None:
    hanging, waiting = Hangs(threads), Hangs(threads)
    await hanging.began()
    threads.refuse_queued()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(waiting.future, PATIENCE_S)
    await hanging.ends_well()


async def test_a_pool_is_busy_while_somebody_waits(threads: DatabaseThreads) -> None:
    busy = [threads.busy]
    hanging = await hang(threads)
    busy.append(threads.busy)
    threads.give_up(0.0)
    # It may go on: nobody waits any more.
    busy.append(threads.busy)
    await hanging.given_up()
    assert busy == [False, True, False]


async def test_a_pool_that_cannot_give_up_does_not_keep_the_others(
    threads: DatabaseThreads,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = DatabaseThreads("test-broken")
    monkeypatch.setattr(broken, "give_up", dict[str, int]().pop)
    monkeypatch.setattr(database, "POOLS", (broken, threads))
    hanging = await hang(threads)
    database.give_up_hanging(0.0)
    await hanging.given_up()
    assert "test-broken: threads that hang could not be abandoned." in caplog.text


def test_a_loop_that_closed_meanwhile_does_not_hurt(threads: DatabaseThreads) -> None:
    go = threading.Event()

    async def leave() -> None:
        holding = asyncio.ensure_future(threads.run(go.wait, PATIENCE_S))
        await asyncio.sleep(0)
        holding.cancel()

    asyncio.run(leave())
    go.set()
    assert asyncio.run(threads.run(lambda: "well")) == "well"


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
from tests.serving import until

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
