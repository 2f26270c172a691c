"""The timers with which a process checks for changes and sends heartbeats."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol

from mcp_app.auth.token_cache import token_cache
from mcp_app.conf import Limits
from mcp_app.invalidation.workers import FRESHNESS
from mcp_app.process.freshness import FreshnessGate
from mcp_app.process.revocation import Revocation
from mcp_app.process.running import RunningCalls
from mcp_app.streams.listeners import Listeners
from mcp_app.streams.session_store import SessionStore
from mcp_app.streams.sse_reader import SseReader

AGED = 0.5
"""Seconds between two searches for sessions that are too old."""


class Parts(Protocol):
    """The parts of a process that the ticker needs."""

    loop: asyncio.AbstractEventLoop
    limits: Limits
    listeners: Listeners
    running: RunningCalls
    sessions: SessionStore
    gate: FreshnessGate

    @property
    def sse_reader(self) -> SseReader: ...
    @property
    def revocation(self) -> Revocation: ...
    async def look(self) -> None: ...
    def spawn(self, work: Awaitable[None]) -> asyncio.Future[None]: ...


class Ticker:
    """Checks while streams or calls are open, and soon after a commit somewhere."""

    _answering: asyncio.TimerHandle | None = None
    _watching: asyncio.TimerHandle | None = None

    def __init__(self, process: Parts) -> None:
        self._process = process
        self._beaten = self._aged = process.loop.time()

    def heard(self) -> None:
        """Check soon after a commit in any process, if a stream or call is open.

        However often it is called, a check starts when the last one is half of
        `FRESHNESS` old.
        """
        self._process.sse_reader.hurry()
        if self._answering is None and (
            self._process.listeners or self._process.running
        ):
            delay = self._process.gate.age()
            self._answering = self._process.loop.call_later(
                max(0.0, FRESHNESS / 2 - delay), self._answer_ring
            )

    def _answer_ring(self) -> None:
        self._answering = None
        self._process.spawn(self._process.look())

    def watch(self) -> None:
        """Start ticking, until no stream and no call is open any more."""
        token_cache.doubt()
        if self._watching is None:
            self._beaten = self._process.loop.time()
            self._watching = self._process.loop.call_later(FRESHNESS / 2, self._tick)

    def _tick(self) -> None:
        """Check for changes; send heartbeats and end old sessions when due."""
        if not self._process.listeners and not self._process.running:
            self._watching = None
            return
        # Set the timer first: an exception below must not stop the ticking.
        self._watching = self._process.loop.call_later(FRESHNESS / 2, self._tick)
        self._process.revocation.look()
        if self._process.loop.time() - self._beaten >= self._process.limits.heartbeat:
            self._beaten = self._process.loop.time()
            self._process.running.beat()
            for listener in self._process.listeners:
                listener.beat()
        if self._process.loop.time() - self._aged >= AGED:
            self._aged = self._process.loop.time()
            self._process.sessions.end_old()
        self._process.gate.refresh()

    def stop(self) -> None:
        """Cancel the timers."""
        for timer in (self._answering, self._watching):
            if timer is not None:
                timer.cancel()
