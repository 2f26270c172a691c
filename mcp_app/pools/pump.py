"""Work of a loop for the thread that waits for the loop.

A test's rows are in a transaction that is not committed, so only the connection of the
test's own thread sees them.  The test client therefore runs everything that needs the
database there: `PUMPS` says for which loops.  So does a command that is called within a
transaction.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, ParamSpec, TypeVar

from asgiref.sync import SyncToAsync
from django.db import connections

from mcp_app.pools.loop_thread import outcome_of

Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")


class Pump(Executor):
    """A queue of functions that a waiting thread works off, in their order."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def submit(
        self,
        function: Callable[Arguments, Value],
        /,
        *arguments: Arguments.args,
        **keywords: Arguments.kwargs,
    ) -> Future[Value]:
        """Queue a function; it runs with the context variables of the caller."""
        future: Future[Value] = Future()
        call = partial(contextvars.copy_context().run, function, *arguments, **keywords)
        self._queue.put(partial(_settle_future, future, call))
        return future

    async def run(self, function: Callable[[], Value]) -> Value:
        """Run a function in the waiting thread, and raise here what it raises."""
        return await asyncio.wrap_future(self.submit(function))

    async def run_uncounted(self, function: Callable[[], Value]) -> Value:
        """Run work of our own; a test does not count its statements."""
        return await self.run(partial(_call_uncounted, function))

    def wait_for(self, future: Future[Value]) -> Value:
        """Work off the queue until a future is done; return its result."""
        # None only wakes the loop below.
        future.add_done_callback(lambda _: self._queue.put(None))
        while not future.done():
            work = self._queue.get()
            if work is not None:
                _run_and_forget_loop(work)
        return future.result()


PUMPS: Final[dict[asyncio.AbstractEventLoop, Pump]] = {}
"""The pumps by the loops whose work they take; usually empty in production."""


def run_pumped(function: Callable[[Pump], Coroutine[Any, Any, Value]]) -> Value:
    """Run a coroutine on a loop of its own, and work off its pump in this thread."""
    pump, future = Pump(), Future[Value]()

    async def run() -> Value:
        loop = asyncio.get_running_loop()
        PUMPS[loop] = pump
        try:
            return await function(pump)
        finally:
            del PUMPS[loop]

    settle = partial(_settle_future, future, lambda: asyncio.run(run()))
    Thread(target=settle, name="mcp-pumped", daemon=True).start()
    return pump.wait_for(future)


def _run_and_forget_loop(work: Callable[[], None]) -> None:
    """Run work, and take from this thread what asgiref notes there of the loop.

    Otherwise a later `async_to_sync` in this thread would use the loop, and whatever
    needs the pump there would wait for ever: this thread would not work it off.
    """
    notes = vars(SyncToAsync.threadlocal)
    before = dict(notes)
    try:
        work()
    finally:
        notes.clear()
        notes.update(before)


def _settle_future(future: Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    result, raised = outcome_of(function)
    if raised is None:
        future.set_result(result)
    else:
        future.set_exception(raised)
        if isinstance(raised.__cause__, KeyboardInterrupt):
            # The person who runs the tests wants to stop, whatever was running.
            raise raised.__cause__


def _call_uncounted(function: Callable[[], Value]) -> Value:
    opened = connections.all(initialized_only=True)
    counting = [each for each in opened if each.force_debug_cursor]
    for each in counting:
        each.force_debug_cursor = False
    try:
        return function()
    finally:
        for each in counting:
            each.force_debug_cursor = True
