"""The loop of a process that serves without one: a thread, begun by the first request.

Where a site runs under WSGI its requests are handled in threads of the server's; the
process, its timers and user code's coroutines live on this loop.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, Generic, TypeVar, cast

from mcp_app.process.current import running_process

Returned = TypeVar("Returned")

LAST_S: Final = 30.0
"""So long an interpreter that ends waits for calls that run; they are told to end."""


class Unsuitable(RuntimeError):
    """No loop can run beside the server's own threads."""


class Background:
    """One loop in one thread; a fork begins with none."""

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, function: Callable[[], Coroutine[Any, Any, Returned]]) -> Returned:
        """Run a coroutine there and return what it returns; blocks.

        Raises `Unsuitable` under gevent, and what the coroutine raises.
        """
        loop = self._loop or self._started()
        work = _Work(function, loop)
        loop.call_soon_threadsafe(work.begin)
        return work.wait()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                _refuse_greenlets()
                loop = _new_loop()
                thread = threading.Thread(
                    target=loop.run_forever, name="mcp-loop", daemon=True
                )
                thread.start()
                atexit.register(_end, loop)
                self._loop = loop
            return self._loop


class _Work(Generic[Returned]):
    """A coroutine for the loop, and the thread that waits for it.

    `run_coroutine_threadsafe` has two futures for that, and costs twice as much.
    """

    __slots__ = ("_error", "_function", "_loop", "_over", "_returned", "_task")

    def __init__(
        self,
        function: Callable[[], Coroutine[Any, Any, Returned]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._function = function
        self._loop = loop
        self._over = threading.Lock()
        self._over.acquire()
        self._task: asyncio.Task[None] | None = None
        self._returned: Returned | None = None
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Start it; called on the loop."""
        self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        # A callback of the task would come a round of the loop later.
        try:
            self._returned = await self._function()
        except BaseException as error:
            self._error = error
        finally:
            self._over.release()

    def wait(self) -> Returned:
        """Block until it is over; return what it returned, or raise what it raised."""
        self._over.acquire()
        if self._error is not None:
            raise self._error
        return cast("Returned", self._returned)


def _new_loop() -> asyncio.AbstractEventLoop:
    """Make a loop: uvloop's where it is installed, which wakes in half of the time."""
    try:
        import uvloop  # noqa: PLC0415 - a site may have none
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _refuse_greenlets() -> None:
    """Raise where threads are greenlets: a loop would never give way to the others."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        raise Unsuitable(
            "The MCP endpoint cannot be served by workers of gevent: its loop needs"
            " a thread of its own. Use gunicorn's gthread workers, or ASGI."
        )


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """Give running calls their time, and take this process's rows along."""
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
