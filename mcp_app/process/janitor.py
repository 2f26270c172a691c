"""The janitor: it removes expired rows, a portion at a time."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from django.db import Error as DatabaseError

from mcp_app.conf import Limits
from mcp_app.pools.database import writer
from mcp_app.process.expiry import all_expired_rows
from mcp_app.protocol.errors import Unavailable

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
        self._later()

    def stop(self) -> None:
        """Cancel the timer."""
        self._timer.cancel()

    async def sweep(self) -> None:
        """Remove all expired rows.

        The writer has other work, too, so it gets one portion at a time.
        """
        try:
            for each in all_expired_rows(self._limits):
                while await writer.run(each.remove) is not None:
                    continue
        except (DatabaseError, Unavailable) as error:
            reason = error.__cause__ or error
            logger.warning("The janitor could not reach the database: %r", reason)

    def _later(self) -> None:
        delay = EVERY * random.uniform(0.9, 1.1)  # noqa: S311 - no secret
        self._timer = self._loop.call_later(delay, self._round)

    def _round(self) -> None:
        self._later()
        # With a slow database, rounds must not pile up.
        if not self._sweeping:
            self._spawn(self._sweep_alone())

    async def _sweep_alone(self) -> None:
        self._sweeping = True
        try:
            await self.sweep()
        finally:
            self._sweeping = False
