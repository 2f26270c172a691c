"""The loop of a process that is served by threads."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Final

import pytest

from mcp_app.process.background import Background, Unsuitable
from mcp_app.process.current import process, running_process
from mcp_app.process.runtime import Process

PATIENCE_S: Final = 60


@pytest.fixture
def background() -> Background:
    return Background()


async def where() -> threading.Thread:
    await asyncio.sleep(0)
    return threading.current_thread()


async def fails() -> None:
    raise KeyError("no")


def test_a_coroutine_runs_in_the_thread_of_the_loop(background: Background) -> None:
    thread = background.run_on_loop(where)
    assert thread is background.run_on_loop(where)
    assert thread is not threading.current_thread()
    assert (thread.name, thread.daemon) == ("mcp-loop", True)
    with pytest.raises(KeyError, match="no"):
        background.run_on_loop(fails)


def test_many_threads_wait_side_by_side(background: Background) -> None:
    together = asyncio.Barrier(8)

    async def meet(number: int) -> int:
        async with asyncio.timeout(PATIENCE_S):
            await together.wait()
        return number

    with ThreadPoolExecutor(8) as threads:
        # They begin one loop.
        loops = set(threads.map(lambda _: background.run_on_loop(where), range(64)))
        assert len(loops) == 1
        found = threads.map(
            lambda number: background.run_on_loop(partial(meet, number)), range(8)
        )
        assert list(found) == list(range(8))


def test_a_fork_has_a_loop_of_its_own(background: Background) -> None:
    async def pid() -> int:
        return os.getpid()

    assert background.run_on_loop(pid) == os.getpid()
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE_S)
        os._exit(0 if background.run_on_loop(pid) == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_each_loop_keeps_its_process() -> None:
    loops = Background(), Background()

    async def asked() -> Process:
        return process()

    async def closed() -> None:
        process().close()

    try:
        found = [each.run_on_loop(asked) for each in loops * 3]
        assert found[0] is found[2] is found[4]
        assert found[1] is found[3] is found[5]
        assert found[0] is not found[1]
        assert [running_process(each.loop) for each in found] == found
    finally:
        for each in loops:
            each.run_on_loop(closed)
    assert running_process(found[0].loop) is None


def test_greenlets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkey = SimpleNamespace(is_module_patched=lambda name: False)
    monkeypatch.setitem(sys.modules, "gevent.monkey", monkey)
    Background().run_on_loop(where)
    monkey.is_module_patched = lambda name: True
    with pytest.raises(Unsuitable, match="gevent"):
        Background().run_on_loop(where)
