"""What calls need of databases that lock rows; run by `tests/test_databases.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Final

import pytest
from django.db import connections, transaction

from mcp_app.audit.call_log import CallLog
from mcp_app.audit.writing import CallBatch, write
from mcp_app.models import Call, CallWriter, expiry
from mcp_app.models.expiry import ExpiredRows
from mcp_app.models.transactions import NowMilliseconds, own_transaction
from mcp_app.pools.database import writer
from tests.audit.reading import totals
from tests.audit.records import batch, record
from tests.audit.rows import call

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("no_calls")]

PATIENCE_S: Final = 60
A_MOMENT_S: Final = 0.3


def in_thread(work: Callable[[], object]) -> None:
    try:
        work()
    finally:
        connections.close_all()


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("committed", [True, False])
def test_who_writes_again_waits_for_a_result(is_first: bool, committed: bool) -> None:
    """A connection breaks, and the server has yet to learn of it."""
    given: CallBatch = batch(record(), record())
    if not is_first:
        CallWriter.objects.create(
            id=given.writer, number=given.number - 1, written_ms=1
        )
    holds, released = Event(), Event()

    def first() -> None:
        with own_transaction("default"):
            write(given)
            holds.set()
            released.wait(PATIENCE_S)
            if not committed:
                transaction.set_rollback(True)

    with ThreadPoolExecutor(2) as pool:
        undecided = pool.submit(in_thread, first)
        holds.wait(PATIENCE_S)
        again = pool.submit(in_thread, lambda: write(given))
        # Without a lock it would be done by now, and its rows there twice.
        again_is_early = _done(again.done)
        released.set()
        undecided.result()
        again.result()
    assert not again_is_early
    assert Call.objects.count() == 2
    assert sum(totals().values()) == 2


def _done(done: Callable[[], bool]) -> bool:
    Event().wait(A_MOMENT_S)
    return done()


async def test_a_row_that_the_database_refuses_is_counted() -> None:
    kept = CallLog("writer", max_calls=10, key=b"key", strict=True)
    kept.add(record(failure="longer than its column"))
    kept.add(record())
    await kept.wait_until_written()
    while kept.has_pending:
        await asyncio.sleep(0.01)
    rows, calls, dropped = await writer.run(
        lambda: (Call.objects.count(), totals(), totals("dropped"))
    )
    key = "default", "tool", "add", "answered"
    # Strict calls do not wait for each other: each may be in a batch of its own.
    assert calls == {key: 2}
    assert (rows, dropped) in ((0, {key: 2}), (1, {key: 1}))


def test_two_who_remove_old_calls_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "PORTION", 2)
    for _ in range(4):
        call(time_ms=NowMilliseconds() - 1_000)
    holds, released = Event(), Event()
    calls = _old_calls()

    def first() -> None:
        with own_transaction("default"):
            assert calls.remove() == 2
            holds.set()
            released.wait(PATIENCE_S)

    with ThreadPoolExecutor(2) as pool:
        removing = pool.submit(in_thread, first)
        holds.wait(PATIENCE_S)
        other = pool.submit(in_thread, lambda: _removed(calls))
        other.result(PATIENCE_S)
        assert Call.objects.count() == 2
        released.set()
        removing.result()
    assert Call.objects.count() == 0


def _old_calls() -> ExpiredRows:
    rows = Call.objects.older_than(NowMilliseconds())
    return expiry.expired_rows("calls", rows.order_by("time_ms"))


def _removed(calls: ExpiredRows) -> None:
    assert calls.remove() == 2
    assert calls.remove() is None
