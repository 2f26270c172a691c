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
from mcp_app.server.outcome import Response
from mcp_app.server.run import Run
from mcp_app.streams.open_session import OpenSession

LASTING_AFTER = 0.005
"""Seconds after which a call gets a timer for its time limit and its client is watched.
Most calls are over by then."""

Work: TypeAlias = Coroutine[Any, Any, Response]


class Waiting(Protocol):
    """The receiver of a request's answer."""

    def lasting(self) -> None:
        """Called when the call has run for `LASTING_AFTER`."""

    def beat(self) -> None:
        """Called when a heartbeat is due."""

    def finished(self, task: asyncio.Task[Response]) -> None:
        """Called when the task of the call is done or was cancelled."""


if sys.version_info >= (3, 12):

    def _start_task(
        loop: asyncio.AbstractEventLoop, work: Work
    ) -> asyncio.Task[Response]:
        if loop.get_task_factory() is not None:
            # The site makes its tasks itself, perhaps to watch them.
            return loop.create_task(work)
        return asyncio.Task(work, loop=loop, eager_start=True)

else:
    # User code may ask for its task, and so it has one before it begins.

    def _start_task(
        loop: asyncio.AbstractEventLoop, work: Work
    ) -> asyncio.Task[Response]:
        return loop.create_task(work)


class CallsInThreads:
    """The calls that threads of requests run (WSGI), counted by owner."""

    def __init__(self) -> None:
        self.recognition = threading.RLock()
        """Held by a thread that finds out whether it may run a call."""
        self._lock = threading.Lock()
        self._calls: dict[Run, None] = {}
        self._owned: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Run]:
        with self._lock:
            return iter(tuple(self._calls))

    def call_count_of(self, owner: str) -> int:
        return self._owned.get(owner, 0)

    def doubt_slow(self) -> None:
        """Mark functions with long calls here as slow, so that no more calls start."""
        now = time.monotonic()
        for each in self:
            if now - each.began < QUICK_S:
                # The calls are in order of start: all that follow are younger.
                return
            if each.entry is not None:
                each.entry.runnable.pace.note_duration(QUICK_S)

    def begin_call(self, run: Run) -> None:
        owner = run.principal.owner or run.person
        run.began = time.monotonic()
        with self._lock:
            self._calls[run] = None
            self._owned[owner] += 1

    def end_call(self, run: Run) -> None:
        owner = run.principal.owner or run.person
        with self._lock:
            del self._calls[run]
            self._owned[owner] -= 1
            if not self._owned[owner]:
                del self._owned[owner]


class RunningCalls:
    """Runs requests, in tasks of their own or in the caller's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.in_threads = CallsInThreads()
        self._young: dict[Run, Waiting] = {}
        self._lasting: dict[Run, Waiting] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._owned: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._lasting) + len(self.in_threads)

    def __iter__(self) -> Iterator[Run]:
        return iter((*self._lasting, *self._young, *self.in_threads))

    def call_count_of(self, owner: str) -> int:
        return self._owned.get(owner, 0) + self.in_threads.call_count_of(owner)

    def start_call(self, run: Run, work: Work, waiting: Waiting) -> None:
        """Run a request in a task that outlives the client's connection."""
        task = self._loop.create_task(work)
        self.begin_call(run, waiting, task)
        task.add_done_callback(partial(self._finish_call, run, waiting))

    def start_at_once(self, run: Run, work: Work, waiting: Waiting) -> None:
        """Run a request as `start_call` does, but begin it here (Python 3.12)."""
        self.begin_call(run, waiting, None)
        task = _start_task(self._loop, work)
        if task.done():
            self._finish_call(run, waiting, task)
            return
        run.task = task
        if run.end is not None:
            # It was ended while it began.
            task.cancel()
        task.add_done_callback(partial(self._finish_call, run, waiting))

    @contextmanager
    def expect_call(self, run: Run, session: OpenSession) -> Iterator[None]:
        """Count a session's request while its row is written; it can be ended."""
        running, owner = session.running, run.principal.owner or run.person
        first = running.setdefault(run.request_id, run)
        self._add_owned(owner)
        try:
            yield
        finally:
            self._remove_owned(owner)
            if first is run:
                running.pop(run.request_id, None)

    def begin_call(
        self, run: Run, waiting: Waiting, task: asyncio.Task[Any] | None
    ) -> None:
        """Register a request; `task` runs it, None if that is not known yet."""
        run.task = task
        if run.end is not None and task is not None:
            # It was ended while its row was written.
            task.cancel()
        self._young[run] = waiting
        run.began = self._loop.time()
        if run.session is not None:
            run.session.running[run.request_id] = run
        if owner := run.principal.owner or run.person:
            self._add_owned(owner)
        if self._timer is None:
            self._timer = self._loop.call_later(LASTING_AFTER, self._find_lasting)

    def beat(self) -> None:
        for waiting in tuple(self._lasting.values()):
            waiting.beat()

    def end_call(self, run: Run) -> None:
        # Otherwise the call is a reference cycle, left to the garbage collector.
        run.task = None
        if self._young.pop(run, None) is None:
            del self._lasting[run]
        if owner := run.principal.owner or run.person:
            self._remove_owned(owner)
        if run.session is not None:
            run.session.running.pop(run.request_id, None)

    def _add_owned(self, owner: str) -> None:
        self._owned[owner] = self._owned.get(owner, 0) + 1

    def _remove_owned(self, owner: str) -> None:
        count = self._owned.pop(owner) - 1
        if count:
            self._owned[owner] = count

    def _finish_call(
        self, run: Run, waiting: Waiting, task: asyncio.Task[Response]
    ) -> None:
        self.end_call(run)
        waiting.finished(task)

    def _find_lasting(self) -> None:
        self._timer = None
        now = self._loop.time()
        try:
            # The calls are in order of start.
            for run, waiting in tuple(self._young.items()):
                if now - run.began < LASTING_AFTER:
                    break
                del self._young[run]
                self._lasting[run] = waiting
                look_after(run)
                waiting.lasting()
        finally:
            if self._young:
                self._timer = self._loop.call_later(LASTING_AFTER, self._find_lasting)
