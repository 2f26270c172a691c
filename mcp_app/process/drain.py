"""The drain: running calls get time to end, and their answers are sent."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Protocol

from django.db import Error as DatabaseError

from mcp_app.audit.call_log import CallLog
from mcp_app.auth.token_cache import token_cache
from mcp_app.egress.client import close_connections
from mcp_app.invalidation.doorbell import Doorbell
from mcp_app.pools.database import POOLS, give_up_everything
from mcp_app.process.heartbeat import Heartbeat
from mcp_app.process.running import RunningCalls
from mcp_app.process.uploads import Uploads
from mcp_app.protocol.errors import Unavailable
from mcp_app.server.exchange import End
from mcp_app.streams.listeners import Listeners
from mcp_app.streams.request_log import RequestLog
from mcp_app.streams.sse_reader import SseReader

LAST_WORDS = 1.0
"""Seconds in which the last messages of streams and calls may still be sent."""
LAST_CALLS = 2.0
"""Seconds in which the last records of the call log may still be written."""
LAST_BYTES = 0.1


def soon() -> int:
    """Return seconds until a client should come back, spread over the clients."""
    return random.randint(2, 5)  # noqa: S311 - no secret


class Parts(Protocol):
    """The parts of a process that the drain needs."""

    loop: asyncio.AbstractEventLoop
    uploads: Uploads
    listeners: Listeners
    running: RunningCalls
    log: RequestLog
    audit: CallLog | None
    doorbell: Doorbell
    heartbeat: Heartbeat

    @property
    def sse_reader(self) -> SseReader: ...


class Drain:
    """Drains a process that no longer accepts new work."""

    def __init__(self, process: Parts) -> None:
        self._process = process

    async def run(self, patience: float, end: End) -> None:
        """End uploads and streams, and give running calls `patience` seconds.

        Those that run on are ended as `end` says.
        """
        self._process.uploads.give_up()
        for listener in self._process.listeners:
            listener.end(retry_ms=1_000 * soon())
        deadline = self._process.loop.time() + patience
        known = self._process.sse_reader.next_whole
        while self._at_work(known) and self._process.loop.time() < deadline:
            await asyncio.sleep(0.05)
        self._process.uploads.give_up()
        for exchange in self._process.running:
            exchange.stop(end)
        deadline = self._process.loop.time() + LAST_WORDS
        while self._has_words() and self._process.loop.time() < deadline:
            await asyncio.sleep(0.02)
        self._process.doorbell.close()
        await close_connections()
        # A call ends before its answer is sent; some servers cut the connection then.
        await asyncio.sleep(LAST_BYTES)
        await self._written()
        with contextlib.suppress(DatabaseError, Unavailable):
            await token_cache.write_uses()
        await self._process.heartbeat.end()
        await self._answered()
        # The server waits for requests that are waiting for the database.
        give_up_everything()

    async def _answered(self) -> None:
        """Wait until the database has answered every statement, or a second is over."""
        deadline = self._process.loop.time() + LAST_WORDS
        while self._process.loop.time() < deadline and any(pool.busy for pool in POOLS):
            await asyncio.sleep(0.02)

    async def _written(self) -> None:
        """Wait until all records of the call log are written, or the time is over."""
        deadline = self._process.loop.time() + LAST_CALLS
        while self._process.audit is not None and self._process.audit.busy:
            if self._process.loop.time() >= deadline:
                return
            self._process.audit.hurry()
            await asyncio.sleep(0.02)

    def _at_work(self, known: int) -> bool:
        """Return whether a call runs, or a client that is connected here waits for one.

        Such a call may run elsewhere, and may have begun a moment ago.  As soon as this
        process is gone, others close the session of its client.
        """
        waited_for = self._process.sse_reader.at_work(known)
        return bool(self._process.running or self._process.log.busy or waited_for)

    def _has_words(self) -> bool:
        """Return whether anything is still to be sent or logged."""
        return bool(
            self._process.running or self._process.listeners or self._process.log.busy
        )
