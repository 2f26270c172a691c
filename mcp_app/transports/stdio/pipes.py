"""Standard input and output: taken from user code, read and written.

Nothing of theirs is changed that others may share, such as that they block: what might
block is done by a thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import stat
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from typing import Final

from mcp_app.protocol.lines import line

logger = logging.getLogger("mcp_app.transports")

STDIN, STDOUT, STDERR = range(3)
CHUNK: Final = 64 * 1024
AHEAD: Final = 4
"""Chunks that are read before the first of them is taken."""
AT_ONCE: Final = select.PIPE_BUF if hasattr(select, "PIPE_BUF") else 512
"""Bytes that a pipe takes without waiting where it takes any (POSIX)."""
LOOK_S: Final = 0.1
MOST_QUEUED: Final = 64 * 1024 * 1024
"""A client for whom more bytes wait is given up."""


@cache
def take_standard_streams() -> tuple[int, int]:
    """Return descriptors of what is input and output at first, and nobody else's.

    From then on the process reads nothing and writes to standard error: what user
    code prints, what C code prints, and programs that are started. Raises OSError
    where there is no input or output, and changes nothing then.
    """
    # A copy takes the lowest number that is free: it must be none of the three.
    for needed in (STDIN, STDOUT):
        os.fstat(needed)
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.fstat(STDERR)
    except OSError:
        # There is no standard error: what is printed is lost.
        os.dup2(nothing, STDERR)
    incoming, outgoing = os.dup(STDIN), os.dup(STDOUT)
    _leave_nothing_to_others(nothing)
    if nothing == STDERR:
        os.set_inheritable(STDERR, True)
    else:
        os.close(nothing)
    return incoming, outgoing


def _leave_nothing_to_others(nothing: int) -> None:
    os.dup2(nothing, STDIN)
    os.dup2(STDERR, STDOUT)
    # What was printed before, and not written yet, is no message either.
    with suppress(AttributeError, OSError, ValueError):
        sys.stdout.flush()
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


class Input:
    """Reads a little ahead of who takes it.

    What the loop can watch it reads on the loop, where it is there; a file, which is
    always there, in a thread of its own.
    """

    def __init__(self, descriptor: int, ended: Callable[[], object]) -> None:
        """Tell `ended` on the loop as soon as all has come, taken or not."""
        self._descriptor = descriptor
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[tuple[bytes, float]] = asyncio.Queue()
        self._ahead = threading.Semaphore(AHEAD)
        self._watched = self._watches = False
        try:
            self._watch()
        except (NotImplementedError, OSError):
            threading.Thread(target=self._read, name="mcp-stdin", daemon=True).start()

    async def next(self) -> tuple[bytes, float]:
        """Return what came next, and when (monotonic); b"" stands for the end."""
        found = await self._chunks.get()
        self._ahead.release()
        if not self._watched and found[0] and self._watches:
            self._watch()
        return found

    def _watch(self) -> None:
        self._loop.add_reader(self._descriptor, self._readable)
        self._watches = self._watched = True

    def _readable(self) -> None:
        """Read what is there; look away while nobody takes it, and at the end."""
        data = None
        if self._ahead.acquire(blocking=False):
            data = self._some()
            if data is None:
                self._ahead.release()
                return
            self._came(data, time.monotonic())
        if not data:
            self._watched = False
            self._loop.remove_reader(self._descriptor)
        if data is None:
            self._look_for_the_end()

    def _look_for_the_end(self) -> None:
        """Who waits for more to be taken does not see the end come: look."""
        if self._watched:
            return
        if _nobody_writes(self._descriptor):
            self._ended()
        else:
            self._loop.call_later(LOOK_S, self._look_for_the_end)

    def _read(self) -> None:
        data = b"more"
        # The loop may close meanwhile: nobody reads any more.
        with suppress(RuntimeError):
            while data:
                self._ahead.acquire()
                data = self._some() or b""
                self._loop.call_soon_threadsafe(self._came, data, time.monotonic())

    def _some(self) -> bytes | None:
        """Read what is there; None where somebody with the same input was quicker."""
        try:
            return os.read(self._descriptor, CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            # A terminal that is gone.
            return b""

    def _came(self, data: bytes, when: float) -> None:
        self._chunks.put_nowait((data, when))
        if not data:
            self._ended()


def _nobody_writes(descriptor: int) -> bool:
    """Whether a pipe's or socket's other end is closed, read to its end or not."""
    if not hasattr(select, "poll"):
        return False
    closed = select.POLLHUP | getattr(select, "POLLRDHUP", 0)
    found = select.poll()
    found.register(descriptor, closed)
    return any(bits & closed for _, bits in found.poll(0))


class Output:
    """Writes at once what does not wait, and the rest in a thread of its own."""

    def __init__(self, descriptor: int, broken: Callable[[], object]) -> None:
        """Tell `broken` on the loop where nobody reads any more."""
        self._descriptor = descriptor
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._poll = _poll_of(descriptor)
        self._queue: SimpleQueue[bytes | asyncio.Event] = SimpleQueue()
        self._waiting = 0
        self._lock = threading.Lock()
        self._over = False
        threading.Thread(target=self._write, name="mcp-stdout", daemon=True).start()

    def message(self, message: bytes) -> None:
        """Write a message, or queue it; dropped where nobody reads.

        Used on the loop only.
        """
        if self._over:
            return
        data = line(message)
        if not self._waiting and len(data) <= AT_ONCE and self._takes_more():
            self._write_all(data)
        elif self._waiting > MOST_QUEUED:
            logger.warning("A client is given up: it reads nothing.")
            self._give_up()
        else:
            with self._lock:
                self._waiting += len(data)
            self._queue.put(data)

    def _takes_more(self) -> bool:
        """Whether so much as is written at once has room in the pipe."""
        return self._poll is not None and bool(self._poll.poll(0))

    async def written(self) -> None:
        """Return when all that was queued before is written."""
        event = asyncio.Event()
        self._queue.put(event)
        await event.wait()

    def _write(self) -> None:
        # The loop may close meanwhile: nobody waits any more.
        with suppress(RuntimeError):
            while True:
                data, events = self._next()
                if data and not self._over:
                    self._write_all(data)
                with self._lock:
                    # Only now: what is written at once must not overtake this.
                    self._waiting -= len(data)
                for event in events:
                    self._loop.call_soon_threadsafe(event.set)

    def _next(self) -> tuple[bytes, list[asyncio.Event]]:
        """Wait for something, and take what is there with it."""
        found = [self._queue.get()]
        with suppress(Empty):
            while True:
                found.append(self._queue.get_nowait())
        data = b"".join(each for each in found if isinstance(each, bytes))
        return data, [each for each in found if isinstance(each, asyncio.Event)]

    def _write_all(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._write_some(left) :]
        except OSError:
            self._loop.call_soon_threadsafe(self._give_up)

    def _write_some(self, data: memoryview) -> int:
        """Write what there is room for; wait where there is none."""
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            # Whoever shares the output made it so that it does not block by itself.
            select.select((), (self._descriptor,), ())
            return 0

    def _give_up(self) -> None:
        self._over = True
        self._broken()


def _poll_of(descriptor: int) -> select.poll | None:
    """Return what says that a pipe or socket has room; None for anything else."""
    mode = os.fstat(descriptor).st_mode
    if not hasattr(select, "poll") or not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return None
    found = select.poll()
    found.register(descriptor, select.POLLOUT)
    return found
