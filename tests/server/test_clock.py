"""The time of a call."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from mcp_app.server.round_trip import CallClock

LONG: Final = 60.0


class Expiry:
    def __init__(self, seconds: float | None, ago: float = 0.0) -> None:
        loop = asyncio.get_running_loop()
        self.count = 0
        self.clock = CallClock(loop, seconds, self.expired, loop.time() - ago)

    def expired(self) -> None:
        self.count += 1


async def test_it_runs_out_once() -> None:
    expiry = Expiry(0.01)
    expiry.clock.start_timer()
    expiry.clock.start_timer()
    await asyncio.sleep(0.03)
    assert expiry.count == 1
    assert expiry.clock.seconds_left() == 0.0


async def test_it_is_not_looked_at_before_run() -> None:
    expiry = Expiry(0.0, ago=1.0)
    await asyncio.sleep(0.005)
    assert expiry.count == 0
    expiry.clock.start_timer()
    await asyncio.sleep(0.005)
    assert expiry.count == 1


async def test_what_is_left() -> None:
    expiry = Expiry(LONG, ago=50.0)
    left = expiry.clock.seconds_left()
    assert left is not None
    assert 9.0 < left <= 10.0


async def test_no_limit() -> None:
    expiry = Expiry(None)
    expiry.clock.start_timer()
    assert expiry.clock.seconds_left() is None
    with expiry.clock.pause_for_question():
        assert expiry.clock.seconds_left() is None
    await asyncio.sleep(0)
    assert expiry.count == 0


async def test_it_stands_while_anything_is_open() -> None:
    expiry = Expiry(0.02)
    clock = expiry.clock
    clock.start_timer()
    with clock.pause_for_question():
        with clock.pause_for_question():
            left = clock.seconds_left()
            # Whoever comes to look does not start it.
            clock.start_timer()
            await asyncio.sleep(0.03)
        assert clock.seconds_left() == left
        await asyncio.sleep(0.01)
    assert expiry.count == 0
    await asyncio.sleep(0.04)
    assert expiry.count == 1


@pytest.mark.parametrize("began", [False, True])
async def test_a_closed_clock_never_runs_out(began: bool) -> None:
    expiry = Expiry(0.0)
    if began:
        expiry.clock.start_timer()
    expiry.clock.close()
    await asyncio.sleep(0.005)
    assert expiry.count == 0
