"""Callbacks from threads to the loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from mcp_app.pools.loop_thread import Mailbox


class Counting:
    """A loop that counts how often it is woken."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.wakes = 0

    def call_soon_threadsafe(self, function: Any) -> None:
        self.wakes += 1
        self.loop.call_soon_threadsafe(function)


async def test_order_and_one_wake_up() -> None:
    loop = Counting()
    came: list[int] = []
    mailbox = Mailbox(loop)  # type: ignore[arg-type]
    for number in range(5):
        mailbox.post(came.append, number)
    assert (came, loop.wakes) == ([], 1)
    await asyncio.sleep(0)
    assert came == [0, 1, 2, 3, 4]
    mailbox.post(came.append, 5)
    await asyncio.sleep(0)
    assert (came[-1], loop.wakes) == (5, 2)


async def test_many_threads_lose_nothing() -> None:
    came: list[int] = []
    mailbox = Mailbox(asyncio.get_running_loop())

    def post(start: int) -> None:
        for number in range(start, start + 500):
            mailbox.post(came.append, number)

    threads = [threading.Thread(target=post, args=(i * 500,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    while len(came) < 4_000:
        await asyncio.sleep(0)
    assert sorted(came) == list(range(4_000))
    for start in range(0, 4_000, 500):
        own = [number for number in came if start <= number < start + 500]
        assert own == sorted(own)


async def test_one_that_fails_does_not_keep_the_others() -> None:
    loop = asyncio.get_running_loop()
    told: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: told.append(context))
    came: list[str] = []
    mailbox = Mailbox(loop)
    mailbox.post(int, "no number")
    mailbox.post(came.append, "here")
    await asyncio.sleep(0)
    assert came == ["here"]
    (context,) = told
    assert isinstance(context["exception"], ValueError)


def test_a_closed_loop_is_told_to_the_caller() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        Mailbox(loop).post(int)
