"""Orderly shutdown: a signal is held back until the process has drained.

A server receives a signal in one of two ways: through a handler of `signal.signal`, or
through `loop.add_signal_handler`, which reads the signal's number as a byte from the
wake-up descriptor.  We intercept both.  Python handles signals in the main thread only:
if the first request runs in another thread, nothing is installed.

- daphne, uvicorn and gunicorn with uvicorn's worker use `signal.signal`: our handler
  runs before theirs. daphne's own would cancel every application at once.
- granian uses `loop.add_signal_handler`: we hold back the byte.
- gunicorn with threads runs no request in its main thread, so nothing is installed:
  `process.background` drains at exit.
- A server without a handler has the default action, which follows the drain.

The server's own shutdown timeout must be longer than the drain.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol, TypeAlias

SIGNALS = (signal.SIGTERM, signal.SIGINT)

Previous: TypeAlias = Callable[[int, FrameType | None], Any] | int | None


class Drainable(Protocol):
    """The process that is drained and closed."""

    loop: asyncio.AbstractEventLoop

    async def drain(self) -> None: ...
    def close(self) -> None: ...


def install_drain(process: Drainable) -> None:
    """Drain the process before its server handles SIGTERM or SIGINT."""
    if threading.current_thread() is threading.main_thread():
        _Drain(process).install()


class _Drain:
    """Holds back the signals of one process."""

    def __init__(self, process: Drainable) -> None:
        self._process = process
        self._previous: dict[int, Previous] = {}
        self._wakeups: _Wakeups | None = None
        self._held: list[int] = []
        self._task: asyncio.Future[None] | None = None
        self._done = False

    def install(self) -> None:
        for number in SIGNALS:
            previous = signal.getsignal(number)
            earlier = getattr(previous, "__self__", None)
            if isinstance(earlier, _Drain):
                # The handler of an older loop, or of the parent before a fork.
                previous = earlier.replaced(number)
            if previous not in (signal.SIG_IGN, None):
                self._previous[number] = previous
                signal.signal(number, self.signalled)
                # System calls in the middle of C code are restarted, not interrupted.
                signal.siginterrupt(number, False)
        self._wakeups = _Wakeups.of(self._process.loop, self._holds)

    def replaced(self, number: int) -> Previous:
        """Close, and return the handler that was there before."""
        if self._wakeups is not None:
            self._wakeups.close()
            self._wakeups = None
        return self._previous.get(number)

    def signalled(self, number: int, frame: FrameType | None) -> None:
        """Start to drain; another SIGINT skips the rest of the drain."""
        loop = self._process.loop
        if self._done or not loop.is_running():
            self._call_previous(number, frame)
        elif not self._held:
            self._held.append(number)
            loop.call_soon_threadsafe(self._start)
        elif number == signal.SIGINT:
            self._held.append(number)
            self._hand_on()

    def _start(self) -> None:
        self._task = asyncio.ensure_future(self._drained())

    async def _drained(self) -> None:
        try:
            await self._process.drain()
        finally:
            self._process.close()
            if not self._done:
                self._hand_on()

    def _hand_on(self) -> None:
        self._done = True
        for number in self._held:
            self._call_previous(number, None)
            if self._wakeups is not None:
                self._wakeups.hand_on(number)

    def _call_previous(self, number: int, frame: FrameType | None) -> None:
        previous = self._previous[number]
        if callable(previous):
            previous(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    def _holds(self, number: int) -> bool:
        return number in self._previous and not self._done


class _Wakeups:
    """Sits between Python and the loop, and filters the numbers of signals.

    Python writes the number of each signal to the wake-up descriptor, and the loop
    calls the handler that was added to it for that number.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        descriptor: int,
        holds: Callable[[int], bool],
    ) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._holds = holds
        self._pid = os.getpid()
        self._reads, self._writes = socket.socketpair()
        self._reads.setblocking(False)
        self._writes.setblocking(False)
        signal.set_wakeup_fd(self._writes.fileno(), warn_on_full_buffer=False)
        loop.add_reader(self._reads, self._read)

    @classmethod
    def of(
        cls, loop: asyncio.AbstractEventLoop, holds: Callable[[int], bool]
    ) -> _Wakeups | None:
        """Take the loop's place; return None if no loop handles signals itself."""
        descriptor = signal.set_wakeup_fd(-1)
        return None if descriptor == -1 else cls(loop, descriptor, holds)

    def hand_on(self, number: int) -> None:
        """Pass a signal on to the loop."""
        with contextlib.suppress(OSError):
            os.write(self._descriptor, bytes([number]))

    def close(self) -> None:
        """Restore the loop's descriptor, unless somebody else has replaced ours."""
        here = self._pid == os.getpid()
        current = signal.set_wakeup_fd(-1)
        if current != self._writes.fileno():
            signal.set_wakeup_fd(current)
        elif here:
            signal.set_wakeup_fd(self._descriptor)
        # A forked child shares its parent's selector, and must leave it alone.
        if here and not self._loop.is_closed():
            self._loop.remove_reader(self._reads)
        self._reads.close()
        self._writes.close()

    def _read(self) -> None:
        for number in self._reads.recv(4096):
            if not self._holds(number):
                self.hand_on(number)
