"""Stopping in order: a signal handler of ours, chained before the server's.

It drains first and hands the signal on then.  Signals can be handled in the main
thread only: where the first request runs elsewhere, nothing is installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

SIGNALS = (signal.SIGTERM, signal.SIGINT)

Previous = Callable[[int, FrameType | None], Any]


class Drainable(Protocol):
    """What is stopped."""

    loop: asyncio.AbstractEventLoop

    async def drain(self) -> None: ...
    def close(self) -> None: ...


def install_drain(process: Drainable) -> None:
    """Drain the process before the server's own handler gets its signal."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in SIGNALS:
        previous = signal.getsignal(number)
        if callable(previous) and not isinstance(previous, _Drain):
            signal.signal(number, _Drain(process, previous))
            # The loop sleeps in a system call: a signal must wake it up.
            with contextlib.suppress(NotImplementedError):
                signal.siginterrupt(number, False)


class _Drain:
    def __init__(self, process: Drainable, previous: Previous) -> None:
        self._process = process
        self._previous = previous
        self._task: asyncio.Future[None] | None = None
        self._asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            # Whoever asks twice is in a hurry.
            self._previous(number, frame)
            return
        self._asked = True
        loop = self._process.loop
        if loop.is_running():
            loop.call_soon_threadsafe(self._start, number)
        else:
            self._previous(number, frame)

    def _start(self, number: int) -> None:
        self._task = asyncio.ensure_future(self._drained(number))

    async def _drained(self, number: int) -> None:
        try:
            await self._process.drain()
        finally:
            self._process.close()
            self._previous(number, None)
