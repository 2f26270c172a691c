"""The process of the running loop: a request or a task starts it, anew after a fork."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from mcp_app.process import lifecycle
from mcp_app.process.lifecycle import install_drain
from mcp_app.process.runtime import Process

_current: Process | None = None
"""The process that `process()` returned last, nearly always the only one."""
_alive: dict[asyncio.AbstractEventLoop, Process] = {}
_lock = threading.Lock()


def _forget_processes() -> None:
    """Start anew in a forked child, which has no threads and another loop."""
    global _current, _lock  # noqa: PLW0603 - one per OS process is what this is
    _current = None
    _alive.clear()
    # Another thread may have held the lock at the fork.
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_processes)


def running_process(loop: asyncio.AbstractEventLoop) -> Process | None:
    """Return the process of a loop, None if it has none; callable from any thread."""
    return _alive.get(loop)


def any_process() -> Process | None:
    """Return a process that serves here, None without one; callable from any thread."""
    alive = (each for each in list(_alive.values()) if not each.stopping)
    return next((each for each in alive if each.loop.is_running()), None)


def process() -> Process:
    """Return the process of the running loop; a fork or a new loop gets its own.

    This avoids `get_running_loop()`, a system call (CPython 3.11): if the loop of the
    last process runs in this thread, it is the running one.
    """
    current = _current
    if (
        current is None
        or current.thread != threading.get_ident()
        or not current.loop.is_running()
    ):
        current = _of_running_loop()
    return current


def _of_running_loop() -> Process:
    global _current  # noqa: PLW0603 - one per OS process is what this is
    current = _alive.get(asyncio.get_running_loop())
    if current is None:
        lifecycle.log_closed_hosts()
        current = begin_process()
        current.offer_places()
        install_drain(current)
    current.serves = True
    _current = current
    return current


def begin_process(create: Callable[[], Process] | None = None) -> Process:
    """Start the process of the running loop; the caller drains and closes it."""
    lifecycle.log_problems()
    with _lock:
        for loop in [each for each in _alive if each.is_closed()]:
            del _alive[loop]
        created = (create or Process)()
        _alive[created.loop] = created
        created.at_close = partial(_forget_closed, created)
    return created


def _forget_closed(closed: Process) -> None:
    global _current  # noqa: PLW0603 - one per OS process is what this is
    if _alive.get(closed.loop) is closed:
        del _alive[closed.loop]
    if _current is closed:
        _current = None


REST_S: Final = 60.0
"""Seconds without a task after which the process and its connections end."""
CLOSING_LOOK_S: Final = 0.05
"""Seconds between looks whether a stopping process has closed."""


async def run_waiting_task(key: int) -> bool:
    """Run a task that waits, in the process of this loop, until its run ends.

    Return False if it does not wait.
    """
    loop = asyncio.get_running_loop()
    while (current := _alive.get(loop)) is not None and current.stopping:
        await asyncio.sleep(CLOSING_LOOK_S)
    current = current or begin_process()
    try:
        is_run = await current.tasks.run_waiting(key)
        # Write the call log now: the queue may kill this process.
        await lifecycle.write_call_log(current.audit)
        return is_run
    finally:
        loop.call_later(REST_S, _rest_if_idle, current, current.tasks.run_count)


def _rest_if_idle(current: Process, run_count: int) -> None:
    idle = current.tasks.run_count == run_count and not len(current.tasks)
    if idle and not current.serves and list(_alive.values()) == [current]:
        current.stopping = True
        current.spawn_task(_end_process(current))


async def _end_process(ending: Process) -> None:
    await ending.drain(0.0)
    ending.close()


async def give_up_task(key: int) -> None:
    """Stop the run of a task; its row is left as if the process had ended."""
    current = _alive.get(asyncio.get_running_loop())
    if current is not None:
        current.tasks.give_up(key)
