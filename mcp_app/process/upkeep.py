"""What each heartbeat does for the rows of sessions, streams and tokens."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import ClassVar

from mcp_app.auth.token_cache import token_cache
from mcp_app.invalidation.workers import PeerMonitor, WorkerRow
from mcp_app.pools.database import log_writer, reader, writer
from mcp_app.streams.bound_sessions import SseSessions
from mcp_app.streams.claims import (
    claim_orphans,
    end_own_streams,
    open_streams,
    stream_owners,
)
from mcp_app.streams.request_log import RequestLog
from mcp_app.streams.session_store import SessionStore
from mcp_app.streams.tasks import release_tasks_of_dead

logger = logging.getLogger("mcp_app.process")

ALERTS_EVERY_S = 60.0


class Upkeep:
    """Maintains the rows of this process, and ends those of dead processes."""

    send_alerts: ClassVar[Callable[..., object]] = staticmethod(lambda: None)
    """Sends alerts about failures; replaced when the app is ready."""

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
        self._alerts_at = time.monotonic()
        # A thread that was never started is not alive.
        self._sender = threading.Thread()

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
        self._begin_to_send_alerts()

    def _begin_to_send_alerts(self) -> None:
        """Each minute, send alerts in a thread, because sending mails may take long."""
        now = time.monotonic()
        if now - self._alerts_at >= ALERTS_EVERY_S and not self._sender.is_alive():
            self._alerts_at = now
            self._sender = threading.Thread(target=self.send_alerts, daemon=True)
            self._sender.start()

    async def _end_unknown_streams(self) -> None:
        public_ids = await log_writer.run(open_streams, self._row.id)
        if unknown := self._log.unknown_streams(public_ids):
            logger.error(
                "Streams that belonged to no running call were ended: %s.", unknown
            )
            await log_writer.run(end_own_streams, self._row.id, unknown)

    async def end_orphans(self) -> None:
        """End the streams and sessions of dead processes, and release their tasks."""
        dead = self._peers.orphaning()
        if dead and self._steady():
            await log_writer.run(claim_orphans, self._row.id, dead)
            await self._sse_sessions.end_of_dead(dead)
            await writer.run(release_tasks_of_dead, dead)
