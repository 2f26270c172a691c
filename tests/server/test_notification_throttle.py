"""A burst, then a steady rate; the last of what is merged is always told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import pytest

from mcp_app.conf import Limits
from mcp_app.server.exchange import NotificationThrottle

BURST: Final = 3
RATE: Final = 10.0
"""So slow that no machine lets one more through while a burst is offered."""


def limits(rates: bool = True) -> Limits:
    return Limits(rates=rates, progress_burst=BURST, progress_rate=RATE)


def collecting() -> tuple[list[int], Callable[[bytes], None]]:
    """Return a list and a way to send numbers to it."""
    sent: list[int] = []
    return sent, lambda message: sent.append(int(message))


def offer(
    throttle: NotificationThrottle,
    count: int,
    send: Callable[[bytes], None],
    merge: bool,
) -> None:
    for number in range(count):
        throttle.offer(b"%d" % number, send, merge)


async def test_a_burst_is_sent_at_once() -> None:
    sent, send = collecting()
    offer(NotificationThrottle(limits()), BURST, send, True)
    assert sent == [0, 1, 2]


async def test_the_rest_is_merged_into_its_last() -> None:
    sent, send = collecting()
    throttle = NotificationThrottle(limits())
    offer(throttle, 20, send, True)
    assert sent == [0, 1, 2]
    await asyncio.sleep(2 / RATE)
    assert sent == [0, 1, 2, 19]


async def test_the_rest_is_dropped_where_nothing_can_be_merged() -> None:
    sent, send = collecting()
    throttle = NotificationThrottle(limits())
    offer(throttle, 20, send, False)
    await asyncio.sleep(2 / RATE)
    assert sent == [0, 1, 2]
    throttle.flush(send)
    assert sent == [0, 1, 2]


async def test_flush_tells_what_was_held_back() -> None:
    sent, send = collecting()
    throttle = NotificationThrottle(limits())
    offer(throttle, 20, send, True)
    throttle.flush(send)
    throttle.flush(send)
    await asyncio.sleep(2 / RATE)
    assert sent == [0, 1, 2, 19]


async def test_what_is_older_is_never_told_after_what_is_newer() -> None:
    sent, send = collecting()
    throttle = NotificationThrottle(limits())
    offer(throttle, 5, send, True)
    await asyncio.sleep(3 / RATE)
    throttle.offer(b"7", send, True)
    await asyncio.sleep(3 / RATE)
    assert sent == [0, 1, 2, 4, 7]


async def test_the_rate_fills_up_to_a_burst() -> None:
    sent, send = collecting()
    throttle = NotificationThrottle(limits())
    offer(throttle, BURST, send, True)
    await asyncio.sleep(10 / RATE)
    offer(throttle, 10, send, False)
    assert sent == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("merge", [False, True])
async def test_without_rates_everything_is_sent(merge: bool) -> None:
    sent, send = collecting()
    offer(NotificationThrottle(limits(rates=False)), 500, send, merge)
    assert sent == list(range(500))
