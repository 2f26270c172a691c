"""One reader and one writer thread per process for the statements of this app.

Neither the loop nor user code's threads ever hold one of these connections.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections, connections

Returned = TypeVar("Returned")
Arguments = ParamSpec("Arguments")


class DatabaseThread:
    """A thread with connections of its own, asked from any loop or thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    async def run(
        self,
        function: Callable[Arguments, Returned],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Returned:
        """Run a function there; what it raises is raised here."""
        loop = asyncio.get_running_loop()
        work = partial(_with_fresh_connections, function, *arguments, **named)
        return await loop.run_in_executor(self._started(), work)

    def close(self) -> None:
        """End the thread and its connections."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.submit(connections.close_all)
            executor.shutdown(wait=False)

    def _started(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, thread_name_prefix=self._name)
            return self._executor


def _with_fresh_connections(
    function: Callable[Arguments, Returned],
    *arguments: Arguments.args,
    **named: Arguments.kwargs,
) -> Returned:
    close_old_connections()
    try:
        return function(*arguments, **named)
    finally:
        close_old_connections()


reader = DatabaseThread("mcp-reader")
writer = DatabaseThread("mcp-writer")
