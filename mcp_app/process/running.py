"""Running calls: registered, counted and ended, on the loop and in threads."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias

from mcp_app.catalog.runnable import QUICK_S
from mcp_app.server.call import look_after
from mcp_app.server.exchange import Exchange
from mcp_app.streams.open_session import OpenSession

LASTING_AFTER = 0.005
"""Seconds after which a call gets a timer for its time limit and its client is watched.
Most calls are over by then."""

HttpAnswer: TypeAlias = tuple[int, bytes]
Work: TypeAlias = Coroutine[Any, Any, HttpAnswer]


class Waiting(Protocol):
    """The receiver of a request's answer."""

    def lasting(self) -> None:
        """Called when the call has run for `LASTING_AFTER`."""

    def beat(self) -> None:
        """Called when a heartbeat is due."""

    def finished(self, task: asyncio.Task[HttpAnswer]) -> None:
        """Called when the task of the call is done or was cancelled."""


if sys.version_info >= (3, 12):

    def _start_task(
        loop: asyncio.AbstractEventLoop, work: Work
    ) -> asyncio.Task[HttpAnswer]:
        if loop.get_task_factory() is not None:
            # The site makes its tasks itself, perhaps to watch them.
            return loop.create_task(work)
        return asyncio.Task(work, loop=loop, eager_start=True)

else:
    # User code may ask for its task, and so it has one before it begins.

    def _start_task(
        loop: asyncio.AbstractEventLoop, work: Work
    ) -> asyncio.Task[HttpAnswer]:
        return loop.create_task(work)


class CallsInThreads:
    """The calls that threads of requests run (WSGI), and whose they are."""

    def __init__(self) -> None:
        self.recognition = threading.RLock()
        """Held by a thread that finds out whether it may run a call."""
        self._lock = threading.Lock()
        self._calls: dict[Exchange, None] = {}
        self._owned: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Exchange]:
        with self._lock:
            return iter(tuple(self._calls))

    def call_count_of(self, owner: str) -> int:
        return self._owned.get(owner, 0)

    def doubt_slow(self) -> None:
        """Mark functions as slow whose calls take long here, so that no more start."""
        now = time.monotonic()
        for each in self:
            if now - each.began < QUICK_S:
                # In order of start: all that follow are younger.
                return
            if each.entry is not None:
                each.entry.runnable.pace.note_duration(QUICK_S)

    def begin_call(self, exchange: Exchange) -> None:
        owner = exchange.principal.owner or exchange.person
        exchange.began = time.monotonic()
        with self._lock:
            self._calls[exchange] = None
            self._owned[owner] += 1

    def end_call(self, exchange: Exchange) -> None:
        owner = exchange.principal.owner or exchange.person
        with self._lock:
            del self._calls[exchange]
            self._owned[owner] -= 1
            if not self._owned[owner]:
                del self._owned[owner]


class RunningCalls:
    """Runs requests, in tasks of their own or in the caller's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.in_threads = CallsInThreads()
        self._young: dict[Exchange, Waiting] = {}
        self._lasting: dict[Exchange, Waiting] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._owned: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._lasting) + len(self.in_threads)

    def __iter__(self) -> Iterator[Exchange]:
        return iter((*self._lasting, *self._young, *self.in_threads))

    def call_count_of(self, owner: str) -> int:
        return self._owned.get(owner, 0) + self.in_threads.call_count_of(owner)

    def start_call(self, exchange: Exchange, work: Work, waiting: Waiting) -> None:
        """Run a request in a task that outlives the client's connection."""
        task = self._loop.create_task(work)
        self.begin_call(exchange, waiting, task)
        task.add_done_callback(partial(self._finish_call, exchange, waiting))

    def start_at_once(self, exchange: Exchange, work: Work, waiting: Waiting) -> None:
        """Run a request as `start_call` does, but begin it here (Python 3.12)."""
        self.begin_call(exchange, waiting, None)
        task = _start_task(self._loop, work)
        if task.done():
            self._finish_call(exchange, waiting, task)
            return
        exchange.task = task
        if exchange.end is not None:
            # It was ended while it began.
            task.cancel()
        task.add_done_callback(partial(self._finish_call, exchange, waiting))

    @contextmanager
    def expect_call(self, exchange: Exchange, session: OpenSession) -> Iterator[None]:
        """Count a session's request while its row is written; it can be ended."""
        running, owner = session.running, exchange.principal.owner or exchange.person
        first = running.setdefault(exchange.request_id, exchange)
        self._add_owned(owner)
        try:
            yield
        finally:
            self._remove_owned(owner)
            if first is exchange:
                running.pop(exchange.request_id, None)

    def begin_call(
        self, exchange: Exchange, waiting: Waiting, task: asyncio.Task[Any] | None
    ) -> None:
        """Register a request; `task` runs it, None if that is not known yet."""
        exchange.task = task
        if exchange.end is not None and task is not None:
            # It was ended while its row was written.
            task.cancel()
        self._young[exchange] = waiting
        exchange.began = self._loop.time()
        if exchange.session is not None:
            exchange.session.running[exchange.request_id] = exchange
        if owner := exchange.principal.owner or exchange.person:
            self._add_owned(owner)
        if self._timer is None:
            self._timer = self._loop.call_later(LASTING_AFTER, self._find_lasting)

    def beat(self) -> None:
        for waiting in tuple(self._lasting.values()):
            waiting.beat()

    def end_call(self, exchange: Exchange) -> None:
        # Otherwise the call is a reference cycle, left to the garbage collector.
        exchange.task = None
        if self._young.pop(exchange, None) is None:
            del self._lasting[exchange]
        if owner := exchange.principal.owner or exchange.person:
            self._remove_owned(owner)
        if exchange.session is not None:
            exchange.session.running.pop(exchange.request_id, None)

    def _add_owned(self, owner: str) -> None:
        self._owned[owner] = self._owned.get(owner, 0) + 1

    def _remove_owned(self, owner: str) -> None:
        left = self._owned.pop(owner) - 1
        if left:
            self._owned[owner] = left

    def _finish_call(
        self, exchange: Exchange, waiting: Waiting, task: asyncio.Task[HttpAnswer]
    ) -> None:
        self.end_call(exchange)
        waiting.finished(task)

    def _find_lasting(self) -> None:
        self._timer = None
        now = self._loop.time()
        try:
            # They are in order of start.
            for exchange, waiting in tuple(self._young.items()):
                if now - exchange.began < LASTING_AFTER:
                    break
                del self._young[exchange]
                self._lasting[exchange] = waiting
                look_after(exchange)
                waiting.lasting()
        finally:
            if self._young:
                self._timer = self._loop.call_later(LASTING_AFTER, self._find_lasting)
