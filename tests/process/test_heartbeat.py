"""A process says that it lives, and the gate knows how long that is good for."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable

import pytest
from django.db import DatabaseError, OperationalError

from mcp_app.invalidation.change_reader import ChangeSet
from mcp_app.invalidation.workers import TRUSTED, Report, WorkerRow
from mcp_app.models import Worker
from mcp_app.pools.database import writer
from mcp_app.process import heartbeat
from mcp_app.process.freshness import FreshnessGate
from mcp_app.process.heartbeat import (
    DATABASE,
    FINE,
    FRESHNESS,
    STOPPING,
    Health,
    Heartbeat,
)
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import Unavailable
from tests.process.outages import away, read_only
from tests.process.test_freshness import Gate
from tests.serving import until

pytestmark = pytest.mark.usefixtures("served_rows")


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


class Beating(Heartbeat):
    """The heartbeat of a row, for a gate; work beside it ends with the test."""

    def __init__(self) -> None:
        self.row, self.gate = Rows(), Trusting()
        self.tasks: set[asyncio.Future[None]] = set()
        self.told = Report()
        super().__init__(
            asyncio.get_running_loop(),
            self.row,
            self.gate,
            lambda work: self.tasks.add(asyncio.ensure_future(work)),
            self.row.beaten,
            lambda: self.told,
        )

    async def fail(self, error: Exception) -> None:
        self.row.error = error
        await until(lambda: self._failed)

    async def stored(self) -> Worker:
        return await writer.run(Worker.objects.get, pk=self.row.id)


@pytest.fixture
async def beating(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Beating]:
    monkeypatch.setattr(heartbeat, "HEARTBEAT", 0.01)
    made = Beating()
    yield made
    made.row.error = None
    await made.end()
    await asyncio.gather(*made.tasks)
    await writer.run(made.row.remove)


def is_there(row: Rows) -> bool:
    return Worker.objects.filter(pk=row.id).exists()


async def test_the_row_is_there_before_the_first_check(beating: Beating) -> None:
    began, trusted = time.monotonic(), beating.gate.until
    await beating.ensure_row()
    assert await writer.run(is_there, beating.row)
    assert began + TRUSTED <= trusted[0] <= time.monotonic() + TRUSTED
    renewed = beating.row.renewed
    await beating.ensure_row()
    assert beating.row.renewed == renewed


async def test_it_beats_until_it_ends(beating: Beating) -> None:
    await beating.ensure_row()
    await until(lambda: beating.row.renewed >= 3)
    await beating.end()
    assert not await writer.run(is_there, beating.row)


async def test_a_beat_that_had_not_begun_does_not_bring_the_row_back() -> None:
    late: list[Awaitable[None]] = []
    loop, row = asyncio.get_running_loop(), Rows()
    made = Heartbeat(loop, row, Trusting(), late.append, row.beaten)
    await made.ensure_row()
    made._start_beat()
    await made.end()
    await late[0]
    assert not await writer.run(is_there, row)


async def test_an_outage_is_logged_and_gives_no_trust(
    beating: Beating, caplog: pytest.LogCaptureFixture
) -> None:
    await beating.ensure_row()
    with caplog.at_level(logging.WARNING, "mcp_app.process"):
        await beating.fail(DatabaseError("gone"))
    assert "could not write its heartbeat" in caplog.text
    # What comes after a beat comes after each that succeeds.
    trusted, claims = len(beating.gate.until), beating.row.claims
    await asyncio.sleep(0.05)
    assert (len(beating.gate.until), beating.row.claims) == (trusted, claims)
    beating.row.error = None
    await until(lambda: len(beating.gate.until) > trusted)
    await until(lambda: beating.row.claims > claims)


async def test_a_process_that_cannot_say_it_does_not_begin(beating: Beating) -> None:
    beating.row.error = DatabaseError("gone")
    with pytest.raises(DatabaseError):
        await beating.ensure_row()
    beating.row.error = None
    await beating.ensure_row()
    assert beating.gate.until


async def test_it_is_steady_when_all_beats_came_for_a_while(
    beating: Beating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "LATE", 60.0)
    monkeypatch.setattr(heartbeat, "STEADY", 600.0)
    seen = [beating.is_steady]
    await beating.ensure_row()
    seen.append(beating.is_steady)
    monkeypatch.setattr(heartbeat, "STEADY", 0.2)
    await until(lambda: beating.is_steady and beating.row.claims)
    # One that is late makes it begin anew.
    beating.row.error = DatabaseError("gone")
    await asyncio.sleep(0.05)
    monkeypatch.setattr(heartbeat, "LATE", 0.02)
    seen.append(beating.is_steady)
    monkeypatch.setattr(heartbeat, "STEADY", 60)
    beating.row.error, renewed = None, beating.row.renewed
    await until(lambda: beating.row.renewed > renewed)
    assert [*seen, beating.is_steady] == [False] * 4


async def test_a_beat_that_failed_is_tried_again_by_who_asks(beating: Beating) -> None:
    await beating.ensure_row()
    await beating.fail(OperationalError("read only"))
    beating.stop()
    with pytest.raises(Unavailable):
        await beating.confirm_writable()
    beating.row.error, renewed = None, beating.row.renewed
    await beating.confirm_writable()
    await beating.confirm_writable()
    assert beating.row.renewed == renewed + 1


async def test_after_a_pause_it_says_so_before_it_checks(
    beating: Beating, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may have given a process up that stood still."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT", 60.0)
    await beating.ensure_row()
    await writer.run(beating.row.remove)
    monkeypatch.setattr(heartbeat, "TRUSTED", -1.0)
    await beating.ensure_row()
    assert await writer.run(is_there, beating.row)


async def test_a_report_that_cannot_be_stored_is_left_out(
    beating: Beating, caplog: pytest.LogCaptureFixture
) -> None:
    beating.told = Report(code="a\0b")
    await beating._renew_row()
    await beating._renew_row()
    assert (await beating.stored()).report == Report().as_text()
    assert len(beating.gate.until) == 2
    assert caplog.messages == ["The status report of this process cannot be stored."]
    beating.told = Report(code="c0de")
    await beating._renew_row()
    assert (await beating.stored()).report_of_process().code == "c0de"


# -- health ----------------------------------------------------------------------------


@pytest.fixture
async def gate() -> Gate:
    return Gate()


@pytest.fixture
async def asked(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Health:
    """The health of a process for which others wait; its second lasts."""
    patient(monkeypatch)
    monkeypatch.setattr(heartbeat, "SHARED_S", 600.0)
    return Health(gate, writes)


async def writes() -> None:
    """Be a database that writes."""


def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "PATIENCE_S", 60.0)


@pytest.fixture
def impatient(asked: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment is as good as a second."""
    monkeypatch.setattr(heartbeat, "PATIENCE_S", 0.05)
    monkeypatch.setattr(heartbeat, "SHARED_S", 0.0)


async def test_many_who_ask_are_answered_by_one_look(asked: Health, gate: Gate) -> None:
    gate.database.answers.clear()
    asking = [asyncio.ensure_future(asked.failing_part()) for _ in range(50)]
    await gate.database.began.wait()
    asking.pop().cancel()
    gate.database.answers.set()
    assert await asyncio.gather(*asking) == [FINE] * 49
    gate.database.error = OperationalError("gone")
    assert await asked.failing_part() == FINE
    assert gate.database.checks == 1


async def test_an_outage_is_looked_at_once_a_second(asked: Health, gate: Gate) -> None:
    gate.database.error = OperationalError("gone")
    assert await asked.failing_part() == DATABASE
    gate.database.error = None
    assert await asked.failing_part() == DATABASE
    assert gate.database.checks == 1


async def test_a_database_that_answers_and_is_full(asked: Health, gate: Gate) -> None:
    async def refuses() -> None:
        raise Unavailable("The database is read-only.")

    assert await Health(asked._gate, refuses).failing_part() == DATABASE
    assert gate.database.checks == 1


@pytest.mark.databases
async def test_a_process_whose_database_takes_nothing(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient(monkeypatch)
    monkeypatch.setattr(heartbeat, "SHARED_S", 0.0)
    assert await process.failing_part() == FINE
    with read_only():
        # Until it is to beat, it writes nothing.
        await process.heartbeat._try_to_beat()
        await process.gate.wait_for_check()
        assert await process.failing_part() == DATABASE
    assert await process.failing_part() == FINE


@pytest.mark.usefixtures("impatient")
async def test_a_database_that_says_nothing(
    asked: Health, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.database.answers.clear()
    assert await asked.failing_part() == DATABASE
    gate.database.answers.set()
    patient(monkeypatch)
    assert await asked.failing_part() == FINE


@pytest.mark.usefixtures("impatient")
async def test_what_is_served_is_read_too_slowly(
    asked: Health, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.database.loading = 0.5
    assert await asked.failing_part() == FRESHNESS
    patient(monkeypatch)
    assert await asked.failing_part() == FINE


async def test_what_is_served_cannot_be_read(
    asked: Health, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    gate.database.error = LookupError("a fault of ours")
    with caplog.at_level(logging.ERROR, "mcp_app.process"):
        assert await asked.failing_part() == FRESHNESS
    assert "a fault of ours" in caplog.text


@pytest.mark.databases
async def test_a_process_whose_database_is_away_and_comes_back(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient(monkeypatch)
    monkeypatch.setattr(heartbeat, "SHARED_S", 0.0)
    assert await process.failing_part() == FINE
    with away():
        # Until now it was fresh enough.
        await asyncio.sleep(0.3)
        assert await process.failing_part() == DATABASE
        process.stopping = True
        assert await process.failing_part() == STOPPING
        process.stopping = False
    await asyncio.sleep(0.3)
    assert await process.failing_part() == FINE


async def test_a_process_that_begins_to_stop_meanwhile(process: Process) -> None:
    asking = asyncio.ensure_future(process.failing_part())
    await asyncio.sleep(0)
    process.stopping = True
    assert await asking == STOPPING
