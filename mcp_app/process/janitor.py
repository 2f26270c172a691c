"""The janitor: it removes expired rows, a portion at a time."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Protocol

from django.db import Error as DatabaseError

from mcp_app.audit.expiry import expired_calls
from mcp_app.auth.rights import expired_apps
from mcp_app.auth.token_cache import token_cache
from mcp_app.conf import Limits
from mcp_app.invalidation.compaction import expired_changes
from mcp_app.invalidation.workers import (
    FRESHNESS,
    PeerMonitor,
    WorkerRow,
    expired_workers,
)
from mcp_app.pools.database import log_writer, reader, writer
from mcp_app.process.callers import Revocation
from mcp_app.process.event_delivery import EventDelivery
from mcp_app.process.freshness import FreshnessGate
from mcp_app.process.running import RunningCalls
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.bound_sessions import SseSessions
from mcp_app.streams.claims import (
    claim_orphans,
    end_own_streams,
    open_streams,
    stream_owners,
)
from mcp_app.streams.event_subscriptions import expired_webhooks
from mcp_app.streams.listeners import Listeners
from mcp_app.streams.occurrences import expired_occurrences
from mcp_app.streams.request_log import RequestLog
from mcp_app.streams.retention import expired_streams
from mcp_app.streams.session_store import SessionStore
from mcp_app.streams.sse_reader import SseReader
from mcp_app.streams.tasks import expired_tasks, release_tasks_of_dead

# -- expiry ----------------------------------------------------------------------------
# All rows that expire; the janitor or a command removes them.


class Removable(Protocol):
    """Rows of one kind, with a name for people; its methods block."""

    @property
    def what(self) -> str:
        """The name of these rows in messages."""

    def count(self) -> int:
        """Return how many there are."""

    def remove(self) -> int | None:
        """Delete a portion and return how many went, None when nothing is left."""


def all_expired_rows(limits: Limits) -> Sequence[Removable]:
    """Return the expired rows, table by table."""
    return [
        *expired_streams(limits),
        *expired_tasks(),
        *expired_occurrences(limits),
        *expired_webhooks(),
        *expired_calls(limits),
        *expired_apps(),
        *expired_changes(),
        *expired_workers(),
    ]


# -- heap ------------------------------------------------------------------------------
# What a process begins with is left out of garbage collections.
#
# Requests that wait a moment make Python look at all objects every few seconds.  With
# Django, a site and its catalogs that held the loop for 90 ms each time (measured with
# 256 connections that show unknown session ids).

_is_frozen = False


def freeze_heap() -> None:
    """Leave all objects that there are out of collections, once in a process.

    They still go when nothing refers to them, unless they refer to each other.
    """
    global _is_frozen  # noqa: PLW0603 - there is one heap
    if not _is_frozen:
        _is_frozen = True
        gc.freeze()


# -- janitor ---------------------------------------------------------------------------

logger = logging.getLogger("mcp_app.process")

EVERY = 600.0
"""Seconds between two rounds, varied by a tenth because processes start together."""


class Janitor:
    """Removes expired rows in the background, as long as its process lives."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        spawn: Callable[[Awaitable[None]], object],
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._spawn = spawn
        self._sweeping = False
        self._schedule_round()

    def stop(self) -> None:
        self._timer.cancel()

    async def remove_expired(self) -> None:
        """Remove all expired rows by portions: the writer has other work, too."""
        try:
            for each in all_expired_rows(self._limits):
                while await writer.run(each.remove) is not None:
                    continue
        except (DatabaseError, Unavailable) as error:
            reason = error.__cause__ or error
            logger.warning("The janitor could not reach the database: %r", reason)

    def _schedule_round(self) -> None:
        delay = EVERY * random.uniform(0.9, 1.1)  # noqa: S311 - no secret
        self._timer = self._loop.call_later(delay, self._start_round)

    def _start_round(self) -> None:
        self._schedule_round()
        # With a slow database, rounds must not pile up.
        if not self._sweeping:
            self._spawn(self._sweep_alone())

    async def _sweep_alone(self) -> None:
        self._sweeping = True
        try:
            await self.remove_expired()
        finally:
            self._sweeping = False


# -- upkeep ----------------------------------------------------------------------------
# What each heartbeat does for the rows of sessions, streams and tokens.


WATCHED_S = 60.0


class Upkeep:
    """Maintains the rows of this process, and ends those of dead processes."""

    watch: ClassVar[Callable[..., object]] = staticmethod(lambda: None)
    """Tells what fails; replaced when the app is ready."""

    def __init__(
        self,
        row: WorkerRow,
        peers: PeerMonitor,
        log: RequestLog,
        sessions: SessionStore,
        sse_sessions: SseSessions,
        *,
        steady: Callable[[], bool],
    ) -> None:
        """`steady` returns whether none of the last heartbeats was late."""
        self._row = row
        self._peers = peers
        self._log = log
        self._sessions = sessions
        self._sse_sessions = sse_sessions
        self._steady = steady
        self._watched = time.monotonic()
        self._watching = threading.Thread()

    async def maintain_rows(self) -> None:
        """Maintain the rows of this process, and take over those of dead ones."""
        await self._end_unknown_streams()
        began = time.monotonic()
        self._peers.observe_owners(await reader.run(stream_owners), began)
        self._row.judged = self._peers.peer_states()
        await self.end_orphans()
        await self._sessions.touch_used()
        await token_cache.write_uses()
        await self._sse_sessions.delete_streamless()
        self._start_watch()

    def _start_watch(self) -> None:
        """Watch each minute, in a thread: mails may take long, and one waits for it."""
        now = time.monotonic()
        if now - self._watched >= WATCHED_S and not self._watching.is_alive():
            self._watched = now
            self._watching = threading.Thread(target=self.watch, daemon=True)
            self._watching.start()

    async def _end_unknown_streams(self) -> None:
        public_ids = await log_writer.run(open_streams, self._row.id)
        if unknown := self._log.unknown_streams(public_ids):
            logger.error(
                "Streams that belonged to no running call were ended: %s.", unknown
            )
            await log_writer.run(end_own_streams, self._row.id, unknown)

    async def end_orphans(self) -> None:
        dead = self._peers.orphaning()
        if dead and self._steady():
            await log_writer.run(claim_orphans, self._row.id, dead)
            await self._sse_sessions.end_of_dead(dead)
            await writer.run(release_tasks_of_dead, dead)


# -- ticker ----------------------------------------------------------------------------
# The timers with which a process checks for changes and sends heartbeats.

AGED = 0.5
"""Seconds between two searches for sessions that are too old."""


class TickedProcess(Protocol):
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
    @property
    def event_delivery(self) -> EventDelivery: ...
    async def check_for_changes(self) -> None: ...
    def spawn_task(self, work: Awaitable[None]) -> asyncio.Future[None]: ...


class Ticker:
    """Checks while streams or calls are open, and soon after a commit somewhere."""

    _answering: asyncio.TimerHandle | None = None
    _watching: asyncio.TimerHandle | None = None

    def __init__(self, process: TickedProcess) -> None:
        self._process = process
        self._beaten = self._aged = process.loop.time()

    def heard(self) -> None:
        """Check half of `FRESHNESS` after the last check, if anything is open."""
        process = self._process
        process.sse_reader.poll_soon()
        is_open = process.listeners or process.running
        if self._answering is None and (is_open or process.event_delivery.is_looking):
            delay = process.gate.seconds_since_check()
            self._answering = process.loop.call_later(
                max(0.0, FRESHNESS / 2 - delay), self._answer_ring
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
