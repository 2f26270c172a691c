"""A thread for what takes the loop too long: large bodies are read and checked there.

It is one for the whole process.  Most of that work holds the interpreter's lock, and
the loop waits for each thread that wants it: with six of them, 16 bodies of 4 MiB at
once held the loop for seconds, with one for a tenth of that, and took no longer.  Its
owners take turns, so that one waits for a single piece of another's work.
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
        self._begin()
        # A forked child has none of its parent's threads.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._thread = ThreadPoolExecutor(1, "mcp-large")
        self._lock = threading.Lock()
        self._turns: Turns[Callable[[], None]] = Turns()

    async def run(
        self,
        owner: Owner,
        function: Callable[Arguments, Value],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Value:
        """Run a function, and raise here what it raises."""
        future: Future[Value] = Future()
        context = contextvars.copy_context()
        work = partial(context.run, partial(function, *arguments, **named))
        with self._lock:
            self._turns.put(owner, partial(_run, future, work))
        self._thread.submit(self._run_next)
        return await asyncio.wrap_future(future)

    def _run_next(self) -> None:
        with self._lock:
            work = self._turns.take()
        work()


def _run(future: Future[Value], function: Callable[[], Value]) -> None:
    """Run a function and settle its future, unless nobody waits for it any more."""
    if not future.set_running_or_notify_cancel():
        return
    with _without_collections():
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Begin no garbage collection within the block, in any thread.

    So many new objects would begin one of all objects that there are, and every thread
    stands still meanwhile.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


large_work: Final = LargeWork()
