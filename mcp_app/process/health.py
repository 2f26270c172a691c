"""Whether this process can serve: the database answers and writes, caches are fresh.

All requests for the health within a second share one result.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from mcp_app.process.freshness import NEVER
from mcp_app.protocol.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_app.process.freshness import FreshnessGate

logger = logging.getLogger("mcp_app.process")

PATIENCE_S: Final = 1.0
"""Seconds after which a silent database counts as unavailable."""
SHARED_S: Final = 1.0
"""Seconds for which a result is reused."""

FINE: Final = ""
STOPPING: Final = "stopping"
DATABASE: Final = "database"
FRESHNESS: Final = "freshness"
"""The database answers, but the catalogs could not be loaded in time."""


class Health:
    """Checks through the gate, as each request does; used on the loop only."""

    def __init__(
        self, gate: FreshnessGate, writes: Callable[[], Awaitable[None]]
    ) -> None:
        """`writes` raises `Unavailable` if nothing can be written."""
        self._gate = gate
        self._writes = writes
        self._began = NEVER
        self._look: asyncio.Task[str] | None = None

    async def failing(self) -> str:
        """Return which part fails, `FINE` if none does."""
        now = time.monotonic()
        look = self._look
        if look is None or (look.done() and now - self._began >= SHARED_S):
            self._began = now
            self._look = look = asyncio.create_task(self._found(now))
        # A cancelled caller must not cancel the check of the others.
        return await asyncio.shield(look)

    async def _found(self, now: float) -> str:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._gate.wait(now)
                await self._writes()
        except Unavailable:
            return DATABASE
        except TimeoutError:
            return FRESHNESS if self._gate.loading else DATABASE
        except Exception:
            logger.exception("The catalog could not be read.")
            return FRESHNESS
        return FINE
