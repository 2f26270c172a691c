"""A thread for what takes the loop too long: large bodies are read and checked there.

It is one for the whole process.  Most of that work holds the interpreter's lock, and
the loop waits for each thread that wants it: with six of them, 16 bodies of 4 MiB at
once held the loop for seconds, with one for a tenth of that, and took no longer.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar

Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")


class LargeWork:
    """Runs functions in its thread, one after another."""

    def __init__(self) -> None:
        self._begin()
        # A forked child has none of its parent's threads.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._thread = ThreadPoolExecutor(1, "mcp-large")

    async def run(
        self,
        function: Callable[Arguments, Value],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Value:
        """Run a function, and raise here what it raises."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        work = partial(context.run, _run, partial(function, *arguments, **named))
        return await loop.run_in_executor(self._thread, work)


def _run(function: Callable[[], Value]) -> Value:
    with _without_collections():
        return function()


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
