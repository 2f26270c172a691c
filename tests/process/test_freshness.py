"""The gate: who is answered from the caches, and how often the database is asked."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

import pytest
from django.db import DatabaseError, OperationalError

from mcp_app.invalidation.change_reader import ChangeSet
from mcp_app.process import freshness
from mcp_app.process.freshness import FreshnessGate
from mcp_app.protocol.errors import Unavailable

LONG: Final = 60.0
"""No machine is so slow that it is over before a test wants it to be."""


class Database:
    """What is checked: it counts, it may wait, and it may be away."""

    def __init__(self) -> None:
        self.checks = 0
        self.error: Exception | None = None
        self.answers = asyncio.Event()
        self.answers.set()
        self.began = asyncio.Event()
        self.loading = 0.0
        self.loaded: list[int] = []

    async def check(self) -> ChangeSet:
        self.checks += 1
        self.began.set()
        await self.answers.wait()
        if self.error is not None:
            raise self.error
        return ChangeSet(number=self.checks)

    async def load(self, news: ChangeSet) -> None:
        await asyncio.sleep(self.loading)
        self.loaded.append(news.number)


@pytest.fixture
async def database() -> Database:
    return Database()


@pytest.fixture(autouse=True)
def _slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FRESHNESS", "RETRY", "TIMEOUT"):
        monkeypatch.setattr(freshness, name, LONG)


def gone_by(gate: FreshnessGate, seconds: float) -> None:
    """Let it be so much later for a gate."""
    gate._started -= seconds
    gate._failed -= seconds
    gate._reckon()


@pytest.fixture
async def gate(database: Database) -> FreshnessGate:
    """A gate for which others wait."""
    made = FreshnessGate(database.check, database.load)
    made.trust(float("inf"))
    return made


def now() -> float:
    return time.monotonic()


async def test_the_first_request_waits_for_a_check(
    gate: FreshnessGate, database: Database
) -> None:
    arrived = now()
    assert not gate.fresh(arrived)
    await gate.wait_until_fresh(arrived)
    assert gate.fresh(arrived)
    assert database.checks == 1


async def test_requests_that_come_soon_are_served_without_a_statement(
    gate: FreshnessGate, database: Database
) -> None:
    await gate.wait_until_fresh(now())
    for later in (0, 0.1, 0.4):
        assert gate.fresh(now() + later * LONG)
        await gate.wait_until_fresh(now() + later * LONG)
    assert database.checks == 1


async def test_half_of_the_time_later_a_check_is_started_that_nobody_waits_for(
    gate: FreshnessGate, database: Database
) -> None:
    await gate.wait_until_fresh(now())
    database.answers.clear()
    for _ in range(5):
        assert gate.fresh(now() + 0.9 * LONG)
    await asyncio.sleep(0)
    assert database.checks == 1
    gone_by(gate, LONG / 2)
    for _ in range(5):
        gate.fresh(now())
        await asyncio.sleep(0)
    assert database.checks == 2
    database.answers.set()
    await gate.wait_until_fresh(now() + LONG)


async def test_beyond_that_time_requests_wait_for_a_check(
    gate: FreshnessGate, database: Database
) -> None:
    await gate.wait_until_fresh(now())
    assert not gate.fresh(now() + LONG)
    await gate.wait_until_fresh(now() + LONG)
    assert database.checks == 2


async def test_what_was_checked_before_it_became_stale_is_not_enough(
    gate: FreshnessGate, database: Database
) -> None:
    await gate.wait_until_fresh(now())
    assert gate.fresh(now())
    gate.mark_stale()
    assert not gate.fresh(now())
    await gate.wait_until_fresh(now())
    assert gate.fresh(now())


async def test_a_check_that_began_before_it_became_stale_is_not_enough(
    gate: FreshnessGate, database: Database
) -> None:
    database.answers.clear()
    waiting = asyncio.ensure_future(gate.wait_until_fresh(now()))
    await database.began.wait()
    gate.mark_stale()
    database.answers.set()
    await waiting
    assert not gate.fresh(now())
    await gate.wait_until_fresh(now())
    assert gate.fresh(now())


async def test_a_process_for_which_nobody_waits_checks_for_each_request(
    gate: FreshnessGate, database: Database
) -> None:
    gate.trust(now())
    for count in (1, 2, 3):
        arrived = now()
        assert not gate.fresh(arrived)
        await gate.wait_until_fresh(arrived)
        assert database.checks >= count
    gate.trust(float("inf"))
    assert gate.fresh(now())


async def test_a_fault_in_a_check_that_nobody_waits_for_is_logged(
    gate: FreshnessGate, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    database.error = LookupError("a fault of ours")
    with caplog.at_level(logging.ERROR, "mcp_app.process"):
        gate.refresh()
        async with asyncio.timeout(60):
            while "A check of the database for changes raised" not in caplog.text:
                await asyncio.sleep(0)


async def test_requests_that_come_together_share_a_check(
    gate: FreshnessGate, database: Database
) -> None:
    database.answers.clear()
    waiting = [asyncio.ensure_future(gate.wait_until_fresh(now())) for _ in range(50)]
    await database.began.wait()
    assert not any(each.done() for each in waiting)
    database.answers.set()
    await asyncio.gather(*waiting)
    assert database.checks == 1


async def test_a_slow_check_serves_those_who_came_before_it_began(
    gate: FreshnessGate, database: Database
) -> None:
    arrived = now()
    database.answers.clear()
    waiting = asyncio.ensure_future(gate.wait_until_fresh(arrived))
    await database.began.wait()
    await asyncio.sleep(0.05)
    database.answers.set()
    await waiting
    assert database.checks == 1


async def test_looking_wants_a_check_from_now_on(
    gate: FreshnessGate, database: Database
) -> None:
    await gate.wait_until_fresh(now())
    await gate.wait_for_check()
    assert database.checks == 2


async def test_looking_while_a_check_runs_begins_another(
    gate: FreshnessGate, database: Database
) -> None:
    database.answers.clear()
    waiting = asyncio.ensure_future(gate.wait_until_fresh(now()))
    await database.began.wait()
    looking = asyncio.ensure_future(gate.wait_for_check())
    await asyncio.sleep(0)
    database.answers.set()
    await asyncio.gather(waiting, looking)
    assert database.checks == 2


@pytest.mark.parametrize(
    "error",
    [OperationalError("gone"), DatabaseError("no table"), Unavailable("gone")],
)
async def test_a_database_that_is_away(
    gate: FreshnessGate,
    database: Database,
    error: Exception,
    caplog: pytest.LogCaptureFixture,
) -> None:
    database.error = error
    with (
        caplog.at_level(logging.WARNING, "mcp_app.process"),
        pytest.raises(Unavailable) as raised,
    ):
        await gate.wait_until_fresh(now())
    assert raised.value.http_status == 503
    assert 5 <= int(raised.value.headers["Retry-After"]) <= 15
    (record,) = caplog.records
    assert "A check of the database for changes failed" in record.message


async def test_the_log_names_the_cause(
    gate: FreshnessGate, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    database.error = Unavailable("The database cannot be reached.")
    database.error.__cause__ = OperationalError("connection refused")
    with caplog.at_level(logging.WARNING), pytest.raises(Unavailable):
        await gate.wait_until_fresh(now())
    assert "connection refused" in caplog.text


async def test_an_outage_is_not_asked_about_by_every_request(
    gate: FreshnessGate, database: Database
) -> None:
    database.error = OperationalError("gone")
    for _ in range(20):
        with pytest.raises(Unavailable):
            await gate.wait_until_fresh(now())
    assert database.checks == 1
    gone_by(gate, LONG)
    with pytest.raises(Unavailable):
        await gate.wait_until_fresh(now())
    assert database.checks == 2


async def test_recovery(gate: FreshnessGate, database: Database) -> None:
    database.error = OperationalError("gone")
    with pytest.raises(Unavailable):
        await gate.wait_until_fresh(now())
    database.error = None
    gone_by(gate, LONG)
    await gate.wait_until_fresh(now())
    assert database.checks == 2


async def test_all_who_wait_for_a_check_that_fails_are_refused(
    gate: FreshnessGate, database: Database
) -> None:
    database.error = OperationalError("gone")
    database.answers.clear()
    waiting = [asyncio.ensure_future(gate.wait_until_fresh(now())) for _ in range(5)]
    await database.began.wait()
    database.answers.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in found] == [Unavailable] * 5
    assert database.checks == 1


async def test_a_check_that_fails_refuses_nobody_who_waits_for_the_next(
    database: Database,
) -> None:
    """The first of them starts it, and the others join it."""

    async def first_fails() -> ChangeSet:
        news = await database.check()
        if news.number == 1:
            raise OperationalError("gone")
        return news

    gate = FreshnessGate(first_fails, database.load)
    gate.trust(float("inf"))
    database.answers.clear()
    first = asyncio.ensure_future(gate.wait_until_fresh(now()))
    await database.began.wait()
    later = [asyncio.ensure_future(gate.wait_for_check()) for _ in range(3)]
    await asyncio.sleep(0)
    database.answers.set()
    found = await asyncio.gather(first, *later, return_exceptions=True)
    assert [type(each) for each in found] == [Unavailable, *[type(None)] * 3]
    assert database.checks == 2


async def test_a_check_that_hangs_is_given_up(
    gate: FreshnessGate, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "TIMEOUT", 0.02)
    database.answers.clear()
    with pytest.raises(Unavailable):
        await gate.wait_until_fresh(now())


async def test_what_hangs_is_left_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "TIMEOUT", 0.02)
    given_up: list[bool] = []
    gate = FreshnessGate(database.check, database.load, lambda: given_up.append(True))
    database.answers.clear()
    with pytest.raises(Unavailable):
        await gate.wait_until_fresh(now())
    assert given_up == [True]
    database.error = OperationalError("gone")
    database.answers.set()
    with pytest.raises(Unavailable):
        await gate.wait_until_fresh(now() + 1)
    assert given_up == [True]


async def test_what_takes_long_to_load_is_waited_for(
    gate: FreshnessGate, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large catalog makes requests slow; they are not refused."""
    monkeypatch.setattr(freshness, "TIMEOUT", 0.02)
    database.loading = 0.1
    await gate.wait_until_fresh(now())
    assert database.loaded == [1]


async def test_a_client_that_leaves_does_not_end_the_check_of_others(
    gate: FreshnessGate, database: Database
) -> None:
    database.answers.clear()
    leaves = asyncio.ensure_future(gate.wait_until_fresh(now()))
    stays = asyncio.ensure_future(gate.wait_until_fresh(now()))
    await database.began.wait()
    leaves.cancel()
    await asyncio.sleep(0)
    database.answers.set()
    await stays
    assert database.checks == 1


async def test_what_is_no_outage_is_told_as_it_is(
    gate: FreshnessGate, database: Database
) -> None:
    database.error = LookupError("a fault of ours")
    with pytest.raises(LookupError):
        await gate.wait_until_fresh(now())
