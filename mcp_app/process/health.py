"""Whether this process can serve: the database answers and writes, caches are fresh.

Whoever asks is answered by one look in a second, however many they are.
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

    from mcp_app.process.freshness import Gate

logger = logging.getLogger("mcp_app.process")

PATIENCE_S: Final = 1.0
"""A database that says nothing for so long does not answer."""
SHARED_S: Final = 1.0
"""So long what was found is said again."""

FINE: Final = ""
STOPPING: Final = "stopping"
DATABASE: Final = "database"
FRESHNESS: Final = "freshness"
"""The database answers, and what is served could not be read from it in time."""


class Health:
    """Looks through the gate, as each request does; used on the loop only."""

    def __init__(self, gate: Gate, writes: Callable[[], Awaitable[None]]) -> None:
        """`writes` raises `Unavailable` where nothing can be written."""
        self._gate = gate
        self._writes = writes
        self._began = NEVER
        self._look: asyncio.Task[str] | None = None

    async def failing(self) -> str:
        """Return which part fails, `FINE` where none does."""
        now = time.monotonic()
        look = self._look
        if look is None or (look.done() and now - self._began >= SHARED_S):
            self._began = now
            self._look = look = asyncio.create_task(self._found(now))
        # One who leaves does not end the look of the others.
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
            logger.exception("What is served could not be read.")
            return FRESHNESS
        return FINE
