"""Requests whose bodies are still arriving: limited in time and in room.

A client that sends half a body and waits would hold its connection for ever, and what
it has sent.  A process that stops would wait, too: servers wait for requests that have
begun.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from mcp_app.pools.turns import NOBODY, Owner

FIRST_SECONDS = 10.0
"""Time for a body that is small or does not come at all."""
BYTES_A_SECOND = 1024
"""A body gets a second more for so many bytes that have come."""
BODY_SECONDS = 60.0
"""Time limit for a complete body."""
LOOK_EVERY = 1.0
AT_ONCE = 8
"""Bodies in pieces that an anonymous caller may send from one address."""

Reader: TypeAlias = "asyncio.Task[Any] | None"


class NoRoom(Exception):
    """Bodies in pieces hold as much as they may together."""


class Uploads:
    """The tasks that read a body, with the times (monotonic) at which they began.

    One timer serves them all, because most bodies are complete at once.  A body that
    comes in pieces also tells of its size (`hold`): together they hold `most` bytes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self._most = most
        self._reading: dict[Reader, float] = {}
        self._given_up: set[Reader] = set()
        self._owners: dict[Reader, Owner] = {}
        self._sizes: dict[Reader, int] = {}
        """Bytes of bodies in pieces; the one whose last piece is oldest is first."""
        self._held = 0
        self._unread: Counter[Owner] = Counter()
        """Bytes of bodies that are complete and wait to be read."""
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
        if self._owners:
            self._owners.pop(task, None)
        if self._given_up:
            self._given_up.discard(task)

    def hold(self, size: int, owner: Owner = NOBODY) -> None:
        """Note how many bytes of a body in pieces the current task has; 0 at its end.

        If that is too much for all together, some are given up: of anonymous callers
        first, else of whoever has the most; and the one whose last piece is oldest.
        Raises `NoRoom` if an anonymous caller has as many bodies in pieces as may be.
        """
        task = asyncio.current_task(self._loop)
        if owner is not NOBODY:
            self._owners[task] = owner
        if size and task not in self._sizes and self._is_crowded(task):
            raise NoRoom
        self._held += size - self._sizes.pop(task, 0)
        if size:
            self._sizes[task] = size
        while self._held > self._most and len(self._sizes) > 1:
            self._give_up(self._surplus())

    def _surplus(self) -> Reader:
        """Return the body that is given up."""
        held: Counter[Owner] = Counter()
        for task, size in self._sizes.items():
            held[self._owner(task)] += size
        some = [each for each in held if each.stranger] or list(held)
        most = max(some, key=held.__getitem__)
        return next(each for each in self._sizes if self._owner(each) == most)

    def _owner(self, task: Reader) -> Owner:
        return self._owners.get(task, NOBODY)

    def _is_crowded(self, task: Reader) -> bool:
        owner = self._owner(task)
        if not owner.stranger or not owner.person:
            return False
        return sum(self._owner(each) == owner for each in self._sizes) >= AT_ONCE

    def hold_in_room(self, size: int) -> None:
        """Do what `hold` does, but give nobody up: raise `NoRoom`."""
        own = self._sizes.get(asyncio.current_task(self._loop), 0)
        if self._held + size - own > self._most:
            raise NoRoom
        self.hold(size)

    @contextmanager
    def unread(self, owner: Owner, size: int) -> Iterator[None]:
        """Count a complete body until it is read.

        Raises `NoRoom` if those of one person, or of all strangers, would be more than
        half of `most`, or those of all people more than `most`.  One body has room.
        """
        own = NOBODY if owner.stranger else owner
        others = self._unread.total() - self._unread[NOBODY]
        if self._unread[own] and (
            self._unread[own] + size > self._most // 2 or others + size > self._most
        ):
            raise NoRoom
        self._unread[own] += size
        try:
            yield
        finally:
            self._unread -= Counter({own: size})

    def give_up(self) -> None:
        """Cancel all tasks that read a body."""
        for task in tuple(self._reading):
            self._give_up(task)

    def gave_up(self, task: Reader) -> bool:
        """Return whether a task was given up, and nobody else has cancelled it."""
        return task in self._given_up and task is not None and task.uncancel() == 0

    def _give_up(self, task: Reader) -> None:
        self._held -= self._sizes.pop(task, 0)
        if task is not None and self._reading.pop(task, None) is not None:
            self._given_up.add(task)
            task.cancel()

    def _look(self) -> None:
        self._timer = None
        now = time.monotonic()
        for task, began in tuple(self._reading.items()):
            if now - began > self._seconds(task):
                self._give_up(task)
        if self._reading:
            self._timer = self._loop.call_later(LOOK_EVERY, self._look)

    def _seconds(self, task: Reader) -> float:
        """Return the time that a body has, by what has come of it."""
        size = self._sizes.get(task, 0)
        return min(FIRST_SECONDS + size / BYTES_A_SECOND, BODY_SECONDS)
