"""Threads of our own for statements: one reader, one writer, some that authenticate.

Neither the loop nor user code's threads ever hold one of their connections.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar

from django.db import Error as DatabaseError
from django.db import close_old_connections, connections

from mcp_app.pools.futures import settle
from mcp_app.pools.outages import is_outage
from mcp_app.protocol.errors import Unavailable

Returned = TypeVar("Returned")
Arguments = ParamSpec("Arguments")
Work = Callable[[], None]

RETRY_SECONDS = 5
MOST_LEFT = 3
IDLE_SECONDS = 10.0
"""A connection that is kept is closed when nothing was read for so long."""
QUEUE_SECONDS = 10.0
"""Work that could not begin for so long is refused.

Where each piece before it waits for the database until it may wait no more, the last
of many would wait for all of them.
"""


def unavailable() -> Unavailable:
    """Return the answer to a request that needs the database in an outage."""
    return Unavailable("The database cannot be reached.", retry_after=RETRY_SECONDS)


class DatabaseThreads:
    """Threads with connections of their own, asked from any loop.

    They are daemons: a database that hangs does not keep a process that ends.  Where
    what they do may be done twice, a connection is kept while there is work, whatever
    the site's CONN_MAX_AGE: to connect costs many times what a check does.
    """

    def __init__(self, name: str, size: int = 1, *, repeatable: bool = False) -> None:
        self.size = size
        self.name = name
        self._idle = IDLE_SECONDS if repeatable else None
        self._around = _with_kept_connections if repeatable else _with_connections
        self._begin()
        # A fork has none of its parent's threads.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._started = 0
        self._threads: list[threading.Thread] = []
        self._left: list[threading.Thread] = []

    async def run(
        self,
        function: Callable[Arguments, Returned],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Returned:
        """Run a function there; what it raises is raised here.

        A database that cannot be reached, or that others keep busy, is `Unavailable`.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Returned] = loop.create_future()
        call = partial(contextvars.copy_context().run, function, *arguments, **named)
        self._put(
            partial(
                settle,
                loop.call_soon_threadsafe,
                future,
                partial(_in_time, partial(self._around, call), time.monotonic()),
            )
        )
        try:
            return await future
        except DatabaseError as error:
            if not is_outage(error):
                raise
            raise unavailable() from error

    def close(self) -> None:
        """End the threads and their connections when their work is done."""
        with self._lock:
            for _ in range(self._started):
                self._queue.put(None)
            self._queue = SimpleQueue()
            self._started = 0
            self._threads = []

    def replace(self) -> None:
        """Leave the threads alone with what they do, and go on with others.

        What waits behind a statement that hangs is done by the others; whoever waits
        for that statement waits on.  Each thread that hangs holds a connection, so that
        beyond `MOST_LEFT` of them everybody waits.
        """
        with self._lock:
            self._left = [each for each in self._left if each.is_alive()]
            if len(self._left) + len(self._threads) > MOST_LEFT:
                return
            self._left += self._threads
            self._threads = []
            old, begun = self._queue, self._started
            self._queue, self._started = SimpleQueue(), 0
            with suppress(Empty):
                while True:
                    self._add(old.get_nowait())
            for _ in range(begun):
                old.put(None)

    def _put(self, work: Work) -> None:
        with self._lock:
            self._add(work)

    def _add(self, work: Work | None) -> None:
        """Start a thread if there may be one more, and queue the work; locked."""
        if self._started < self.size:
            self._started += 1
            thread = threading.Thread(
                target=_serve,
                args=(self._queue, self._idle),
                name=self.name,
                daemon=True,
            )
            self._threads.append(thread)
            thread.start()
        self._queue.put(work)


def _serve(queue: SimpleQueue[Work | None], idle: float | None) -> None:
    while (work := _next(queue, idle)) is not None:
        work()
    connections.close_all()


def _next(queue: SimpleQueue[Work | None], idle: float | None) -> Work | None:
    """Wait for work; close the connections where there is none for a while."""
    try:
        return queue.get(timeout=idle)
    except Empty:
        connections.close_all()
        return queue.get()


def _in_time(function: Callable[[], Returned], queued: float) -> Returned:
    if time.monotonic() - queued > QUEUE_SECONDS:
        raise unavailable()
    return function()


def _with_connections(function: Callable[[], Returned]) -> Returned:
    close_old_connections()
    try:
        return function()
    except DatabaseError as error:
        if is_outage(error):
            # One to a server that others have left would answer, and write nothing.
            connections.close_all()
        raise
    finally:
        close_old_connections()


def _with_kept_connections(function: Callable[[], Returned]) -> Returned:
    """Do it; once more on a new connection, where the kept one was cut meanwhile."""
    kept = [each for each in connections.all() if each.connection is not None]
    try:
        return function()
    except Exception as error:
        connections.close_all()
        if not kept or not is_outage(error):
            raise
        return function()


reader = DatabaseThreads("mcp-reader", repeatable=True)
writer = DatabaseThreads("mcp-writer")
log_writer = DatabaseThreads("mcp-log", repeatable=True)
"""Messages to clients wait for no other statement of ours."""
call_writer = DatabaseThreads("mcp-calls", repeatable=True)
"""What is written behind holds nobody up."""
authenticators = DatabaseThreads("mcp-authentication", 4)
"""Authentication never waits for a thread of user code."""
POOLS = (reader, writer, log_writer, call_writer, authenticators)
"""All there are, for whoever counts or closes connections."""
