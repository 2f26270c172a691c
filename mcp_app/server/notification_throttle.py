"""How often notifications of one kind may be sent: a burst, then a steady rate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_app.conf import Limits

Send = Callable[[bytes], None]


class NotificationThrottle:
    """A token bucket on the loop's clock; used on the loop only."""

    def __init__(self, limits: Limits) -> None:
        self._free = not limits.rates
        self._tokens = float(limits.progress_burst)
        self._burst = self._tokens
        self._rate = limits.progress_rate
        self._filled: float | None = None
        self._held: bytes | None = None
        self._timer: asyncio.TimerHandle | None = None

    def offer(self, message: bytes, send: Send, merge: bool) -> None:
        """Send a message or drop it; with `merge` the last one is sent later."""
        if self._free or self._take():
            self._drop_held()
            send(message)
        elif merge:
            self._held = message
            if self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(1 / self._rate, self.flush, send)

    def flush(self, send: Send) -> None:
        """Send the held message."""
        held = self._held
        self._drop_held()
        if held is not None:
            self._take()
            send(held)

    def _drop_held(self) -> None:
        self._held = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _take(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._filled is not None:
            gained = (now - self._filled) * self._rate
            self._tokens = min(self._burst, self._tokens + gained)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
