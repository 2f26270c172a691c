"""What each heartbeat does for the rows of sessions, streams and tokens."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from mcp_app.auth.token_cache import token_cache
from mcp_app.invalidation.peers import PeerMonitor
from mcp_app.invalidation.workers import WorkerRow
from mcp_app.pools.database import log_writer, reader
from mcp_app.streams.claims import claim, end_own, open_streams, owners
from mcp_app.streams.request_log import RequestLog
from mcp_app.streams.session_store import SessionStore
from mcp_app.streams.sse_sessions import SseSessions

logger = logging.getLogger("mcp_app.process")


class Upkeep:
    """Maintains the rows of this process, and ends those of dead processes."""

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

    async def beat(self) -> None:
        """Maintain the rows of this process, and take over those of dead ones."""
        await self._end_unknown()
        await self._look_around()
        await self._sessions.touch_used()
        await token_cache.write_uses()
        await self._sse_sessions.sweep()

    async def _end_unknown(self) -> None:
        """End open streams of this process that its log does not know."""
        found = await log_writer.run(open_streams, self._row.id)
        if unknown := self._log.unknown(found):
            logger.error(
                "Streams that belonged to no running call were ended: %s.", unknown
            )
            await log_writer.run(end_own, self._row.id, unknown)

    async def _look_around(self) -> None:
        """Find out which other processes live."""
        began = time.monotonic()
        self._peers.look(await reader.run(owners), began)
        self._row.judged = self._peers.judge()
        await self.claim()

    async def claim(self) -> None:
        """End the streams and the HTTP+SSE sessions of dead processes."""
        dead = self._peers.orphaning()
        if dead and self._steady():
            await log_writer.run(claim, self._row.id, dead)
            await self._sse_sessions.end_of_dead(dead)
