"""The janitor: it removes expired rows, a portion at a time."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from django.db import Error as DatabaseError

from mcp_app.audit.expiry import expired_calls
from mcp_app.auth.rights import expired_apps, expired_assertions
from mcp_app.conf import Limits
from mcp_app.invalidation.compaction import expired_changes
from mcp_app.invalidation.workers import expired_workers
from mcp_app.pools.database import writer
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.event_subscriptions import expired_webhooks
from mcp_app.streams.occurrences import expired_occurrences
from mcp_app.streams.retention import expired_streams
from mcp_app.streams.tasks import expired_tasks

logger = logging.getLogger("mcp_app.process")

EVERY = 600.0
"""Seconds between two rounds, varied by a tenth because processes start together."""


class Removable(Protocol):
    """Rows of one kind, with a name for people; its methods block."""

    @property
    def what(self) -> str:
        """The name of these rows in messages."""

    def count(self) -> int:
        """Return how many there are."""

    def remove(self) -> int | None:
        """Delete a portion and return its number of rows, None if no row is left."""


def all_expired_rows(limits: Limits) -> Sequence[Removable]:
    """Return the expired rows, table by table."""
    return [
        *expired_streams(limits),
        *expired_tasks(limits),
        *expired_occurrences(limits),
        *expired_webhooks(),
        *expired_calls(limits),
        *expired_apps(),
        expired_assertions(),
        *expired_changes(),
        *expired_workers(),
    ]


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
            for expired in all_expired_rows(self._limits):
                while await writer.run(expired.remove) is not None:
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
