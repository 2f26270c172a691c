"""Whether this process may answer from its caches.

A request may be served if the last successful check of the database started later
than `FRESHNESS` before the request's arrival; else it waits for a check.  So there is
at most one statement in that time, however many requests come.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable

from django.db import Error as DatabaseError

from mcp_app.protocol.errors import Unavailable

logger = logging.getLogger("mcp_app.process")

FRESHNESS = 1.0
TIMEOUT = 2.0
RETRY = 0.25
"""In an outage so many seconds pass from one check to the next."""


class Gate:
    """Runs one check at a time; `check` brings the caches up to date."""

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        self._check = check
        self._started = float("-inf")
        self._running: asyncio.Task[bool] | None = None
        self._running_since = float("-inf")
        self._failed = float("-inf")

    def fresh(self, arrived: float) -> bool:
        """Whether a request that arrived then (monotonic) may be served at once."""
        return self._started > arrived - FRESHNESS

    async def wait(self, arrived: float) -> None:
        """Wait until the caches are fresh for the request; raise `Unavailable`."""
        await self._checked_since(arrived - FRESHNESS, self._failed > arrived - RETRY)

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
        running = self._running
        if running is None or running.done():
            return await asyncio.shield(self._start())
        good = await asyncio.shield(running)
        # A check that began before says nothing about what is asked for.
        return good or self._running_since <= moment

    def _start(self) -> asyncio.Task[bool]:
        self._running_since = time.monotonic()
        self._running = asyncio.create_task(self._checked(self._running_since))
        return self._running

    async def _checked(self, started: float) -> bool:
        try:
            async with asyncio.timeout(TIMEOUT):
                await self._check()
        except (DatabaseError, TimeoutError, Unavailable) as error:
            reason = error.__cause__ or error
            logger.warning("A check of the database failed: %r", reason)
            self._failed = time.monotonic()
            return False
        self._started = started
        return True
