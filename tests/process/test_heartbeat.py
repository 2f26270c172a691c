"""A process says that it lives, and the gate knows how long that is good for."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Final

import pytest
from django.db import DatabaseError, OperationalError

from mcp_app.invalidation.change_reader import ChangeSet
from mcp_app.invalidation.workers import TRUSTED, Report, WorkerRow
from mcp_app.models import Worker
from mcp_app.pools.database import writer
from mcp_app.process import heartbeat
from mcp_app.process.freshness import FreshnessGate
from mcp_app.process.heartbeat import Heartbeat
from mcp_app.protocol.errors import Unavailable

pytestmark = pytest.mark.usefixtures("served_rows")

PATIENCE_S: Final = 60


class Rows(WorkerRow):
    """A row that counts, and that may be out of reach."""

    def __init__(self) -> None:
        super().__init__()
        self.renewed = 0
        self.error: Exception | None = None
        self.claims = 0

    async def beaten(self) -> None:
        self.claims += 1

    def renew(self) -> None:
        if self.error is not None:
            raise self.error
        super().renew()
        self.renewed += 1


class Trusting(FreshnessGate):
    """A gate that notes until when it may trust."""

    def __init__(self) -> None:
        super().__init__(self._news, self._nothing)
        self.until: list[float] = []

    async def _news(self) -> ChangeSet:
        return ChangeSet()

    async def _nothing(self, _: ChangeSet) -> None:
        """Load nothing."""

    def trust(self, until: float) -> None:
        super().trust(until)
        self.until.append(until)


@pytest.fixture
def row() -> Rows:
    return Rows()


@pytest.fixture
def gate() -> Trusting:
    return Trusting()


@pytest.fixture
async def beating(
    row: Rows, gate: Trusting, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Heartbeat]:
    monkeypatch.setattr(heartbeat, "HEARTBEAT", 0.01)
    tasks: set[asyncio.Future[None]] = set()

    def spawn(work: Awaitable[None]) -> None:
        tasks.add(asyncio.ensure_future(work))

    made = Heartbeat(asyncio.get_running_loop(), row, gate, spawn, row.beaten)
    yield made
    row.error = None
    await made.end()
    await asyncio.gather(*tasks)
    await writer.run(row.remove)


def is_there(row: Rows) -> bool:
    return Worker.objects.filter(pk=row.id).exists()


async def test_the_row_is_there_before_the_first_check(
    beating: Heartbeat, row: Rows, gate: Trusting
) -> None:
    began = time.monotonic()
    await beating.ensure_row()
    assert await writer.run(is_there, row)
    assert began + TRUSTED <= gate.until[0] <= time.monotonic() + TRUSTED
    renewed = row.renewed
    await beating.ensure_row()
    assert row.renewed == renewed


async def test_it_beats_until_it_ends(beating: Heartbeat, row: Rows) -> None:
    await beating.ensure_row()
    async with asyncio.timeout(PATIENCE_S):
        while row.renewed < 3:
            await asyncio.sleep(0.001)
    await beating.end()
    assert not await writer.run(is_there, row)


async def test_a_beat_that_had_not_begun_does_not_bring_the_row_back(
    row: Rows, gate: Trusting
) -> None:
    late: list[Awaitable[None]] = []
    made = Heartbeat(asyncio.get_running_loop(), row, gate, late.append, row.beaten)
    await made.ensure_row()
    made._start_beat()
    await made.end()
    await late[0]
    assert not await writer.run(is_there, row)


async def test_an_outage_is_logged_and_gives_no_trust(
    beating: Heartbeat, row: Rows, gate: Trusting, caplog: pytest.LogCaptureFixture
) -> None:
    await beating.ensure_row()
    row.error = DatabaseError("gone")
    with caplog.at_level(logging.WARNING, "mcp_app.process"):
        async with asyncio.timeout(PATIENCE_S):
            while "could not write its heartbeat" not in caplog.text:
                await asyncio.sleep(0.001)
    trusted = len(gate.until)
    await asyncio.sleep(0.03)
    assert len(gate.until) == trusted
    row.error = None
    async with asyncio.timeout(PATIENCE_S):
        while len(gate.until) == trusted:
            await asyncio.sleep(0.001)


async def test_a_process_that_cannot_say_it_does_not_begin(
    beating: Heartbeat, row: Rows, gate: Trusting
) -> None:
    row.error = DatabaseError("gone")
    with pytest.raises(DatabaseError):
        await beating.ensure_row()
    row.error = None
    await beating.ensure_row()
    assert gate.until


async def test_it_is_steady_when_all_beats_came_for_a_while(
    beating: Heartbeat, row: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "LATE", 60.0)
    monkeypatch.setattr(heartbeat, "STEADY", 600.0)
    seen = [beating.is_steady]
    await beating.ensure_row()
    seen.append(beating.is_steady)
    monkeypatch.setattr(heartbeat, "STEADY", 0.2)
    async with asyncio.timeout(PATIENCE_S):
        while not (beating.is_steady and row.claims):
            await asyncio.sleep(0.001)
    assert seen == [False, False]


async def test_what_comes_after_a_beat_comes_after_each_that_succeeds(
    beating: Heartbeat, row: Rows
) -> None:
    await beating.ensure_row()
    async with asyncio.timeout(PATIENCE_S):
        while row.claims < 2:
            await asyncio.sleep(0.001)
    assert not beating.is_steady
    row.error = DatabaseError("gone")
    async with asyncio.timeout(PATIENCE_S):
        while not beating._failed:
            await asyncio.sleep(0.001)
    claims = row.claims
    await asyncio.sleep(0.05)
    assert row.claims == claims


async def test_a_beat_that_failed_is_tried_again_by_who_asks(
    beating: Heartbeat, row: Rows
) -> None:
    await beating.ensure_row()
    row.error = OperationalError("read only")
    async with asyncio.timeout(PATIENCE_S):
        while not beating._failed:
            await asyncio.sleep(0.001)
    beating.stop()
    with pytest.raises(Unavailable):
        await beating.confirm_writable()
    row.error, renewed = None, row.renewed
    await beating.confirm_writable()
    await beating.confirm_writable()
    assert row.renewed == renewed + 1


async def test_after_a_beat_that_was_late_it_is_not_steady(
    beating: Heartbeat, row: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "LATE", 60.0)
    monkeypatch.setattr(heartbeat, "STEADY", 0.1)
    await beating.ensure_row()
    async with asyncio.timeout(PATIENCE_S):
        while not beating.is_steady:
            await asyncio.sleep(0.001)
    row.error = DatabaseError("gone")
    await asyncio.sleep(0.05)
    monkeypatch.setattr(heartbeat, "LATE", 0.02)
    seen = [beating.is_steady]
    monkeypatch.setattr(heartbeat, "STEADY", 60)
    row.error, renewed = None, row.renewed
    async with asyncio.timeout(PATIENCE_S):
        while row.renewed == renewed:
            await asyncio.sleep(0.001)
    assert [*seen, beating.is_steady] == [False, False]


async def test_after_a_pause_it_says_so_before_it_checks(
    beating: Heartbeat, row: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may have given a process up that stood still."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT", 60.0)
    await beating.ensure_row()
    await writer.run(row.remove)
    monkeypatch.setattr(heartbeat, "TRUSTED", -1.0)
    await beating.ensure_row()
    assert await writer.run(is_there, row)


async def test_a_report_that_cannot_be_stored_is_left_out(
    row: Rows, gate: Trusting, caplog: pytest.LogCaptureFixture
) -> None:
    told = [Report(code="a\0b")]
    loop = asyncio.get_running_loop()
    made = Heartbeat(loop, row, gate, lambda _: None, row.beaten, lambda: told[0])
    try:
        await made._renew_row()
        await made._renew_row()
        stored = await writer.run(Worker.objects.get, pk=row.id)
        assert stored.report == Report().as_text()
        assert len(gate.until) == 2
        assert caplog.messages == [
            "The status report of this process cannot be stored."
        ]
        told[0] = Report(code="c0de")
        await made._renew_row()
        stored = await writer.run(Worker.objects.get, pk=row.id)
        assert stored.report_of_process().code == "c0de"
    finally:
        await made.end()
