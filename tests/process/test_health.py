"""Whether a process can serve, and what is asked to know it."""

from __future__ import annotations

import asyncio
import logging

import pytest
from django.db import OperationalError

from mcp_app.process import heartbeat
from mcp_app.process.heartbeat import DATABASE, FINE, FRESHNESS, STOPPING, Health
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import Unavailable
from tests.process.outages import away, read_only
from tests.process.test_freshness import Gate


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
