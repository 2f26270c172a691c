"""The timers with which a process checks for changes and sends heartbeats."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp_app.auth.token_cache import token_cache
from mcp_app.invalidation.workers import FRESHNESS

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process

AGED = 0.5
"""Seconds between two searches for sessions that are too old."""


class Ticker:
    """Checks while streams or calls are open, and soon after a commit somewhere."""

    _answering: asyncio.TimerHandle | None = None
    _watching: asyncio.TimerHandle | None = None

    def __init__(self, process: Process) -> None:
        self._process = process
        self._beaten = self._aged = process.loop.time()

    def heard(self) -> None:
        """Check half of `FRESHNESS` after the last check, if anything is open."""
        process = self._process
        process.sse_reader.poll_soon()
        is_open = process.listeners or process.running
        if self._answering is None and (is_open or process.event_delivery.is_looking):
            age_s = process.gate.seconds_since_check()
            self._answering = process.loop.call_later(
                max(0.0, FRESHNESS / 2 - age_s), self._answer_ring
            )

    def _answer_ring(self) -> None:
        self._answering = None
        self._process.spawn_task(self._process.check_for_changes())

    def start_ticking(self) -> None:
        token_cache.mark_unsure()
        if self._watching is None:
            self._beaten = self._process.loop.time()
            self._watching = self._process.loop.call_later(
                FRESHNESS / 2, self._handle_tick
            )

    def _handle_tick(self) -> None:
        """Check for changes; send heartbeats and end old sessions when due."""
        process = self._process
        if not process.listeners and not process.running:
            self._watching = None
            return
        # Set the timer first: an exception below must not stop the ticking.
        self._watching = process.loop.call_later(FRESHNESS / 2, self._handle_tick)
        process.revocation.start_check()
        now = process.loop.time()
        if now - self._beaten >= process.limits.heartbeat:
            self._beaten = now
            process.running.beat()
            for listener in process.listeners:
                listener.beat()
        if now - self._aged >= AGED:
            self._aged = now
            process.sessions.close_too_old()
        process.gate.refresh()

    def stop(self) -> None:
        for timer in (self._answering, self._watching):
            if timer is not None:
                timer.cancel()
