"""Large work: one after another in one thread, and without garbage collections."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from contextvars import ContextVar

import pytest

from mcp_app.pools.large_work import LargeWork

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
    each = [work.run(run, number, plus=1) for number in range(5)]
    done = await asyncio.gather(*each)
    assert [number for number, *_ in done] == [1, 2, 3, 4, 5]
    assert {where for *_, where in done} == {"with the caller"}
    (name,) = {name for _, name, _ in done}
    assert name != threading.current_thread().name
    assert most == 1


async def test_what_it_raises_is_raised() -> None:
    def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await LargeWork().run(fail)
    assert gc.isenabled()


@pytest.mark.parametrize("enabled", [True, False])
async def test_no_collection_begins_meanwhile(enabled: bool) -> None:
    """One that is switched off stays so."""
    work = LargeWork()
    if not enabled:
        gc.disable()
    try:
        assert not await work.run(gc.isenabled)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_a_forked_child_has_a_thread_of_its_own() -> None:
    work = LargeWork()
    assert asyncio.run(work.run(int, "1")) == 1
    child = os.fork()
    if not child:
        os._exit(asyncio.run(work.run(int, "2")))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
