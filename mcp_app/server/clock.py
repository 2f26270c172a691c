"""The time of a call: it stands while a question to the client is open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CallClock:
    """Calls `expired` on the loop when the seconds are used up."""

    __slots__ = ("_ends", "_expired", "_handle", "_left", "_loop", "_open")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float | None,
        expired: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._left = seconds
        self._expired = expired
        self._open = 0
        self._ends = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if self._left is not None:
            self._ends = self._loop.time() + self._left
            self._handle = self._loop.call_at(self._ends, self._expired)

    def stop(self) -> None:
        """Stop for good, or until `start`; what is left is kept."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
            self._left = max(0.0, self._ends - self._loop.time())

    def left(self) -> float | None:
        """Return the seconds that are left, None where there is no limit."""
        if self._handle is None:
            return self._left
        return max(0.0, self._ends - self._loop.time())

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Let the clock stand; several questions may be open at once."""
        self._open += 1
        self.stop()
        try:
            yield
        finally:
            self._open -= 1
            if self._open == 0:
                self.start()
