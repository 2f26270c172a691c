"""Sweeping in the background."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Awaitable

import pytest
from django.db import DatabaseError

from mcp_app.conf import Limits
from mcp_app.models import Topic, Worker
from mcp_app.models.expiry import ExpiredRows
from mcp_app.pools.database import writer
from mcp_app.process import heap, janitor
from mcp_app.process.janitor import Janitor
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import Unavailable

pytestmark = pytest.mark.usefixtures("served_rows")


_tasks: set[asyncio.Future[None]] = set()


@pytest.fixture(autouse=True)
def _no_tasks() -> None:
    _tasks.clear()


def spawned(work: Awaitable[None]) -> None:
    _tasks.add(asyncio.ensure_future(work))


def _old() -> None:
    Topic.objects.create(kind="uri", ref="1", version=1, changed_ms=1)
    Worker.objects.create(id="dead", host="h", pid=1, started_ms=1, seen_ms=1)


def old_rows() -> int:
    rows = Topic.objects.filter(changed_ms=1), Worker.objects.filter(seen_ms=1)
    return sum(each.count() for each in rows)


async def test_it_sweeps_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(janitor, "EVERY", 0.01)
    sweeping = Janitor(asyncio.get_running_loop(), Limits(), spawned)
    try:
        for _ in range(2):
            await writer.run(_old)
            async with asyncio.timeout(60):
                while await writer.run(old_rows):
                    await asyncio.sleep(0.005)
    finally:
        sweeping.stop()
    await asyncio.gather(*_tasks)
    await writer.run(_old)
    await asyncio.sleep(0.03)
    assert await writer.run(old_rows) == 2
    await sweeping.remove_expired()
    assert await writer.run(old_rows) == 0


async def test_a_round_waits_for_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, may_end = (threading.Event() for _ in range(3))

    def slow() -> int | None:
        (second if first.is_set() else first).set()
        may_end.wait(60)
        return None

    def all_slow(_: Limits) -> list[ExpiredRows]:
        return [ExpiredRows("rows", int, slow)]

    monkeypatch.setattr(janitor, "EVERY", 0.001)
    monkeypatch.setattr(janitor, "all_expired_rows", all_slow)
    spawns = 0

    def counted(work: Awaitable[None]) -> None:
        nonlocal spawns
        spawns += 1
        spawned(work)

    sweeping = Janitor(asyncio.get_running_loop(), Limits(), counted)
    try:
        await asyncio.to_thread(first.wait, 60)
        # Time for some ten rounds, were they not to wait.
        await asyncio.sleep(0.05)
        assert spawns == 1
        may_end.set()
        await asyncio.to_thread(second.wait, 60)
        assert second.is_set()
    finally:
        may_end.set()
        sweeping.stop()
        await asyncio.gather(*_tasks)


@pytest.mark.parametrize("error", [DatabaseError("gone"), Unavailable("gone")])
async def test_an_outage_is_logged(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def gone() -> int:
        raise error

    def all_gone(_: Limits) -> list[ExpiredRows]:
        return [ExpiredRows("rows", gone, gone)]

    monkeypatch.setattr(janitor, "all_expired_rows", all_gone)
    sweeping = Janitor(asyncio.get_running_loop(), Limits(), spawned)
    with caplog.at_level(logging.WARNING, "mcp_app.process"):
        await sweeping.remove_expired()
    sweeping.stop()
    assert "The janitor could not reach the database" in caplog.text


# -- heap ------------------------------------------------------------------------------


async def test_it_is_frozen_once_the_catalogs_are_loaded(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heap, "_is_frozen", False)
    process.gate.mark_stale()
    before = gc.get_freeze_count()
    await process.gate.wait_for_check()
    assert gc.get_freeze_count() > before
    later = [[] for _ in range(1_000)]  # type: list[list[object]]
    frozen = gc.get_freeze_count()
    process.gate.mark_stale()
    await process.gate.wait_for_check()
    # Another load freezes nothing more: what comes and goes is collected.
    assert gc.get_freeze_count() <= frozen
    assert len(later) == 1_000
