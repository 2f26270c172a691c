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
from typing import Any, Final, Generic, TypeVar, cast

from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest

from mcp_app.process.current import running_process
from mcp_app.process.runtime import Process

Value = TypeVar("Value")

EXIT_TIMEOUT_S: Final = 30.0
"""Seconds after the drain time that the exit still waits."""


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
        # Held until the coroutine has ended; the thread waits to acquire it.
        self._over = threading.Lock()
        self._over.acquire()
        self._task: asyncio.Task[None] | None = None
        self._returned: Value | None = None
        self._error: BaseException | None = None

    def start_task(self) -> None:
        self._task = self._loop.create_task(self._run_function())

    async def _run_function(self) -> None:
        # A done callback of the task would wake the thread one iteration later.
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
        ended.result(process.limits.drain + EXIT_TIMEOUT_S)
    except TimeoutError:
        return
    loop.call_soon_threadsafe(process.close)


background = Background()


def run_on_loop(
    request: HttpRequest, function: Callable[[], Coroutine[Any, Any, Value]]
) -> Value:
    """Run a coroutine where the endpoint is served, and return its result; blocks.

    Under ASGI that is the loop of the server, under WSGI the one beside it.
    """
    if isinstance(request, ASGIRequest):
        return async_to_sync(function)()
    return background.run_on_loop(function)
