"""The heartbeat: it renews the worker row of this process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from django.db import DataError
from django.db import Error as DatabaseError

from mcp_app.invalidation.workers import HEARTBEAT, TRUSTED, Report, WorkerRow
from mcp_app.pools.connections import are_refused
from mcp_app.pools.database import writer
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.process.freshness import NEVER, FreshnessGate
from mcp_app.protocol.errors import Unavailable

# -- health ----------------------------------------------------------------------------
# Whether this process can serve: the database answers and writes, caches are fresh.
#
# All requests for the health within a second share one result.

logger = logging.getLogger("mcp_app.process")

PATIENCE_S: Final = 1.0
"""Seconds after which a silent database counts as unavailable."""
SHARED_S: Final = 1.0

FINE: Final = ""
STOPPING: Final = "stopping"
DATABASE: Final = "database"
FRESHNESS: Final = "freshness"
"""The database answers, but the catalogs could not be loaded in time."""


class Health:
    """Finds out whether this process can serve requests; used on the loop only."""

    def __init__(
        self, gate: FreshnessGate, writes: Callable[[], Awaitable[None]]
    ) -> None:
        """`writes` raises `Unavailable` if nothing can be written."""
        self._gate = gate
        self._writes = writes
        self._began = NEVER
        self._look: asyncio.Task[str] | None = None

    async def failing_part(self) -> str:
        """Return which part fails, `FINE` if none does."""
        now = time.monotonic()
        look = self._look
        if look is None or (look.done() and now - self._began >= SHARED_S):
            self._began = now
            self._look = look = start_background_task(self._find_failing_part(now))
        # A cancelled caller must not cancel the check of the others.
        return await asyncio.shield(look)

    async def _find_failing_part(self, now: float) -> str:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._gate.wait_until_fresh(now)
                await self._writes()
        except Unavailable:
            return DATABASE
        except TimeoutError:
            return FRESHNESS if self._gate.loading else DATABASE
        except Exception:
            logger.exception("The catalog could not be read.")
            return FRESHNESS
        return DATABASE if are_refused() else FINE


# -- heartbeat -------------------------------------------------------------------------

HANGS = HEARTBEAT
"""Seconds after which a running statement is abandoned with its connection."""
LATE = 2 * HEARTBEAT
STEADY = 20.0
DELETION_TIMEOUT_S = 2.0
"""Seconds that an ending process waits for the database to remove its row."""


def resident_bytes() -> int:
    """Return the memory of this process in bytes, 0 if the system does not tell."""
    try:
        # The second number counts the pages in memory.
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Heartbeat:
    """Renews the process's row; tells the gate until when other processes wait."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        row: WorkerRow,
        gate: FreshnessGate,
        spawn: Callable[[Awaitable[None]], object],
        beaten: Callable[[], Awaitable[object]],
        report: Callable[[], Report] = Report,
    ) -> None:
        """Store what `report` returns; `beaten` runs after each timed heartbeat."""
        self._loop = loop
        self._row = row
        self._gate = gate
        self._spawn = spawn
        self._beaten = beaten
        self._report = report
        self._timer: asyncio.TimerHandle | None = None
        self._last = NEVER
        self._steady_since = NEVER
        self._failed = False
        self._silent = False
        """Whether the last report was refused, and the log already says so."""
        self._stopped = False

    @property
    def is_steady(self) -> bool:
        """Whether no heartbeat of the last `STEADY` seconds was late."""
        now = time.monotonic()
        return now - self._last <= LATE and now - self._steady_since >= STEADY

    @property
    def has_started(self) -> bool:
        return self._timer is not None

    async def ensure_row(self) -> None:
        """Write the row if it is missing: before the first check, and after a pause."""
        if time.monotonic() - self._last > TRUSTED:
            await self._renew_row()
            if self._timer is None:
                self._timer = self._loop.call_later(HEARTBEAT, self._start_beat)

    async def confirm_writable(self) -> None:
        """Beat now if the last beat failed; raise `Unavailable` if this one does."""
        if self._failed:
            await self._renew_row()

    async def end(self) -> None:
        self.stop()
        with contextlib.suppress(DatabaseError, Unavailable, TimeoutError):
            async with asyncio.timeout(DELETION_TIMEOUT_S):
                await writer.run(self._row.remove)

    def stop(self) -> None:
        """Beat no more, not even if the timer has just run out."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    async def _renew_row(self) -> None:
        began = time.monotonic()
        await self._write_report()
        if began - self._last > LATE:
            self._steady_since = began
        self._last = began
        self._failed = False
        self._gate.trust(began + TRUSTED)

    async def _write_report(self) -> None:
        """Renew the row; if the database refuses the report, renew it without one."""
        try:
            self._row.report = self._report()
            await writer.run(self._row.renew)
            self._silent = False
        except (ValueError, TypeError, DataError):
            if not self._silent:
                logger.exception("The status report of this process cannot be stored.")
            self._silent = True
            self._row.report = Report()
            await writer.run(self._row.renew)

    def _start_beat(self) -> None:
        self._timer = self._loop.call_later(HEARTBEAT, self._start_beat)
        # Others must not take this process for dead because one statement hangs.
        writer.replace_hanging(HANGS)
        self._spawn(self._try_to_beat())

    async def _try_to_beat(self) -> None:
        if self._stopped:
            return
        try:
            await self._renew_row()
            await self._beaten()
        except (DatabaseError, Unavailable) as error:
            self._failed = True
            reason = error.__cause__ or error
            logger.warning("This process could not write its heartbeat: %r", reason)
