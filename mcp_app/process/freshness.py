"""Whether this process may answer from its caches.

A request may be served if the last successful check of the database started later
than `FRESHNESS` before the request's arrival; else it waits for a check.  While
requests come, a check is started when half of that time is over: so nobody waits, and
there are at most eight statements a second, however many requests come.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable

from django.db import Error as DatabaseError

from mcp_app.protocol.errors import Unavailable
from mcp_app.wakeup.news import News
from mcp_app.wakeup.workers import FRESHNESS

logger = logging.getLogger("mcp_app.process")

TIMEOUT = 2.0
RETRY = 0.25
"""In an outage so many seconds pass from one check to the next."""
NEVER = float("-inf")


class Gate:
    """Runs one check at a time; `load` brings the caches up to date with its news.

    `give_up` is called where a check hangs, so that the next one need not wait for it.
    To load may take its time: then requests are slow, and not refused.
    """

    def __init__(
        self,
        check: Callable[[], Awaitable[News]],
        load: Callable[[News], Awaitable[None]],
        give_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._check = check
        self._load = load
        self._give_up = give_up
        self._started = NEVER
        self._quiet_until = NEVER
        self._fresh_until = NEVER
        self._trusted_until = NEVER
        self._stale_since = NEVER
        self._running: asyncio.Task[bool] | None = None
        self._running_since = NEVER
        self._failed = NEVER
        self.loading = False
        """Whether the database has answered, and the caches are brought up to date."""

    def fresh(self, arrived: float) -> bool:
        """Whether a request that arrived then (monotonic) may be served at once."""
        if arrived < self._quiet_until:
            return True
        self.refresh()
        return arrived < self._fresh_until

    async def wait(self, arrived: float) -> None:
        """Wait until the caches are fresh for the request; raise `Unavailable`."""
        moment = arrived - FRESHNESS if arrived < self._trusted_until else arrived
        await self._checked_since(
            max(moment, self._stale_since), self._failed > arrived - RETRY
        )

    def age(self) -> float:
        """Return how many seconds ago the last good check started."""
        return time.monotonic() - self._started

    def refresh(self) -> None:
        """Start a check that nobody waits for, unless one runs or has just failed."""
        now = time.monotonic()
        running = self._running is not None and not self._running.done()
        if not running and now >= self._quiet_until and now - self._failed > RETRY:
            self._start()

    def trust(self, until: float) -> None:
        """Until then others wait for this process; beyond it must check each time."""
        self._trusted_until = until
        self._reckon()

    def stale(self) -> None:
        """What was checked before now is not enough any more; from any thread."""
        self._stale_since = time.monotonic()
        self._reckon()

    def _reckon(self) -> None:
        if self._started <= self._stale_since:
            self._quiet_until = self._fresh_until = NEVER
            return
        self._quiet_until = min(self._started + FRESHNESS / 2, self._trusted_until)
        self._fresh_until = min(self._started + FRESHNESS, self._trusted_until)

    async def look(self) -> None:
        """Wait for a check that starts from now on; raise `Unavailable`."""
        await self._checked_since(time.monotonic(), outage=False)

    async def _checked_since(self, moment: float, outage: bool) -> None:
        while self._started <= moment:
            if outage or not await self._joined(moment):
                seconds = random.randint(5, 15)  # noqa: S311 - no secret
                raise Unavailable(
                    "The database cannot be reached.", retry_after=seconds
                )

    async def _joined(self, moment: float) -> bool:
        running, since = self._running, self._running_since
        if running is None or running.done():
            return await asyncio.shield(self._start())
        good = await asyncio.shield(running)
        # A check that began before says nothing about what is asked for.  Whoever was
        # told first may have started the next one meanwhile.
        return good or since <= moment

    def _start(self) -> asyncio.Task[bool]:
        self._running_since = time.monotonic()
        self._running = asyncio.create_task(self._checked(self._running_since))
        self._running.add_done_callback(_told)
        return self._running

    async def _checked(self, started: float) -> bool:
        try:
            async with asyncio.timeout(TIMEOUT):
                news = await self._check()
            self.loading = True
            await self._load(news)
        except (DatabaseError, TimeoutError, Unavailable) as error:
            if isinstance(error, TimeoutError):
                self._give_up()
            reason = error.__cause__ or error
            logger.warning("A check of the database failed: %r", reason)
            self._failed = time.monotonic()
            return False
        finally:
            self.loading = False
        self._started = started
        self._reckon()
        return True


def _told(task: asyncio.Task[bool]) -> None:
    """Log a fault of ours: perhaps nobody waits for this check."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("A check of the database broke.", exc_info=error)
