"""Statements that serve many callers at once.

While one runs, further keys wait for the next, which takes all of them.  So strangers
who send a thousand keys a second cost no more statements than one of them.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final, Generic, TypeVar

from mcp_app.pools.database import NEVER, DatabaseThreads
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.protocol.errors import Unavailable

Key = TypeVar("Key")
Value = TypeVar("Value")

KEY_BATCH_SIZE: Final = 500
SPACING_S: Final = 0.05
"""Seconds from one statement to the next if most keys of the first had no value."""
PACE_S: Final = 0.001
"""Seconds between two portions of answers to callers whose keys have no value."""
SHARE: Final = 50
"""A fiftieth of those callers is answered at a time, and two at least."""


class Batches(Generic[Key, Value]):
    """Does the same for many keys in one piece of work; used on a loop."""

    def __init__(
        self, pool: DatabaseThreads, work: Callable[[list[Key]], Mapping[Key, Value]]
    ) -> None:
        """`work` blocks; it returns values by key, without keys that have no value."""
        self._pool = pool
        self._work = work
        self._reset_state()

    def _reset_state(self) -> None:
        self._waiting: dict[Key, asyncio.Future[Value | None]] = {}
        self._without_value: deque[asyncio.Future[Value | None]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._next = NEVER
        """When the next statement may begin (monotonic)."""

    async def load_value(self, key: Key) -> Value | None:
        """Return the value of a key by work that begins now, None if it has none."""
        loop = asyncio.get_running_loop()
        if self._task is not None and self._task.get_loop() is not loop:
            # That loop has ended, and nobody waits there.
            self._reset_state()
        future = self._waiting.get(key)
        if future is None:
            future = self._waiting[key] = loop.create_future()
        if self._task is None or self._task.done():
            self._task = start_background_task(self._run_batches())
            self._task.add_done_callback(self._refuse_waiting)
        # Others may wait for the same key.
        return await asyncio.shield(future)

    def _refuse_waiting(self, task: asyncio.Task[None]) -> None:
        """Refuse the callers that still wait, if the task was cancelled."""
        if task is self._task and task.cancelled():
            waiting, self._waiting = self._waiting, {}
            _refuse_callers(waiting, Unavailable("This process is stopping."))

    async def _run_batches(self) -> None:
        while self._waiting:
            if (pause := self._next - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            batch = dict(islice(self._waiting.items(), KEY_BATCH_SIZE))
            for key in batch:
                del self._waiting[key]
            try:
                await self._run_batch(batch)
            except BaseException:
                _refuse_callers(batch, Unavailable("This process is stopping."))
                raise

    async def _run_batch(
        self, some: Mapping[Key, asyncio.Future[Value | None]]
    ) -> None:
        began = time.monotonic()
        try:
            values = await self._pool.run(self._work, list(some))
        except Exception as error:
            if len(some) == 1 or isinstance(error, Unavailable):
                _refuse_callers(some, error)
                return
            # A single key may be the cause: try each by itself.
            for key, future in some.items():
                await self._run_batch({key: future})
        else:
            if 2 * len(values) < len(some):
                self._next = began + SPACING_S
            self._deliver_values(some, values)

    def _deliver_values(
        self,
        some: Mapping[Key, asyncio.Future[Value | None]],
        values: Mapping[Key, Value],
    ) -> None:
        """Answer callers with a value now, and the others little by little.

        To answer all the others at once would block the loop for milliseconds.  The
        next statement does not wait for them.
        """
        others = self._without_value
        # Otherwise a portion is due already, and answers these callers, too.
        is_idle = not others
        for key, future in some.items():
            if key not in values:
                others.append(future)
            elif not future.done():
                future.set_result(values[key])
        if is_idle:
            _answer_portion(others)


def _answer_portion(others: deque[asyncio.Future[Value | None]]) -> None:
    for _ in range(max(2, len(others) // SHARE)):
        if others and not (future := others.popleft()).done():
            future.set_result(None)
    if others:
        others[0].get_loop().call_later(PACE_S, _answer_portion, others)


def _refuse_callers(
    some: Mapping[Key, asyncio.Future[Value | None]], error: Exception
) -> None:
    for future in some.values():
        if not future.done():
            future.set_exception(error)
            # If the caller has left, nobody else retrieves the error.
            future.exception()
