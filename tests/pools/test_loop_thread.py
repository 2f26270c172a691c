"""The thread in which asgiref runs sync code for everything on the loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from mcp_app.pools import loop_thread
from mcp_app.pools.loop_thread import Mailbox, settle_future

PATIENCE_S = 60


async def test_a_function_runs_where_async_code_has_its_statements() -> None:
    found: Future[str] = Future()
    loop_thread.submit(lambda: found.set_result(threading.current_thread().name))
    assert await sync_to_async(found.result)(PATIENCE_S)
    named = await sync_to_async(lambda: threading.current_thread().name)()
    assert found.result() == named


def test_a_fork_has_such_a_thread_of_its_own() -> None:
    done = threading.Event()
    loop_thread.submit(done.set)
    assert done.wait(PATIENCE_S)
    child = os.fork()
    if not child:
        again = threading.Event()
        loop_thread.submit(again.set)
        os._exit(0 if again.wait(PATIENCE_S) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# -- futures ---------------------------------------------------------------------------


async def settled(function: Callable[[], Any]) -> Any:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    await asyncio.to_thread(settle_future, loop.call_soon_threadsafe, future, function)
    return await future


def raising(error: BaseException) -> Callable[[], None]:
    def function() -> None:
        raise error

    return function


async def test_a_result_and_an_exception() -> None:
    assert await settled(lambda: 42) == 42
    error = KeyError("no")
    with pytest.raises(KeyError) as raised:
        await settled(raising(error))
    assert raised.value is error


@pytest.mark.parametrize(
    "error",
    [
        *(StopIteration(3), asyncio.CancelledError(), GeneratorExit()),
        *(SystemExit(3), KeyboardInterrupt()),
    ],
)
async def test_an_exception_that_means_more_to_a_loop(error: BaseException) -> None:
    with pytest.raises(
        RuntimeError, match=f"The function raised {type(error).__name__}"
    ) as raised:
        await settled(raising(error))
    assert raised.value.__cause__ is error


async def test_nothing_is_called_for_nobody() -> None:
    loop, called = asyncio.get_running_loop(), []
    future: asyncio.Future[Any] = loop.create_future()
    future.cancel()
    settle_future(loop.call_soon_threadsafe, future, lambda: called.append(1))
    assert called == []

    def closed(*_: object) -> None:
        raise RuntimeError("Event loop is closed")

    future = loop.create_future()
    settle_future(closed, future, lambda: 42)
    assert not future.done()


async def test_who_leaves_meanwhile_gets_nothing() -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    begun, go = threading.Event(), threading.Event()

    def function() -> int:
        begun.set()
        go.wait(60)
        return 42

    thread = threading.Thread(
        target=settle_future, args=(loop.call_soon_threadsafe, future, function)
    )
    thread.start()
    await asyncio.to_thread(begun.wait, 5)
    future.cancel()
    go.set()
    await asyncio.to_thread(thread.join, 5)
    await asyncio.sleep(0)
    assert future.cancelled()


# -- mailbox ---------------------------------------------------------------------------


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
