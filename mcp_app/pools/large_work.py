"""A thread for what takes the loop too long: large bodies are read and checked there.

One thread serves the whole process.  Most of its work holds the interpreter's lock, and
the loop waits for each thread that wants the lock.  With 16 bodies of 4 MiB at once,
six threads blocked the loop for seconds; one thread blocked it for a tenth of that, and
was as fast.  Owners take turns: each waits for a single piece of another's work.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar

from mcp_app.pools.turns import Owner, Turns

Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")


class LargeWork:
    """Runs functions in its thread, one after another, of each owner in turn."""

    def __init__(self) -> None:
        self._collects = True
        """Whether garbage is collected: not while a piece of work runs."""
        self._reset_state()
        # A forked child has none of its parent's threads.
        os.register_at_fork(after_in_child=self._reset_state)

    def _reset_state(self) -> None:
        self._thread = ThreadPoolExecutor(1, "mcp-large")
        self._lock = threading.Lock()
        self._turns: Turns[list[Callable[[], None]]] = Turns()
        if not self._collects:
            self._collects = True
            gc.enable()

    async def run(
        self,
        owner: Owner,
        function: Callable[Arguments, Value],
        *arguments: Arguments.args,
        **keywords: Arguments.kwargs,
    ) -> Value:
        future: Future[Value] = Future()
        context = contextvars.copy_context()
        run = partial(context.run, partial(function, *arguments, **keywords))
        # If nobody waits any more, this list is emptied before its turn.
        work: list[Callable[[], None]] = [partial(self._run_into_future, future, run)]
        with self._lock:
            self._turns.append_item(owner, work)
        self._thread.submit(self._run_next_piece)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            work.clear()
            raise

    def _run_next_piece(self) -> None:
        with self._lock:
            work = self._turns.take_next_item()
        try:
            run = work.pop()
        except IndexError:
            return
        run()

    def _run_into_future(
        self, future: Future[Value], function: Callable[[], Value]
    ) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            with self._without_collections():
                value = function()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(value)

    @contextmanager
    def _without_collections(self) -> Iterator[None]:
        """Collect no garbage: with so many new objects it would stop every thread."""
        if not gc.isenabled():
            yield
            return
        self._collects = False
        gc.disable()
        try:
            yield
        finally:
            gc.enable()
            self._collects = True


large_work: Final = LargeWork()
