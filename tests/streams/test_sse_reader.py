"""What is said in a session of HTTP+SSE is read once, in its order, by one process."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

from mcp_app.invalidation.workers import PeerMonitor
from mcp_app.models import Session, Stream, streams
from mcp_app.pools.database import log_writer, reader, writer
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams import sse_reader
from mcp_app.streams.log_writer import Batch, write
from mcp_app.streams.sse_reader import SseReader
from tests.statements import counted
from tests.streams.logging_rows import (
    OWNER,
    events,
    further,
    opened,
    opening,
    own_session,
    until,
)

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]


class Noting:
    """A sink that notes what it is told; a last message has a full stop."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.full = False

    def deliver(self, payload: bytes, *, last: bool) -> None:
        self.heard.append(payload.decode() + "." * last)


class Filling:
    """A sink that takes a portion, and then no more until it is told to go on."""

    def __init__(self) -> None:
        self.portions: list[list[str]] = [[]]

    @property
    def full(self) -> bool:
        return bool(self.portions[-1])

    def deliver(self, payload: bytes, *, last: bool) -> None:
        self.portions[-1].append(payload.decode() + "." * last)


class Orphans:
    count = 0

    async def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def orphans() -> Orphans:
    return Orphans()


@pytest.fixture
def gathered(orphans: Orphans) -> SseReader:
    """Reads, and throws away at once what was read."""
    return SseReader(PeerMonitor("worker-9"), orphans)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_reader, "DELETE_EVERY_S", 0.0)
    monkeypatch.setattr(sse_reader, "LOOK_S", 0.01)


@pytest.fixture
def other(row: Session) -> Session:
    """Another session; `row` erases it."""
    return own_session()


async def run(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    return await writer.run(partial(function, *arguments, **named))


async def ends(key: int, *payloads: bytes, state: str = "completed") -> None:
    await run(lambda: write(Batch([further(key, *payloads, state=state)], OWNER)))


async def looks(gathered: SseReader, count: int = 2) -> None:
    """Wait until it has looked so often from now on."""
    enough = gathered.looks + count
    async with asyncio.timeout(60):
        while gathered.looks < enough:
            gathered.poll_soon()
            await asyncio.sleep(0.001)


async def test_each_message_comes_once_to_its_session(
    gathered: SseReader, row: Session, other: Session
) -> None:
    mine, others = Noting(), Noting()
    key = await run(opened, row, b"1", b"2")
    await run(opened, other, b"a")
    with gathered.deliver_to(row.pk, mine), gathered.deliver_to(other.pk, others):
        await looks(gathered)
        assert (mine.heard, others.heard) == (["1", "2"], ["a"])
        assert gathered.is_session_busy(row.pk)
        later = await run(opened, row, b"x")
        await looks(gathered)
        await ends(key, b"3", b"4")
        await ends(later)
        await looks(gathered)
        assert sorted(mine.heard) == ["1", "2", "3", "4.", "x"]
        assert not gathered.is_session_busy(row.pk)
        assert gathered.is_session_busy(other.pk)
        await looks(gathered)
    assert sorted(mine.heard) == ["1", "2", "3", "4.", "x"]
    assert others.heard == ["a"]
    await until(lambda: gathered._task is None)


async def test_the_look_that_reads_the_end_finds_nothing_busy(
    gathered: SseReader, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for the end of a session need not wait for another look."""
    monkeypatch.setattr(sse_reader, "LOOK_S", 3600.0)
    key = await run(opened, row, b"1")
    with gathered.deliver_to(row.pk, Noting()):
        await _has_looked(gathered, 1)
        assert gathered.is_session_busy(row.pk)
        await ends(key)
        gathered.poll_soon()
        await _has_looked(gathered, 2)
        assert not gathered.is_session_busy(row.pk)


async def _has_looked(gathered: SseReader, times: int) -> None:
    await until(lambda: gathered.looks >= times)
    assert gathered.looks == times


async def test_what_was_read_goes_in_portions(
    gathered: SseReader, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_DELETED", 3)
    sink = Noting()
    plain = [await run(opened, row, *[b"1"] * 5) for _ in range(3)]
    once = await run(opened, row, b"2", request_key="k")
    for key in (*plain, once):
        await ends(key)
    with gathered.deliver_to(row.pk, sink):
        async with asyncio.timeout(60):
            while await reader.run(Stream.objects.exclude(pk=once).count):
                await looks(gathered)
        await looks(gathered, 4)
    assert sink.heard == [*["1"] * 4, "1."] * 3 + ["2."]
    (left,) = await run(list, Stream.objects.all())
    assert (left.pk, left.state, left.floor_seq, left.size) == (once, "closed", 1, 0)
    assert await run(events, once) == []


async def test_a_sink_that_is_full_is_told_nothing(
    gathered: SseReader, row: Session
) -> None:
    sink = Noting()
    sink.full = True
    await ends(await run(opened, row, b"1"))
    with gathered.deliver_to(row.pk, sink):
        await looks(gathered)
        assert (sink.heard, gathered.has_work_until(0)) == ([], True)
        sink.full = False
        await looks(gathered)
        assert (sink.heard, gathered.has_work_until(0)) == (["1."], False)


async def test_more_than_one_portion(
    gathered: SseReader, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse_reader, "AT_ONCE", 2)
    sink = Noting()
    await run(opened, row, *[b"1"] * 5)
    with gathered.deliver_to(row.pk, sink):
        await until(lambda: len(sink.heard) >= 5)
    assert sink.heard == ["1"] * 5


def reads(statements: list[str]) -> int:
    """Count those that read payloads."""
    return sum("payload" in each for each in statements)


async def test_one_statement_reads_many_streams(
    gathered: SseReader, row: Session, other: Session
) -> None:
    mine, others = Noting(), Noting()
    running = [await run(opened, each, b"1") for each in (row, other)]
    with gathered.deliver_to(row.pk, mine), gathered.deliver_to(other.pk, others):
        await looks(gathered)
        said = [opening(each, b"a", state="completed") for each in (row, other)]

        def say() -> None:
            more = [further(each, b"2", b"3") for each in running]
            write(Batch([*said, *more], OWNER))

        async with counted() as statements:
            await run(say)
            await looks(gathered)
        assert reads(statements) == 1
    assert sorted(mine.heard) == sorted(others.heard) == ["1", "2", "3", "a."]


async def test_a_portion_has_few_streams(
    gathered: SseReader, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse_reader, "MOST_STREAMS", 2)
    sink = Noting()
    said = [opening(row, b"%d" % number, state="completed") for number in range(5)]
    await run(lambda: write(Batch(said, OWNER)))
    async with counted() as statements:
        with gathered.deliver_to(row.pk, sink):
            await looks(gathered)
    assert reads(statements) == 3
    assert sorted(sink.heard) == [f"{number}." for number in range(5)]


async def test_a_portion_is_small(
    gathered: SseReader, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse_reader, "MOST_BYTES", 10)
    sink = Filling()
    await ends(await run(opened, row, b"1", b"a" * 20, b"2", b"3" * 9))
    for text in (b"4444", b"5555", b"6666"):
        await ends(await run(opened, row, text))
    with gathered.deliver_to(row.pk, sink):
        await looks(gathered)
        for _ in range(6):
            sink.portions.append([])
            await looks(gathered, 3)
    assert sink.portions == [
        ["1"],
        ["a" * 20],
        ["2", "333333333."],
        ["4444.", "5555."],
        ["6666."],
        [],
        [],
    ]


@pytest.mark.parametrize(("most", "rests"), [(3600.0, True), (0.0, False)])
async def test_after_a_long_look_comes_a_rest(
    gathered: SseReader,
    row: Session,
    monkeypatch: pytest.MonkeyPatch,
    most: float,
    rests: bool,
) -> None:
    clock = SimpleNamespace(monotonic=count(0.0, 3600.0).__next__)
    monkeypatch.setattr(sse_reader, "time", clock)
    monkeypatch.setattr(sse_reader, "MOST_REST_S", most)
    sink = Noting()
    await run(opened, row, b"1")
    with gathered.deliver_to(row.pk, sink):
        await looks(gathered, 1)
        task = gathered._task
        assert task is not None
        for _ in range(20):
            gathered.poll_soon()
            await reader.run(Stream.objects.count)
        assert (gathered.looks == 1) is rests
    # With the last session all of this ends.
    async with asyncio.timeout(60):
        await task


async def test_a_short_look_is_followed_by_the_next(
    gathered: SseReader, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse_reader, "LOOK_S", 3600.0)
    with gathered.deliver_to(row.pk, Noting()):
        await looks(gathered, 3)


async def test_outages_and_faults(
    gathered: SseReader,
    row: Session,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    found: Any = sse_reader._heads
    broken: list[Exception] = [*[Unavailable("away")] * 5, *[ValueError("fault")] * 5]

    def heads(sessions: Any) -> Any:
        if broken:
            raise broken.pop(0)
        return found(sessions)

    monkeypatch.setattr(sse_reader, "_heads", heads)
    caplog.set_level(logging.WARNING, "mcp_app.streams")
    sink = Noting()
    await run(opened, row, b"1")
    with gathered.deliver_to(row.pk, sink):
        await looks(gathered)
    assert sink.heard == ["1"]
    levels = [each.levelname for each in caplog.records]
    assert levels == ["WARNING", "ERROR", "WARNING"]
    assert caplog.records[-1].getMessage().endswith("It works again.")


async def test_what_cannot_be_deleted_away(
    gathered: SseReader,
    row: Session,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    throw: Any = Stream.objects.delete_read
    broken = [Unavailable("away") for _ in range(5)]

    def fails(keys: Any) -> Any:
        if broken:
            raise broken.pop()
        return throw(keys)

    monkeypatch.setattr(Stream.objects, "delete_read", fails)
    caplog.set_level(logging.WARNING, "mcp_app.streams")
    await ends(await run(opened, row, b"1"))
    with gathered.deliver_to(row.pk, Noting()):
        async with asyncio.timeout(60):
            # The rows are gone a moment before that is told.
            while len(caplog.records) < 2:
                await looks(gathered)
    assert not await reader.run(Stream.objects.count)
    began, over = caplog.records
    assert "could not be deleted: Unavailable" in began.getMessage()
    assert over.getMessage().endswith("It works again.")


async def test_owners_that_seem_to_be_dead(
    gathered: SseReader, row: Session, orphans: Orphans
) -> None:
    sink = Noting()
    await run(opened, row)
    with gathered.deliver_to(row.pk, sink):
        await looks(gathered)
    assert orphans.count >= 2


async def test_what_fails_for_the_dead_keeps_nobody_waiting(row: Session) -> None:
    async def fail() -> None:
        raise Unavailable("Another transaction has locked them.")

    gathered, sink = SseReader(PeerMonitor("worker-9"), fail), Noting()
    await run(opened, row, b"1")
    with gathered.deliver_to(row.pk, sink):
        await looks(gathered)
    assert sink.heard == ["1"]


async def test_a_busy_writer_keeps_nobody_waiting(
    gathered: SseReader, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    throw: Any = Stream.objects.delete_read
    entered, released = threading.Event(), threading.Event()

    def slowly(keys: Any) -> Any:
        entered.set()
        assert released.wait(60)
        return throw(keys)

    monkeypatch.setattr(Stream.objects, "delete_read", slowly)
    sink = Noting()
    first, second = await run(opened, row, b"1"), await run(opened, row)
    await ends(first)
    with gathered.deliver_to(row.pk, sink):
        try:
            assert await asyncio.to_thread(entered.wait, 60)
            await log_writer.run(_ended, second)
            await looks(gathered)
            heard = list(sink.heard)
        finally:
            released.set()
        assert heard == ["1.", "2."]
        async with asyncio.timeout(60):
            while await reader.run(Stream.objects.count):
                await looks(gathered)
    assert sink.heard == heard


def _ended(key: int) -> None:
    write(Batch([further(key, b"2", state="completed")], OWNER))


async def test_more_than_goes_at_once_is_not_waited_for(
    gathered: SseReader, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_DELETED", 1)
    monkeypatch.setattr(sse_reader, "DELETE_EVERY_S", 3600.0)
    gathered._deleted_at = float("-inf")
    for _ in range(4):
        await ends(await run(opened, row, b"1"))
    with gathered.deliver_to(row.pk, Noting()):
        async with asyncio.timeout(60):
            while await reader.run(Stream.objects.count):
                await looks(gathered)


async def test_a_session_that_ends_while_it_is_read(
    gathered: SseReader, row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Any = sse_reader._events
    entered, released = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slowly(places: Any) -> Any:
        loop.call_soon_threadsafe(entered.set)
        asyncio.run_coroutine_threadsafe(released.wait(), loop).result(60)
        return found(places)

    monkeypatch.setattr(sse_reader, "_events", slowly)
    sink = Noting()
    await run(opened, row, b"1")
    with gathered.deliver_to(row.pk, sink):
        await entered.wait()
    released.set()
    await until(lambda: gathered._task is None)
    assert sink.heard == []


async def test_what_is_closed_costs_no_look(row: Session) -> None:
    """Rows of calls that must not run twice are kept as long as their session.

    Other databases decide by how many rows there are.
    """
    rows = Stream.objects.unread().filter(session_id__in=[row.pk, row.pk + 1])
    # A new connection asks its database for more.
    await reader.run(sse_reader._heads, [row.pk])
    async with counted() as statements:
        await reader.run(sse_reader._heads, [row.pk])
    assert '"state" IN' in statements[0].replace("`", '"')
    if connection.vendor == "sqlite":
        assert "mcp_stream_state" in await reader.run(rows.explain)
    names = await run(
        lambda: connection.introspection.get_constraints(
            connection.cursor(), Stream._meta.db_table
        )
    )
    assert names["mcp_stream_state"]["columns"] == ["session_id", "state"]
