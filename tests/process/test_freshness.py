"""The gate: who is answered from the caches, and how often the database is asked."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

import pytest
from django.db import DatabaseError, OperationalError, connection

from mcp_app.invalidation.change_reader import ChangeSet
from mcp_app.pools.database import reader
from mcp_app.process import freshness
from mcp_app.process.freshness import FreshnessGate
from mcp_app.protocol.errors import Unavailable
from tests.serving import until

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


@pytest.fixture(autouse=True)
def _slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FRESHNESS", "RETRY", "TIMEOUT"):
        monkeypatch.setattr(freshness, name, LONG)


class Gate(FreshnessGate):
    """A gate for which others wait, and what it checks."""

    def __init__(self, give_up: Callable[[], None] = lambda: None) -> None:
        self.database = Database()
        super().__init__(self.database.check, self.database.load, give_up)
        self.trust(float("inf"))

    def gone_by(self, seconds: float) -> None:
        self._started -= seconds
        self._failed -= seconds
        self._reckon()

    async def hold(self, count: int = 1) -> list[asyncio.Future[None]]:
        """Let requests wait for a check that has begun; `answers` ends it."""
        self.database.answers.clear()
        self.database.began.clear()
        waiting: list[asyncio.Future[None]] = [
            asyncio.ensure_future(self.wait_until_fresh(now())) for _ in range(count)
        ]
        await self.database.began.wait()
        return waiting

    async def refuse(self) -> Unavailable:
        with pytest.raises(Unavailable) as raised:
            await self.wait_until_fresh(now())
        return raised.value


@pytest.fixture
async def gate() -> Gate:
    return Gate()


def now() -> float:
    return time.monotonic()


async def test_requests_that_come_soon_need_no_statement(gate: Gate) -> None:
    arrived = now()
    assert not gate.fresh(arrived)
    await gate.wait_until_fresh(arrived)
    assert gate.fresh(arrived)
    for later in (0, 0.1, 0.4):
        assert gate.fresh(now() + later * LONG)
        await gate.wait_until_fresh(now() + later * LONG)
    assert gate.database.checks == 1
    # Beyond that time they wait.
    assert not gate.fresh(now() + LONG)
    await gate.wait_until_fresh(now() + LONG)
    assert gate.database.checks == 2


async def test_after_half_of_the_time_a_check_starts_by_itself(gate: Gate) -> None:
    await gate.wait_until_fresh(now())
    gate.database.answers.clear()
    for _ in range(5):
        assert gate.fresh(now() + 0.9 * LONG)
    await asyncio.sleep(0)
    assert gate.database.checks == 1
    gate.gone_by(LONG / 2)
    for _ in range(5):
        gate.fresh(now())
        await asyncio.sleep(0)
    assert gate.database.checks == 2
    gate.database.answers.set()
    await gate.wait_until_fresh(now() + LONG)


async def test_a_check_from_before_it_was_stale_is_not_enough(gate: Gate) -> None:
    # Neither is a check that had begun.
    [waiting] = await gate.hold()
    gate.mark_stale()
    gate.database.answers.set()
    await waiting
    for _ in range(2):
        assert not gate.fresh(now())
        await gate.wait_until_fresh(now())
        assert gate.fresh(now())
        gate.mark_stale()


async def test_where_nobody_waits_each_request_is_checked_for(gate: Gate) -> None:
    gate.trust(now())
    for count in (1, 2, 3):
        arrived = now()
        assert not gate.fresh(arrived)
        await gate.wait_until_fresh(arrived)
        assert gate.database.checks >= count
    gate.trust(float("inf"))
    assert gate.fresh(now())


async def test_a_fault_in_a_check_that_nobody_waits_for_is_logged(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    gate.database.error = LookupError("a fault of ours")
    with caplog.at_level(logging.ERROR, "mcp_app.process"):
        gate.refresh()
        await until(lambda: "A check of the database for changes raised" in caplog.text)
    with pytest.raises(LookupError):
        await gate.wait_until_fresh(now())


async def test_requests_that_come_together_share_a_check(gate: Gate) -> None:
    waiting = await gate.hold(50)
    assert not any(each.done() for each in waiting)
    # It serves them however long it takes.
    await asyncio.sleep(0.05)
    gate.database.answers.set()
    await asyncio.gather(*waiting)
    assert gate.database.checks == 1


async def test_looking_wants_a_check_from_now_on(gate: Gate) -> None:
    await gate.wait_until_fresh(now())
    await gate.wait_for_check()
    assert gate.database.checks == 2
    gate.gone_by(LONG)
    # One that runs already is not enough.
    waiting = await gate.hold()
    looking = asyncio.ensure_future(gate.wait_for_check())
    await asyncio.sleep(0)
    gate.database.answers.set()
    await asyncio.gather(*waiting, looking)
    assert gate.database.checks == 4


@pytest.mark.databases
@pytest.mark.usefixtures("served_rows")
@pytest.mark.parametrize("missing", ["missing FROM mcp_app_server", "1 FROM missing"])
async def test_a_migration_that_is_missing(gate: Gate, missing: str) -> None:
    with pytest.raises((DatabaseError, Unavailable)) as raised:
        await reader.run(lambda: connection.cursor().execute(f"SELECT {missing}"))
    gate.database.error = raised.value
    assert "Run manage.py migrate." in (await gate.refuse()).message


@pytest.mark.parametrize(
    "error",
    [OperationalError("gone"), DatabaseError("no table"), Unavailable("gone")],
)
async def test_a_database_that_is_away(
    gate: Gate, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    gate.database.error = error
    error.__cause__ = OperationalError("connection refused")
    with caplog.at_level(logging.WARNING, "mcp_app.process"):
        refused = await gate.refuse()
    assert refused.http_status == 503
    assert 5 <= int(refused.headers["Retry-After"]) <= 15
    (record,) = caplog.records
    assert "A check of the database for changes failed" in record.message
    assert "connection refused" in record.message


async def test_an_outage_is_not_asked_about_by_every_request(gate: Gate) -> None:
    gate.database.error = OperationalError("gone")
    for _ in range(20):
        await gate.refuse()
    assert gate.database.checks == 1
    gate.gone_by(LONG)
    await gate.refuse()
    assert gate.database.checks == 2
    gate.gone_by(LONG)
    gate.database.error = None
    await gate.wait_until_fresh(now())
    assert gate.database.checks == 3


async def test_all_who_wait_for_a_check_that_fails_are_refused(gate: Gate) -> None:
    gate.database.error = OperationalError("gone")
    waiting = await gate.hold(5)
    gate.database.answers.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in found] == [Unavailable] * 5
    assert gate.database.checks == 1


async def test_a_check_that_fails_refuses_nobody_who_waits_for_the_next(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def first_fails() -> ChangeSet:
        news = await gate.database.check()
        if news.number == 1:
            raise OperationalError("gone")
        return news

    monkeypatch.setattr(gate, "_check", first_fails)
    waiting = await gate.hold()
    waiting += [asyncio.ensure_future(gate.wait_for_check()) for _ in range(3)]
    await asyncio.sleep(0)
    gate.database.answers.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in found] == [Unavailable, *[type(None)] * 3]
    assert gate.database.checks == 2


async def test_a_hanging_check_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "TIMEOUT", 0.02)
    given_up: list[bool] = []
    gate = Gate(lambda: given_up.append(True))
    gate.database.answers.clear()
    await gate.refuse()
    assert given_up == [True]
    gate.database.error = OperationalError("gone")
    gate.database.answers.set()
    with pytest.raises(Unavailable):
        await gate.wait_until_fresh(now() + 1)
    assert given_up == [True]


async def test_slow_loading_is_waited(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large catalog makes requests slow; they are not refused."""
    monkeypatch.setattr(freshness, "TIMEOUT", 0.02)
    gate.database.loading = 0.1
    await gate.wait_until_fresh(now())
    assert gate.database.loaded == [1]


async def test_a_client_that_leaves_ends_no_check_of_others(gate: Gate) -> None:
    leaves, stays = await gate.hold(2)
    leaves.cancel()
    await asyncio.sleep(0)
    gate.database.answers.set()
    await stays
    assert gate.database.checks == 1
