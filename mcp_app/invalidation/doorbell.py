"""The doorbell: a channel layer that wakes other processes after a commit.

It carries no content and may lose messages: the check finds every change a moment
later.  A layer inside the process reaches no other one, and is not used.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from channels.exceptions import InvalidChannelLayerError
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.core.exceptions import ImproperlyConfigured

from mcp_app.interface.errors import with_remedy
from mcp_app.pools.loop_thread import start_background_task

logger = logging.getLogger("mcp_app.invalidation")

GROUP = "mcp_app.changes"
RING = {"type": "mcp_app.ring", "version": 1}
RENEW = 60.0
"""Seconds after which a process joins the group again: `channels_redis.core` keeps the
members in Redis, which may lose them."""
RETRY = 5.0
PATIENCE = 2.0
"""Time limit of sending, in seconds."""
LAYERS_LOG = logging.getLogger("channels_redis.pubsub")
"""This layer logs a traceback each second while its Redis is away."""


class Doorbell:
    """Wakes the other processes, and hears them; used on the loop only."""

    def __init__(self, alias: str, notify: Callable[[], None]) -> None:
        self._layer = shared_layer(alias)
        self._notify = notify
        self._hearing: asyncio.Task[None] | None = None
        self._ringing: asyncio.Task[None] | None = None
        self._broken = False
        self._until: asyncio.Timeout | None = None
        """When it joins again."""

    def listen(self) -> None:
        if self._layer is not None and self._hearing is None:
            self._loop = asyncio.get_running_loop()
            self._hearing = start_background_task(self._hear_always())
            LAYERS_LOG.addFilter(self._is_worth_logging)

    def ring(self) -> None:
        """Wake the others, unless a message to them is already on its way."""
        if self._layer is not None and self._ringing is None:
            self._ringing = start_background_task(self._send_ring())

    def close(self) -> None:
        LAYERS_LOG.removeFilter(self._is_worth_logging)
        for task in (self._hearing, self._ringing):
            if task is not None:
                task.cancel()
        self._layer = None

    async def _send_ring(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._layer.group_send(GROUP, RING)
        except Exception as error:
            # Layers raise the exceptions of their servers' clients.
            self._note_outage(error)
        else:
            self._note_answer()
        finally:
            self._ringing = None

    async def _hear_always(self) -> None:
        # A client may swallow a cancellation while its server is unavailable.
        while self._layer is not None:
            try:
                await self._hear_for_while(self._layer)
            except Exception as error:
                self._note_outage(error)
                await asyncio.sleep(RETRY * random.uniform(0.5, 1.5))  # noqa: S311

    async def _hear_for_while(self, layer: Any) -> None:
        channel = await layer.new_channel("mcp_app")
        try:
            await layer.group_add(GROUP, channel)
            self._note_answer()
            # Commits before it joined sent it no message.
            self._notify()
            with suppress(TimeoutError):
                async with asyncio.timeout(RENEW) as self._until:
                    while self._layer is not None:
                        if await _receive_ring(layer, channel):
                            self._notify()
        finally:
            # An unavailable server must not delay the end, or the next attempt.
            with suppress(Exception):
                async with asyncio.timeout(PATIENCE):
                    await layer.group_discard(GROUP, channel)

    def _is_worth_logging(self, record: logging.LogRecord) -> bool:
        """Return False for a layer's log line that only says its server is away."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, Exception) or self._loop.is_closed():
            return True
        self._loop.call_soon_threadsafe(self._join_again, error)
        return False

    def _join_again(self, error: Exception) -> None:
        self._note_outage(error)
        # A timeout that is over, or not yet entered, cannot be rescheduled.
        with suppress(RuntimeError):
            if self._until is not None:
                self._until.reschedule(self._loop.time())

    def _note_answer(self) -> None:
        if self._broken:
            self._broken = False
            logger.warning("The doorbell can be reached again.")

    def _note_outage(self, error: Exception) -> None:
        if not self._broken:
            self._broken = True
            logger.warning(
                "The doorbell cannot be reached, so changes arrive a moment later: %r",
                error,
            )


async def _receive_ring(layer: Any, channel: str) -> bool:
    """Wait for a message; return False if none came before the client's timeout."""
    try:
        await layer.receive(channel)
    except Exception as error:
        # redis-py reads for 5 s, and `channels_redis.core` waits for as long.
        if type(error).__name__ != "TimeoutError":
            raise
        return False
    return True


def shared_layer(alias: str) -> Any:
    """Return the channel layer that reaches other processes, None if there is none.

    Raises `ImproperlyConfigured` if it cannot be created.
    """
    try:
        layer = get_channel_layer(alias)
    except InvalidChannelLayerError as error:
        sentence = with_remedy(f'MCP["DOORBELL"]: {error}', error.__context__)
        raise ImproperlyConfigured(sentence) from error
    return None if isinstance(layer, InMemoryChannelLayer) else layer


async def why_unreachable(alias: str) -> str:
    """Ring once; return why that failed, "" if it did not, or there is no doorbell."""
    try:
        layer = shared_layer(alias)
        if layer is not None:
            async with asyncio.timeout(PATIENCE):
                await layer.group_send(GROUP, RING)
    except Exception as error:
        # Layers raise the exceptions of their servers' clients.
        return str(error) or type(error).__name__
    return ""
