"""A call's time limit, paused while a question to the client is open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CallClock:
    """Calls `expired` on the loop when the seconds since `began` are used up.

    Time counts from `began`; the timer starts with `start_timer`.
    """

    __slots__ = ("_began", "_expired", "_handle", "_left", "_loop", "_open")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float | None,
        expired: Callable[[], None],
        began: float,
    ) -> None:
        self._loop = loop
        self._left = seconds
        self._expired = expired
        self._open = 0
        self._began: float | None = began
        self._handle: asyncio.TimerHandle | None = None

    def start_timer(self) -> None:
        """Make sure that `expired` is called when the time is used up."""
        left = self.seconds_left()
        if left is not None and self._began is not None and self._handle is None:
            self._handle = self._loop.call_later(left, self._expired)

    def pause_timer(self) -> None:
        """Pause; the remaining seconds are kept."""
        self._left = self.seconds_left()
        self._began = None
        self.close()

    def close(self) -> None:
        """Cancel the timer for good."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def seconds_left(self) -> float | None:
        """Return the seconds that are left, None if there is no limit."""
        if self._left is None or self._began is None:
            return self._left
        return max(0.0, self._left - (self._loop.time() - self._began))

    @property
    def is_question_open(self) -> bool:
        """Whether a question is open."""
        return self._open > 0

    @contextmanager
    def pause_for_question(self) -> Iterator[None]:
        """Pause the clock; several questions may be open at once."""
        self._open += 1
        self.pause_timer()
        try:
            yield
        finally:
            self._open -= 1
            if self._open == 0:
                self._began = self._loop.time()
                self.start_timer()
