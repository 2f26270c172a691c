"""What each heartbeat does for the rows of sessions, streams and tokens."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from mcp_app.auth.tokens import tokens
from mcp_app.pools.database import log_writer, reader
from mcp_app.streams.claims import claim, end_own, open_streams, owners
from mcp_app.streams.held import HeldSessions
from mcp_app.streams.request_log import RequestLog
from mcp_app.streams.session_store import SessionStore
from mcp_app.wakeup.others import Others
from mcp_app.wakeup.workers import WorkerRow

logger = logging.getLogger("mcp_app.process")


class Upkeep:
    """Keeps the rows of this process, and ends those of processes that died."""

    def __init__(
        self,
        row: WorkerRow,
        others: Others,
        log: RequestLog,
        sessions: SessionStore,
        held: HeldSessions,
        *,
        steady: Callable[[], bool],
    ) -> None:
        """`steady` tells whether the last heartbeats all came in time."""
        self._row = row
        self._others = others
        self._log = log
        self._sessions = sessions
        self._held = held
        self._steady = steady

    async def beat(self) -> None:
        """Do with each heartbeat what the rows of others, and of sessions, need."""
        await self._end_unknown()
        await self._look_around()
        await self._sessions.touch_used()
        await tokens.write_uses()
        await self._held.sweep()

    async def _end_unknown(self) -> None:
        """End streams of this process that it knows no more: nobody else will."""
        found = await log_writer.run(open_streams, self._row.id)
        if unknown := self._log.unknown(found):
            logger.error("Streams are ended that nobody would end: %s.", unknown)
            await log_writer.run(end_own, self._row.id, unknown)

    async def _look_around(self) -> None:
        """Look which other processes live."""
        began = time.monotonic()
        self._others.look(await reader.run(owners), began)
        self._row.judged = self._others.judged()
        await self.claim()

    async def claim(self) -> None:
        """End the streams of processes that died, and the sessions that they held."""
        dead = self._others.orphaning()
        if dead and self._steady():
            await log_writer.run(claim, self._row.id, dead)
            await self._held.end_of_dead(dead)
