"""The end of a process: its calls get their time, and what they say is sent."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Protocol

from django.db import Error as DatabaseError

from mcp_app.audit.call_log import CallLog
from mcp_app.auth.tokens import tokens
from mcp_app.pools.database import POOLS, give_up_everything
from mcp_app.process.heartbeat import Heartbeat
from mcp_app.process.running import RunningCalls
from mcp_app.process.uploads import Uploads
from mcp_app.protocol.errors import Unavailable
from mcp_app.server.exchange import End
from mcp_app.streams.gathering import Gathering
from mcp_app.streams.listeners import Listeners
from mcp_app.streams.request_log import RequestLog
from mcp_app.wakeup.doorbell import Doorbell

LAST_WORDS = 1.0
"""Seconds in which the ends of streams and calls may still be sent at a stop."""
LAST_CALLS = 2.0
"""Seconds in which calls may still be written at a stop."""
LAST_BYTES = 0.1


def soon() -> int:
    """Return after how many seconds to come back: not all clients at once."""
    return random.randint(2, 5)  # noqa: S311 - no secret


class Parts(Protocol):
    """The parts of a process that have something to do at its end."""

    loop: asyncio.AbstractEventLoop
    uploads: Uploads
    listeners: Listeners
    running: RunningCalls
    log: RequestLog
    audit: CallLog | None
    doorbell: Doorbell
    heartbeat: Heartbeat

    @property
    def gathering(self) -> Gathering: ...


class Drain:
    """Ends a process that takes no new work any more."""

    def __init__(self, process: Parts) -> None:
        self._process = process

    async def run(self, patience: float) -> None:
        """Refuse new work, end the streams, and give running calls their time.

        That is `patience` in seconds.
        """
        self._process.uploads.give_up()
        for listener in self._process.listeners:
            listener.end(retry_ms=1_000 * soon())
        deadline = self._process.loop.time() + patience
        known = self._process.gathering.next_whole
        while self._at_work(known) and self._process.loop.time() < deadline:
            await asyncio.sleep(0.05)
        self._process.uploads.give_up()
        for exchange in self._process.running:
            exchange.stop(End.SHUT_DOWN)
        deadline = self._process.loop.time() + LAST_WORDS
        while self._has_words() and self._process.loop.time() < deadline:
            await asyncio.sleep(0.02)
        self._process.doorbell.close()
        # A call is over before its answer is sent, and some servers cut what is left.
        await asyncio.sleep(LAST_BYTES)
        await self._written()
        with contextlib.suppress(DatabaseError, Unavailable):
            await tokens.write_uses()
        await self._process.heartbeat.end()
        await self._answered()
        # The server waits for requests that wait for the database.
        give_up_everything()

    async def _answered(self) -> None:
        """Return when the database has answered everything, or that takes too long."""
        deadline = self._process.loop.time() + LAST_WORDS
        while self._process.loop.time() < deadline and any(pool.busy for pool in POOLS):
            await asyncio.sleep(0.02)

    async def _written(self) -> None:
        """Return when all calls are written, or that takes too long."""
        deadline = self._process.loop.time() + LAST_CALLS
        while self._process.audit is not None and self._process.audit.busy:
            if self._process.loop.time() >= deadline:
                return
            self._process.audit.hurry()
            await asyncio.sleep(0.02)

    def _at_work(self, known: int) -> bool:
        """Whether a call runs, or is waited for by a client that is connected here.

        It may run elsewhere, and have begun a moment ago: others close the session of
        such a client as soon as this process is gone.
        """
        waited_for = self._process.gathering.at_work(known)
        return bool(self._process.running or self._process.log.busy or waited_for)

    def _has_words(self) -> bool:
        """Whether anything is still to be sent, or logged."""
        return bool(
            self._process.running or self._process.listeners or self._process.log.busy
        )
