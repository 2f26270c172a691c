"""When a process looks for changes, and lets its streams beat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol

from mcp_app.auth.tokens import tokens
from mcp_app.conf import Limits
from mcp_app.process.evictions import Evictions
from mcp_app.process.freshness import Gate
from mcp_app.process.running import RunningCalls
from mcp_app.streams.gathering import Gathering
from mcp_app.streams.listeners import Listeners
from mcp_app.streams.session_store import SessionStore
from mcp_app.wakeup.workers import FRESHNESS

AGED = 0.5
"""Seconds between two looks for sessions that are too old."""


class Parts(Protocol):
    """The parts of a process that a tick is for."""

    loop: asyncio.AbstractEventLoop
    limits: Limits
    listeners: Listeners
    running: RunningCalls
    sessions: SessionStore
    gate: Gate

    @property
    def gathering(self) -> Gathering: ...
    @property
    def evictions(self) -> Evictions: ...
    async def look(self) -> None: ...
    def spawn(self, work: Awaitable[None]) -> asyncio.Future[None]: ...


class Ticker:
    """Looks while anybody listens or waits, and soon after something was committed."""

    _answering: asyncio.TimerHandle | None = None
    _watching: asyncio.TimerHandle | None = None

    def __init__(self, process: Parts) -> None:
        self._process = process
        self._beaten = self._aged = process.loop.time()

    def heard(self) -> None:
        """Something was committed somewhere: look, if anybody is to be told.

        However often it rings, a check starts when the last one is T/2 old.
        """
        self._process.gathering.hurry()
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
        """Beat, and look for changes, as long as there is a stream or a call."""
        tokens.doubt()
        if self._watching is None:
            self._beaten = self._process.loop.time()
            self._watching = self._process.loop.call_later(FRESHNESS / 2, self._tick)

    def _tick(self) -> None:
        """Look for changes while somebody listens; beat less often."""
        if not self._process.listeners and not self._process.running:
            self._watching = None
            return
        # First this: what fails below must not be the last look of this process.
        self._watching = self._process.loop.call_later(FRESHNESS / 2, self._tick)
        self._process.evictions.look()
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
        """Look no more."""
        for timer in (self._answering, self._watching):
            if timer is not None:
                timer.cancel()
