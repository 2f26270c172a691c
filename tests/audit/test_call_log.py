"""Calls gather, are written behind, and are counted where there is no room."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from typing import Final

import pytest
from django.db import DataError, OperationalError

from mcp_app.audit import call_log
from mcp_app.audit.call_log import CallLog
from mcp_app.audit.writing import CallBatch, PendingCalls, write
from mcp_app.interface.call_record import CallRecord, CallValues
from mcp_app.models import Call
from mcp_app.models.calls import CallStatisticQuerySet
from mcp_app.pools.database import call_writer, writer
from tests.audit.reading import totals
from tests.audit.records import record
from tests.audit.refusing import refusing
from tests.serving import until

pytestmark = pytest.mark.usefixtures("no_calls")

PATIENCE_S: Final = 60
KEY: Final = ("default", "tool", "add", "answered")


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is over in no time."""
    monkeypatch.setattr(call_log, "EVERY", 0.01)
    monkeypatch.setattr(call_log, "RETRY_S", (0.001,))


def log(most: int = 1_000, *, strict: bool = False, **options: float) -> CallLog:
    return CallLog("writer", max_calls=most, key=b"key", strict=strict, **options)


async def idle(log: CallLog) -> None:
    """Wait until everything is written, and no sooner than it is due."""
    await until(lambda: not log.has_pending)


def _figures(outcome: str) -> tuple[int, int, int]:
    rows = Call.objects.all()
    if outcome == "unknown":
        rows = rows.filter(outcome=outcome)
    key = ("default", "tool", "" if outcome == "unknown" else "add", outcome)
    return rows.count(), totals().get(key, 0), totals("dropped").get(key, 0)


async def figures(
    idle_log: CallLog | None = None, outcome: str = "answered"
) -> tuple[int, int, int]:
    """Return how many rows there are, and how many calls were counted and dropped.

    If a log is given, that is once it has written everything.
    """
    if idle_log is not None:
        await idle(idle_log)
    return await writer.run(_figures, outcome)


@asynccontextmanager
async def held() -> AsyncIterator[None]:
    holds, released = threading.Event(), threading.Event()

    def hold() -> None:
        holds.set()
        released.wait(PATIENCE_S)

    holding = asyncio.create_task(call_writer.run(hold))
    await asyncio.to_thread(holds.wait)
    try:
        yield
    finally:
        released.set()
        await holding


def failing(monkeypatch: pytest.MonkeyPatch, *errors: Exception) -> None:
    left = list(errors)

    def fail(batch: CallBatch) -> int:
        if left:
            raise left.pop(0)
        return write(batch)

    monkeypatch.setattr(call_log, "write", fail)


def away(_: CallBatch) -> int:
    raise OperationalError("away")


async def test_what_gathered_is_written_when_its_second_is_over() -> None:
    kept = log()
    kept.write_pending()
    busy = [kept.has_pending]
    for _ in range(3):
        kept.add(record())
    busy.append(kept.has_pending)
    await idle(kept)
    assert busy == [False, True]
    assert await figures() == (3, 3, 0)
    kept.add(record())
    assert await figures(kept) == (4, 4, 0)


async def test_many_do_not_wait_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_log, "MOST_ROWS", 10)
    monkeypatch.setattr(call_log, "EVERY", 600.0)
    kept = log()
    for _ in range(25):
        kept.add(record())
    # The others are too few.
    await until(lambda: kept.waiting_calls == 5)
    assert kept.has_pending
    assert await figures() == (20, 20, 0)
    kept.write_pending()
    kept.write_pending()
    assert await figures(kept) == (25, 25, 0)


async def test_it_hurries_with_what_came_meanwhile() -> None:
    kept = log()
    kept.write_pending()
    kept.add(record())
    kept.write_pending()
    async with held():
        kept.add(record())
        kept.write_pending()
    async with asyncio.timeout(PATIENCE_S):
        while kept.has_pending:
            kept.write_pending()
            await asyncio.sleep(0.001)
    assert await figures() == (2, 2, 0)


async def test_what_a_thread_adds_as_a_batch_ends_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = log()
    kept.add(record())
    entered, add = threading.Event(), PendingCalls.add

    def add_slowly(pending: PendingCalls, given: CallValues) -> None:
        entered.set()
        time.sleep(0.2)
        add(pending, given)

    async with held():
        kept.write_pending()
        await asyncio.sleep(0.02)
        monkeypatch.setattr(PendingCalls, "add", add_slowly)
        adding = asyncio.create_task(asyncio.to_thread(kept.add, record()))
        await asyncio.to_thread(entered.wait)
    await adding
    assert await figures(kept) == (2, 2, 0)


async def test_who_stops_writes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_log, "EVERY", 0.001)
    kept = log()
    kept.add(record())
    kept.stop()
    kept.stop()
    await asyncio.sleep(0.02)
    kept.add(record())
    await asyncio.sleep(0.02)
    assert kept.has_pending
    assert await figures() == (0, 0, 0)
    kept.write_pending()
    await idle(kept)
    kept.add(record())
    await asyncio.sleep(0.02)
    assert kept.has_pending
    assert await figures() == (2, 2, 0)


async def test_without_room_calls_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    kept = log(most=5)
    with caplog.at_level(logging.WARNING, "mcp_app.audit"):
        async with held():
            for _ in range(3):
                kept.add(record())
            # The batch waits for its thread; what comes now waits for the batch.
            await until(lambda: not kept._pending)
            for number in range(12):
                kept.add(record(0.02, client=f"client {number}"))
            assert kept.dropped == 7
            assert len(kept._pending._circumstances) == 5
        assert await figures(kept) == (8, 15, 7)
    assert len(caplog.records) == 1
    assert "1 calls so far" in caplog.text
    kept.add(record())
    assert await figures(kept) == (9, 16, 7)


async def test_a_small_room_is_emptied_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_log, "EVERY", 600.0)
    kept = log(most=2)
    for _ in range(2):
        kept.add(record())
    await until(lambda: not kept.has_pending)
    assert await figures() == (2, 2, 0)


@pytest.mark.parametrize(("warn_every", "warnings"), [(60, [1]), (0, range(4, 99))])
async def test_an_outage_loses_nothing_and_is_logged_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    warn_every: float,
    warnings: Container[int],
) -> None:
    monkeypatch.setattr(call_log, "WARN_EVERY", warn_every)
    failing(monkeypatch, *(OperationalError("away") for _ in range(20)))
    kept = log()
    with caplog.at_level(logging.WARNING, "mcp_app.audit"):
        for _ in range(3):
            kept.add(record())
            await asyncio.sleep(0.005)
        assert await figures(kept) == (3, 3, 0)
    assert caplog.text.count("The call log could not be written") in warnings


async def test_what_the_database_refuses_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refusing(monkeypatch, OperationalError(1366, "Incorrect string value"), "bad")
    kept = log()
    for client in ("good", "bad", "good"):
        kept.add(record(client=client))
    assert await figures(kept) == (2, 3, 1)
    assert kept.dropped == 1
    assert (
        "The database refuses rows of the call log. 1 calls have no row" in caplog.text
    )


async def test_strict_calls_do_not_wait_for_one_that_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusing(monkeypatch, OperationalError(1366, "Incorrect string value"), "bad")
    kept = log(strict=True)
    async with held():
        for client in ("bad", "good", "bad"):
            kept.add(record(client=client))
    await kept.wait_until_written()
    assert await figures() == (1, 3, 2)


async def test_counters_that_are_refused_are_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise DataError("who knows")

    with monkeypatch.context() as refusing:
        refusing.setattr(CallStatisticQuerySet, "raise_by", refuse)
        kept = log()
        kept.add(record())
        await idle(kept)
    assert "The database refuses counters of the call log. 2 are lost." in caplog.text
    kept.add(record())
    assert await figures(kept) == (2, 1, 0)


async def test_one_warning_does_not_silence_another(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept = log(most=2)
    with monkeypatch.context() as outage:
        outage.setattr(call_log, "write", away)
        kept.add(record())
        kept.write_pending()
        await until(lambda: "The call log could not be written" in caplog.text)
        for _ in range(3):
            kept.add(record())
    assert "The call log has no rows for" in caplog.text
    assert await figures(kept) == (3, 4, 1)


@pytest.mark.parametrize("strict", [True, False])
async def test_a_fault_of_ours_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, strict: bool
) -> None:
    failing(monkeypatch, TypeError("a fault"))
    kept = log(strict=strict)
    kept.add(record())
    if strict:
        await kept.wait_until_written()
    await idle(kept)
    kept.add(record())
    assert await figures(kept) == (1, 1, 0)
    assert "The call log has lost calls: 1." in caplog.text


def in_vain(second: int, after: float = 0.001) -> CallRecord:
    return record(outcome="unknown", name="")._replace(began=second, took=after)


@pytest.mark.parametrize("strict", [False, True])
async def test_t21_of_what_strangers_call_in_vain_few_have_rows(
    caplog: pytest.LogCaptureFixture, strict: bool
) -> None:
    kept, now = log(strict=strict, strangers_rows=3), int(time.monotonic())
    for second in (now - 2, now - 1):
        for part in range(100):
            kept.add_in_vain(in_vain(second, part / 100))
        kept.add(record())
    for _ in range(2):
        kept.add_in_vain(in_vain(now))
    assert await figures(kept, "unknown") == (8, 202, 194)
    # Others are written as ever.
    assert await figures() == (10, 2, 0)
    assert kept.dropped == 194
    assert caplog.text.count("Callers who did not sign in") == 1


@pytest.mark.parametrize("strict", [False, True])
async def test_calls_that_are_counted_alone_are_written_soon(strict: bool) -> None:
    kept = log(strict=strict, strangers_rows=0)
    kept.add_in_vain(in_vain(int(time.monotonic())))
    assert kept.has_pending
    assert await figures(kept, "unknown") == (0, 1, 1)
    kept.add(record())
    assert await figures(kept) == (1, 1, 0)


async def test_without_a_rate_all_have_rows() -> None:
    kept, second = log(), int(time.monotonic())
    for _ in range(50):
        kept.add_in_vain(in_vain(second))
    assert await figures(kept, "unknown") == (50, 50, 0)


async def test_strict_waits_for_its_own_call_only() -> None:
    kept = log(most=1, strict=True)
    kept.add(record())
    first = asyncio.create_task(kept.wait_until_written())
    async with held():
        kept.add(record())
        later = [asyncio.create_task(kept.wait_until_written()) for _ in range(2)]
        kept.add(record())
        later[0].cancel()
    await first
    await later[1]
    await kept.wait_until_written()
    await idle(kept)
    assert kept.dropped == 0
    assert await figures() == (3, 3, 0)


async def test_digests_need_the_key() -> None:
    def digest(key: bytes) -> str:
        return CallLog("w", max_calls=1, key=key, strict=False).digest_arguments(b"{}")

    assert digest(b"a") == digest(b"a")
    assert digest(b"a") != digest(b"b")
