"""The process of the running loop: started by the first request, anew after a fork."""

from __future__ import annotations

import asyncio
import os
import threading
from functools import partial

from mcp_app.process import startup_log
from mcp_app.process.lifecycle import install_drain
from mcp_app.process.runtime import Process

_current: Process | None = None
"""The one that was requested last: nearly always the only one."""
_alive: dict[asyncio.AbstractEventLoop, Process] = {}
_lock = threading.Lock()


def _forget() -> None:
    """Start anew in a forked child, which has no threads and another loop."""
    global _current, _lock  # noqa: PLW0603 - one per OS process is what this is
    _current = None
    _alive.clear()
    # Another thread may have held the lock at the fork.
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)


def running_process(loop: asyncio.AbstractEventLoop) -> Process | None:
    """Return the process of a loop, None if it has none; callable from any thread."""
    return _alive.get(loop)


def any_process() -> Process | None:
    """Return a process that serves here, None without one; callable from any thread."""
    alive = (each for each in list(_alive.values()) if not each.stopping)
    return next((each for each in alive if each.loop.is_running()), None)


def process() -> Process:
    """Return the process of the running loop; a fork or a new loop gets its own.

    Asking for the running loop is a system call (CPython 3.11).  A loop that runs in
    this thread must be the running one.
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
    """Return the process of this loop after `_current` belonged to another one."""
    global _current  # noqa: PLW0603 - one per OS process is what this is
    current = _alive.get(asyncio.get_running_loop())
    if current is None:
        startup_log.log_closed_hosts()
        current = begin_process()
        install_drain(current)
    _current = current
    return current


def begin_process() -> Process:
    """Start the process of the running loop; the caller drains and closes it."""
    global _current  # noqa: PLW0603 - one per OS process is what this is
    startup_log.log_problems()
    with _lock:
        for loop in [each for each in _alive if each.is_closed()]:
            del _alive[loop]
        _current = made = Process()
        _alive[made.loop] = made
        made.at_close = partial(_let_go, made)
    return made


def _let_go(closed: Process) -> None:
    if _alive.get(closed.loop) is closed:
        del _alive[closed.loop]
