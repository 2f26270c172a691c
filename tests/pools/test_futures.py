"""What a thread hands to the future of a loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mcp_app.pools.loop_thread import settle


async def settled(function: Callable[[], Any]) -> Any:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    await asyncio.to_thread(settle, loop.call_soon_threadsafe, future, function)
    return await future


def raising(error: BaseException) -> Callable[[], None]:
    def function() -> None:
        raise error

    return function


async def test_a_result() -> None:
    assert await settled(lambda: 42) == 42


async def test_an_exception() -> None:
    error = KeyError("no")
    with pytest.raises(KeyError) as raised:
        await settled(raising(error))
    assert raised.value is error


@pytest.mark.parametrize(
    "error",
    [
        StopIteration(3),
        asyncio.CancelledError(),
        GeneratorExit(),
        SystemExit(3),
        KeyboardInterrupt(),
    ],
)
async def test_an_exception_that_means_more_to_a_future_or_a_loop(
    error: BaseException,
) -> None:
    with pytest.raises(
        RuntimeError, match=f"The function raised {type(error).__name__}"
    ) as raised:
        await settled(raising(error))
    assert raised.value.__cause__ is error


async def test_nothing_is_called_for_nobody() -> None:
    loop, called = asyncio.get_running_loop(), []
    future: asyncio.Future[Any] = loop.create_future()
    future.cancel()
    settle(loop.call_soon_threadsafe, future, lambda: called.append(1))
    assert called == []


async def test_who_leaves_meanwhile_gets_nothing() -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    begun, go = threading.Event(), threading.Event()

    def function() -> int:
        begun.set()
        go.wait(60)
        return 42

    thread = threading.Thread(
        target=settle, args=(loop.call_soon_threadsafe, future, function)
    )
    thread.start()
    await asyncio.to_thread(begun.wait, 5)
    future.cancel()
    go.set()
    await asyncio.to_thread(thread.join, 5)
    await asyncio.sleep(0)
    assert future.cancelled()


async def test_a_loop_that_is_closed() -> None:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def closed(*_: object) -> None:
        raise RuntimeError("Event loop is closed")

    settle(closed, future, lambda: 42)
    assert not future.done()
