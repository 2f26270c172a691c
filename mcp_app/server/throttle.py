"""How often notifications of one kind may be sent: a burst, then a steady rate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mcp_app.conf import Limits

Send = Callable[[bytes], None]


class NotificationThrottle:
    """A token bucket on the loop's clock; used on the loop only."""

    def __init__(self, limits: Limits) -> None:
        self._free = not limits.rates
        self._tokens = self._burst = float(limits.progress_burst)
        self._rate = limits.progress_rate
        self._filled: float | None = None
        """When the tokens were counted last; None before the first message."""
        self._delayed: bytes | None = None
        self._timer: asyncio.TimerHandle | None = None

    def offer_message(self, message: bytes, send: Send, merge: bool) -> None:
        """Send a message or drop it; with `merge` the last one is sent later."""
        if self._free or self._take_token():
            self._drop_delayed()
            send(message)
        elif merge:
            self._delayed = message
            if self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(1 / self._rate, self.send_delayed, send)

    def send_delayed(self, send: Send) -> None:
        """Send the message that the rate has held back, if there is one."""
        delayed = self._delayed
        self._drop_delayed()
        if delayed is not None:
            self._take_token()
            send(delayed)

    def _drop_delayed(self) -> None:
        self._delayed = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _take_token(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._filled is not None:
            gained = (now - self._filled) * self._rate
            self._tokens = min(self._burst, self._tokens + gained)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
