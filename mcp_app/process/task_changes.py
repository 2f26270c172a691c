"""Tells waiting requests and streams of this process about changes of tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from django.db import Error as DatabaseError

from mcp_app.pools.batching import Batches
from mcp_app.pools.database import lookups, reader
from mcp_app.process.callers import may_read_task
from mcp_app.protocol.errors import Unavailable
from mcp_app.protocol.tasks import TaskRecord
from mcp_app.streams import tasks as rows
from mcp_app.streams.listeners import Listener

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process

LOOK_S: Final = 5.0
"""Seconds after which a waiting request reads its task again in any case."""


class TaskListener(Listener, Protocol):
    """A stream that is told of tasks."""

    def tell_task(self, record: TaskRecord) -> None:
        """Write that a task has changed."""


class TaskChanges:
    """The waiters and streams of a process; used on its loop only."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._waiters: dict[int, set[asyncio.Event]] = {}
        self._listeners: dict[TaskListener, dict[int, int]] = {}
        """The tasks that each stream hears of, with the time of their last state."""
        self._lookups = Batches(lookups, rows.load_tasks)

    def apply(self, keys: Collection[int] | None) -> None:
        """Wake requests and tell streams that watch these tasks, None for all."""
        for key in list(self._waiters) if keys is None else keys:
            for event in self._waiters.get(key, ()):
                event.set()
        if self._listeners:
            self._process.spawn_task(self._tell_listeners(keys))

    async def find(self, public_id: str) -> TaskRecord | None:
        # PostgreSQL refuses NUL, and the statement has the ids of other requests, too.
        if "\0" in public_id:
            return None
        return await self._lookups.load_value(public_id)

    async def wait(self, record: TaskRecord, seconds: float) -> TaskRecord | None:
        event = asyncio.Event()
        waiters = self._waiters.setdefault(record.pk, set())
        waiters.add(event)
        until = time.monotonic() + seconds
        try:
            while True:
                later = await self.find(record.public_id)
                remaining_s = until - time.monotonic()
                if later is None or later != record or remaining_s <= 0:
                    return later
                try:
                    async with asyncio.timeout(min(remaining_s, LOOK_S)):
                        await event.wait()
                except TimeoutError:
                    continue
                finally:
                    event.clear()
        finally:
            waiters.discard(event)
            if not waiters:
                self._waiters.pop(record.pk, None)

    @contextmanager
    def listen(
        self, listener: TaskListener, records: Sequence[TaskRecord]
    ) -> Iterator[None]:
        """Tell a stream of each change of these tasks, until the block ends."""
        if not records:
            yield
            return
        self._listeners[listener] = {record.pk: record.updated_ms for record in records}
        # A task may have changed since it was read.
        self._process.spawn_task(self._tell_listeners(None))
        try:
            yield
        finally:
            del self._listeners[listener]

    async def _tell_listeners(self, keys: Collection[int] | None) -> None:
        """Tell streams of these tasks, None for all, as far as they have changed."""
        all_keys = set[int]().union(*self._listeners.values())
        task_keys = all_keys if keys is None else all_keys.intersection(keys)
        if not task_keys:
            return
        try:
            records = await reader.run(rows.load_changed, sorted(task_keys))
        except (DatabaseError, Unavailable):
            # The next change tells of it.
            return
        for listener, times in list(self._listeners.items()):
            for key in times.keys() & records.keys():
                record = records[key]
                if record.updated_ms == times[key]:
                    continue
                times[key] = record.updated_ms
                if await may_read_task(self._process, listener, record):
                    listener.tell_task(record)
