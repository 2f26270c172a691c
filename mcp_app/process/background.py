"""The event loop of a process without one: a thread that the first request starts.

Under WSGI the server handles requests in its own threads; the process, its timers and
the coroutines of user code run on this loop.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Generic, TypeVar, cast

from mcp_app.process import lifecycle
from mcp_app.process.lifecycle import install_drain
from mcp_app.process.runtime import Process

Value = TypeVar("Value")

LAST_S: Final = 30.0
"""Seconds that an exiting interpreter waits for calls beyond the drain time."""


class Unsuitable(RuntimeError):
    """No loop can run beside the server's own threads."""


class Background:
    """One loop in one thread; a forked child starts without it."""

    def __init__(self) -> None:
        self._reset_state()
        os.register_at_fork(after_in_child=self._reset_state)

    def _reset_state(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run_on_loop(self, function: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """Run a coroutine on the loop and return its result; blocks.

        Raises `Unsuitable` under gevent, and what the coroutine raises.
        """
        loop = self._loop or self._ensure_loop()
        work = _Work(function, loop)
        loop.call_soon_threadsafe(work.start_task)
        return work.wait_for_result()

    def loop_process(self) -> Process | None:
        """Return the process of the loop, None before its first request."""
        return None if self._loop is None else running_process(self._loop)

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                _refuse_greenlets()
                loop = _create_loop()
                thread = threading.Thread(
                    target=loop.run_forever, name="mcp-loop", daemon=True
                )
                thread.start()
                atexit.register(_drain_at_exit, loop)
                self._loop = loop
            return self._loop


class _Work(Generic[Value]):
    """A coroutine for the loop, and the thread that waits for it.

    `run_coroutine_threadsafe` uses two futures, and costs twice as much.
    """

    __slots__ = ("_error", "_function", "_loop", "_over", "_returned", "_task")

    def __init__(
        self,
        function: Callable[[], Coroutine[Any, Any, Value]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._function = function
        self._loop = loop
        self._over = threading.Lock()
        self._over.acquire()
        self._task: asyncio.Task[None] | None = None
        self._returned: Value | None = None
        self._error: BaseException | None = None

    def start_task(self) -> None:
        self._task = self._loop.create_task(self._run_function())

    async def _run_function(self) -> None:
        # A callback of the task would run one loop iteration later.
        try:
            self._returned = await self._function()
        except BaseException as error:
            self._error = error
        finally:
            self._over.release()

    def wait_for_result(self) -> Value:
        self._over.acquire()
        if self._error is not None:
            raise self._error
        return cast("Value", self._returned)


def _create_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop; uvloop, if it is installed, wakes in half the time."""
    try:
        import uvloop  # noqa: PLC0415 - a site may have none
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _refuse_greenlets() -> None:
    """Raise if threads are greenlets: the loop would block all the others."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        raise Unsuitable(
            "The MCP endpoint cannot be served by gevent workers, because its event"
            " loop needs a thread of its own. Use gunicorn's gthread workers, or ASGI;"
            " for tasks Celery's prefork or threads pool."
        )


def _drain_at_exit(loop: asyncio.AbstractEventLoop) -> None:
    """Drain the process when the interpreter exits, which also removes its rows."""
    process = running_process(loop)
    if process is None:
        return
    ended = asyncio.run_coroutine_threadsafe(process.drain(), loop)
    try:
        ended.result(process.limits.drain + LAST_S)
    except TimeoutError:
        return
    loop.call_soon_threadsafe(process.close)


background = Background()


# -- current ---------------------------------------------------------------------------
# The process of the running loop: started by the first request, anew after a fork.

_current: Process | None = None
"""The one that was requested last: nearly always the only one."""
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


# -- tasks -----------------------------------------------------------------------------
# The process of a worker of the site's queue: it runs what the queue brings, and rests.

REST_S: Final = 60.0
"""After so long without a task the process ends, and with it its connections."""
CLOSING_LOOK_S: Final = 0.05


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
        # The queue may end this process now, without a word.
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
    """Stop the run of a task, as the end of its process does."""
    current = _alive.get(asyncio.get_running_loop())
    if current is not None:
        current.tasks.give_up(key)
