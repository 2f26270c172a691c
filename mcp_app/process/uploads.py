"""Requests whose bodies are still arriving: limited in time, and cancelled at a stop.

A client that sends half a body and waits would hold its connection for ever.  A process
that stops would wait, too: servers wait for requests that have begun.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypeAlias

BODY_SECONDS = 60.0
"""Time limit for a complete body."""
LOOK_EVERY = 5.0

Reader: TypeAlias = "asyncio.Task[Any] | None"


class Uploads:
    """The tasks that read a body, with the times (monotonic) at which they began.

    One timer serves them all, because most bodies are complete at once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._reading: dict[Reader, float] = {}
        self._given_up: set[Reader] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, arrived: float) -> Reader:
        """Register the current task, which starts to read a body; return the task."""
        task = asyncio.current_task(self._loop)
        self._reading[task] = arrived
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_EVERY, self._look)
        return task

    def end(self, task: Reader) -> None:
        """Remove a task that has read its body, or never will."""
        self._reading.pop(task, None)
        if self._given_up:
            self._given_up.discard(task)

    def give_up(self, since: float = float("inf")) -> None:
        """Cancel the tasks that began before `since`; by default all of them."""
        for task, began in tuple(self._reading.items()):
            if began < since and task is not None:
                del self._reading[task]
                self._given_up.add(task)
                task.cancel()

    def gave_up(self, task: Reader) -> bool:
        """Return whether `give_up` cancelled the task, and nobody else did."""
        return task in self._given_up and task is not None and task.uncancel() == 0

    def _look(self) -> None:
        self._timer = None
        self.give_up(time.monotonic() - BODY_SECONDS)
        if self._reading:
            self._timer = self._loop.call_later(LOOK_EVERY, self._look)
