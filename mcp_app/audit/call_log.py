"""The call log: it collects the calls of this process and writes them in batches.

A request only adds its call to a list.  Once a second, or when there are many, one
transaction writes what has been collected.  During an outage calls are kept; beyond a
limit they are only counted, and get no row.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import deque
from hashlib import blake2b
from typing import Final

from django.db import Error as DatabaseError

from mcp_app.audit.tallies import Tallies, period_start_ms
from mcp_app.audit.writing import (
    CallBatch,
    PendingCalls,
    RefusedBatch,
    is_counted,
    stored_name,
    write,
)
from mcp_app.interface.call_record import CallValues
from mcp_app.models.calls import MINUTE_S
from mcp_app.pools.database import call_writer
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.protocol.errors import Unavailable

logger = logging.getLogger("mcp_app.audit")

EVERY: Final = 1.0
"""Seconds for which calls are collected; a killed process loses as much."""
MOST_ROWS: Final = 2_000
"""The most calls in one batch; when so many wait, they are written at once."""
RETRY_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Seconds between attempts in an outage; the last one repeats."""
WARN_EVERY: Final = 60.0
STRANGERS_ROWS: Final = 5
"""Rows a second for calls of unknown callers for which nothing ran."""
DIGEST_BYTES: Final = 16
NO_ROOM: Final = "The call log has no rows for %d calls so far. They are only counted."
ONLY_COUNTED: Final = (
    "Callers who did not sign in ask for what is not there. Most such calls are only"
    " counted. Calls without a row so far: %d."
)


class CallLog:
    """Takes calls from any thread and writes them later; the rest is for the loop.

    At most `max_calls` wait.  If `strict`, no call is dropped, and each is written at
    once; `wait_until_written` returns when the calls are committed.
    """

    def __init__(
        self,
        writer: str,
        *,
        max_calls: int,
        key: bytes,
        strict: bool,
        strangers_rows: float = math.inf,
    ) -> None:
        """`writer` names the process; `key` has up to 64 bytes.

        At most `strangers_rows` calls of `add_in_vain` get rows in a second.
        """
        self.strict = strict
        self.dropped = 0
        """Calls of this process that were counted but have no row."""
        self._writer = writer
        self._max_calls = max_calls
        self._digest = blake2b(key=key, digest_size=DIGEST_BYTES)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._pending = PendingCalls()
        self._lock = threading.Lock()
        """Held while the pending calls are changed."""
        self._tallies = Tallies()
        # If this many calls wait, `add` also calls `_schedule_writing`; with 0, the
        # first call starts the timer.
        self._room = 0
        self._stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._number = 0
        # Added to the monotonic clock, it gives the time by the database's clock.
        self._clock_ms = time.time_ns() // 1_000_000 - int(time.monotonic() * 1_000)
        self._warned: dict[str, float] = {}
        self._strangers_rows = self._strangers_left = strangers_rows
        self._strangers_second = 0
        self._batched_so_far = 0
        self._written_so_far = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def add(self, record: CallValues) -> None:
        """Take a call; callable from any thread."""
        with self._lock:
            if len(self._pending) < self._room:
                self._pending.add(record)
                return
        if threading.get_ident() == self._thread:
            self._take_on_loop(record)
        else:
            self._loop.call_soon_threadsafe(self._take_on_loop, record)

    def add_in_vain(self, record: CallValues) -> None:
        """Take a stranger's call that ran nothing; above a rate, it is only counted."""
        # The second in which the call ended: its beginning and its duration.
        second = int(record[1] + record[2])
        if second != self._strangers_second:
            self._strangers_second = second
            self._strangers_left = self._strangers_rows
        if self._strangers_left > 0:
            self._strangers_left -= 1
            self.add(record)
            return
        self._count_dropped(record, ONLY_COUNTED)
        self._schedule_writing()

    def digest_arguments(self, arguments: bytes) -> str:
        """Return a keyed digest, so that nobody can guess the arguments from it."""
        digest = self._digest.copy()
        digest.update(arguments)
        return digest.hexdigest()

    async def wait_until_written(self) -> None:
        """Return when all calls that were added so far are committed."""
        added = self._batched_so_far + len(self._pending)
        if added > self._written_so_far:
            waiting: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((added, waiting))
            await waiting

    @property
    def has_pending(self) -> bool:
        return bool(self._pending or self._tallies or self._task is not None)

    @property
    def waiting_calls(self) -> int:
        """How many calls wait for their commit."""
        return self._batched_so_far - self._written_so_far + len(self._pending)

    def write_pending(self) -> None:
        if self._task is None and self.has_pending:
            self._start_writing()

    def stop(self) -> None:
        """Stop the timer; from then on, calls wait until `write_pending` is called."""
        self._stopped = True
        self._stop_timer()

    # -- gathering ----------------------------------------------------------------

    def _take_on_loop(self, record: CallValues) -> None:
        """Take a call if there is room, and start the timer or a batch if needed."""
        full = len(self._pending) >= self._max_calls and not self.strict
        if full and self._task is not None:
            self._count_dropped(record, NO_ROOM)
            return
        with self._lock:
            self._pending.add(record)
        self._schedule_writing()

    def _schedule_writing(self) -> None:
        many = min(MOST_ROWS, self._max_calls)
        if self._task is not None:
            self._room = self._max_calls
        elif self._pending and (self.strict or len(self._pending) >= many):
            self._start_writing()
        elif self._timer is None:
            self._room = 0 if self.strict else many - 1
            if not self._stopped:
                self._timer = self._loop.call_later(EVERY, self._start_writing)

    def _count_dropped(self, record: CallValues, message: str) -> None:
        """Count a call that gets no row; `message` gives the reason for the log."""
        circumstances, began, took, *_ = record
        server, kind, name, _, outcome, *_ = circumstances
        self.dropped += 1
        if is_counted(circumstances):
            minute_ms = period_start_ms(int(began * 1_000) + self._clock_ms, MINUTE_S)
            subject = (server, kind, stored_name(name), outcome)
            self._tallies.add_calls(minute_ms, subject, [int(took * 1_000_000)], 1)
        self._warn_rarely(message, self.dropped)

    def _warn_rarely(self, message: str, *values: object) -> None:
        now = self._loop.time()
        if now - self._warned.get(message, float("-inf")) >= WARN_EVERY:
            self._warned[message] = now
            logger.warning(message, *values)

    # -- writing ------------------------------------------------------------------

    def _start_writing(self) -> None:
        self._stop_timer()
        self._room = self._max_calls
        self._task = start_background_task(self._write_all(), self._loop)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _write_all(self) -> None:
        try:
            await self._write_batch(self._next_batch())
            while len(self._pending) >= (1 if self.strict else MOST_ROWS):
                await self._write_batch(self._next_batch())
        finally:
            self._task = None
            with self._lock:
                # From now on, `add` schedules the writing of each call again.
                self._room = 0
            if self._pending or self._tallies:
                self._schedule_writing()

    def _next_batch(self) -> CallBatch:
        with self._lock:
            records = self._pending.take_first(MOST_ROWS)
        tallies, self._tallies = self._tallies, Tallies()
        self._batched_so_far += len(records)
        self._number += 1
        return CallBatch(
            self._writer, self._number, records, self.digest_arguments, tallies
        )

    async def _write_batch(self, batch: CallBatch) -> None:
        try:
            await self._write_with_retries(batch)
        except Exception:
            # An error in our code: later calls must not wait for these.
            logger.exception("The call log has lost calls: %d.", len(batch.records))
        self._written_so_far = self._batched_so_far
        while self._waiting and self._waiting[0][0] <= self._written_so_far:
            _, waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)

    async def _write_with_retries(self, batch: CallBatch) -> None:
        attempt = 0
        while True:
            try:
                self._clock_ms = await call_writer.run(write, batch)
            except (DatabaseError, Unavailable) as error:
                reason = error.__cause__ or error
                self._warn_rarely("The call log could not be written: %r", reason)
            else:
                self._report_refused(batch.refused)
                return
            await asyncio.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
            attempt += 1

    def _report_refused(self, refused: RefusedBatch) -> None:
        self.dropped += refused.rows
        if refused.rows:
            message = (
                "The database refuses rows of the call log. %d calls have no row so"
                " far: %r"
            )
            self._warn_rarely(message, self.dropped, refused.reason)
        if refused.counters:
            message = "The database refuses counters of the call log. %d are lost."
            logger.error(message, refused.counters, exc_info=refused.reason)
