"""Large work: one after another in one thread, and without garbage collections."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref
from contextvars import ContextVar

import pytest

from mcp_app.pools.large_work import LargeWork
from mcp_app.pools.turns import Owner

ANN = Owner("ann", stranger=False)
BEN = Owner("ben", stranger=False)
MALLORY = Owner("192.0.2.1", stranger=True)

here: ContextVar[str] = ContextVar("here", default="nowhere")


async def test_it_is_done_in_one_thread_one_after_another() -> None:
    work, running, most = LargeWork(), 0, 0

    def run(number: int, *, plus: int = 0) -> tuple[int, str, str]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        threading.Event().wait(0.001)
        running -= 1
        return number + plus, threading.current_thread().name, here.get()

    here.set("with the caller")
    each = [work.run(ANN, run, number, plus=1) for number in range(5)]
    done = await asyncio.gather(*each)
    assert [number for number, *_ in done] == [1, 2, 3, 4, 5]
    assert {where for *_, where in done} == {"with the caller"}
    (name,) = {name for _, name, _ in done}
    assert name != threading.current_thread().name
    assert most == 1


async def _held(work: LargeWork) -> tuple[asyncio.Future[None], threading.Event]:
    """Let the thread work; return what ends when the event is set."""
    begun, go = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert go.wait(60)

    first = asyncio.ensure_future(work.run(ANN, hold))
    assert await asyncio.to_thread(begun.wait, 60)
    return first, go


async def test_one_piece_of_another_person_comes_between() -> None:
    work, done = LargeWork(), list[Owner]()
    first, go = await _held(work)
    owners = [MALLORY, ANN, ANN, ANN, BEN]
    later = [
        asyncio.ensure_future(work.run(each, done.append, each)) for each in owners
    ]
    # They wait in turn as soon as they have begun to.
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(first, *later)
    assert done == [ANN, BEN, ANN, ANN, MALLORY]


async def test_what_was_cancelled_is_not_done_and_holds_nothing() -> None:
    work, done = LargeWork(), list[object]()
    first, go = await _held(work)

    class Body:
        """Something that can be looked at from afar."""

    body = Body()
    seen = weakref.ref(body)
    given_up = asyncio.ensure_future(work.run(ANN, done.append, body))
    last = asyncio.ensure_future(work.run(ANN, done.append, "last"))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait([given_up])
    del body, given_up
    gc.collect()
    assert seen() is None
    go.set()
    await asyncio.gather(first, last)
    assert done == ["last"]


def test_a_child_of_a_process_that_reads_collects_garbage() -> None:
    work = LargeWork()

    def forks() -> int:
        child = os.fork()
        if not child:
            os._exit(not gc.isenabled())
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert asyncio.run(work.run(ANN, forks)) == 0


async def test_what_it_raises_is_raised() -> None:
    def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await LargeWork().run(ANN, fail)
    assert gc.isenabled()


@pytest.mark.parametrize("enabled", [True, False])
async def test_no_collection_begins_meanwhile(enabled: bool) -> None:
    work = LargeWork()
    if not enabled:
        gc.disable()
    try:
        assert not await work.run(ANN, gc.isenabled)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_a_forked_child_has_a_thread_of_its_own() -> None:
    work = LargeWork()
    assert asyncio.run(work.run(ANN, int, "1")) == 1
    child = os.fork()
    if not child:
        os._exit(asyncio.run(work.run(ANN, int, "2")))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
