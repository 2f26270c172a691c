"""Takes standard input and output away from user code; reads and writes them.

Other processes may share them, so their blocking mode is not changed: what might block
runs in threads.
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

from mcp_app.protocol.framing import encode_line

logger = logging.getLogger("mcp_app.transports")

STDIN, STDOUT, STDERR = range(3)
CHUNK: Final = 64 * 1024
AHEAD: Final = 4
"""Chunks that are read before the first of them is taken."""
ATOMIC_WRITE_SIZE: Final = select.PIPE_BUF if hasattr(select, "PIPE_BUF") else 512
"""Bytes that a pipe takes without waiting, if it takes any (POSIX)."""
LOOK_S: Final = 0.1
"""Seconds between looks for the end of an input that is not watched."""
MAX_QUEUED_BYTES: Final = 64 * 1024 * 1024
"""A client for whom more bytes wait is given up."""


@cache
def take_standard_streams() -> tuple[int, int]:
    """Return private descriptors of the standard input and output.

    From then on user code, C code and started programs read nothing, and print to
    standard error. Raises OSError, and changes nothing, if there is no input or
    output.
    """
    # A new descriptor takes the lowest free number: that must not be 0 or 1.
    for needed in (STDIN, STDOUT):
        os.fstat(needed)
    null = os.open(os.devnull, os.O_RDWR)
    try:
        os.fstat(STDERR)
    except OSError:
        # There is no standard error: prints are lost.
        os.dup2(null, STDERR)
    incoming, outgoing = os.dup(STDIN), os.dup(STDOUT)
    os.dup2(null, STDIN)
    os.dup2(STDERR, STDOUT)
    # Earlier prints that are still buffered go to standard error, too.
    with suppress(AttributeError, OSError, ValueError):
        sys.stdout.flush()
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if null == STDERR:
        os.set_inheritable(STDERR, True)
    else:
        os.close(null)
    return incoming, outgoing


class Input:
    """Reads a little ahead of its consumer.

    The loop reads pipes and terminals when they have data.  It cannot watch files:
    a separate thread reads those.
    """

    def __init__(self, descriptor: int, ended: Callable[[], object]) -> None:
        """Call `ended` on the loop when the input ends, even if chunks still wait."""
        self._descriptor = descriptor
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[tuple[bytes, float]] = asyncio.Queue()
        self._ahead = threading.Semaphore(AHEAD)
        # Whether the loop watches the input now, and whether it can watch it at all.
        self._watched = self._watches = False
        try:
            self._watch_descriptor()
        except (NotImplementedError, OSError):
            _start_thread(self._read_in_thread, "mcp-stdin")

    async def next_chunk(self) -> tuple[bytes, float]:
        """Return the next chunk and its arrival (monotonic); b"" is the end."""
        chunk = await self._chunks.get()
        self._ahead.release()
        if not self._watched and chunk[0] and self._watches:
            self._watch_descriptor()
        return chunk

    def _watch_descriptor(self) -> None:
        self._loop.add_reader(self._descriptor, self._read_ready_chunk)
        self._watches = self._watched = True

    def _read_ready_chunk(self) -> None:
        """Read a chunk; stop watching while nobody takes it, and at the end."""
        data = None
        if self._ahead.acquire(blocking=False):
            data = self._read_chunk()
            if data is None:
                self._ahead.release()
                return
            self._put_chunk(data, time.monotonic())
        if not data:
            self._watched = False
            self._loop.remove_reader(self._descriptor)
        if data is None:
            self._look_for_the_end()

    def _look_for_the_end(self) -> None:
        """Poll for the end of the input while it is not watched."""
        if self._watched:
            return
        if _nobody_writes(self._descriptor):
            self._ended()
        else:
            self._loop.call_later(LOOK_S, self._look_for_the_end)

    def _read_in_thread(self) -> None:
        data = b"more"  # anything: only b"" is the end
        # The loop may close meanwhile: nobody reads any more.
        with suppress(RuntimeError):
            while data:
                self._ahead.acquire()
                data = self._read_chunk() or b""
                self._loop.call_soon_threadsafe(self._put_chunk, data, time.monotonic())

    def _read_chunk(self) -> bytes | None:
        """Read a chunk; None if another reader of the same input was quicker."""
        try:
            return os.read(self._descriptor, CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            # A terminal that is gone.
            return b""

    def _put_chunk(self, data: bytes, when: float) -> None:
        self._chunks.put_nowait((data, when))
        if not data:
            self._ended()


def _start_thread(target: Callable[[], None], name: str) -> None:
    threading.Thread(target=target, name=name, daemon=True).start()


def _nobody_writes(descriptor: int) -> bool:
    """Whether the other end of a pipe or socket is closed, even with data unread."""
    if not hasattr(select, "poll"):
        return False
    closed = select.POLLHUP | getattr(select, "POLLRDHUP", 0)
    poller = select.poll()
    poller.register(descriptor, closed)
    return any(bits & closed for _, bits in poller.poll(0))


class Output:
    """Writes at once if that does not block, and the rest in a thread."""

    def __init__(self, descriptor: int, broken: Callable[[], object]) -> None:
        """Call `broken` on the loop if nobody reads any more."""
        self._descriptor = descriptor
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._poll = _poll_for_room(descriptor)
        self._queue: SimpleQueue[bytes | asyncio.Event] = SimpleQueue()
        self._waiting = 0
        self._lock = threading.Lock()
        self._over = False
        _start_thread(self._write_in_thread, "mcp-stdout")

    def write_message(self, message: bytes) -> None:
        """Write a message, or queue it; dropped if nobody reads."""
        if self._over:
            return
        data = encode_line(message)
        if not self._waiting and len(data) <= ATOMIC_WRITE_SIZE and self._has_room():
            self._write_all(data)
        elif self._waiting > MAX_QUEUED_BYTES:
            logger.warning(
                "The connection to a client ends, because it does not read its"
                " messages."
            )
            self._give_up_client()
        else:
            with self._lock:
                self._waiting += len(data)
            self._queue.put(data)

    def count_waiting(self) -> int:
        """Return how many bytes are queued."""
        return self._waiting

    def _has_room(self) -> bool:
        """Whether the pipe has room for `ATOMIC_WRITE_SIZE` bytes."""
        return self._poll is not None and bool(self._poll.poll(0))

    async def wait_until_written(self) -> None:
        """Return when all that was queued before is written."""
        event = asyncio.Event()
        self._queue.put(event)
        await event.wait()

    def _write_in_thread(self) -> None:
        # The loop may close meanwhile: nobody waits any more.
        with suppress(RuntimeError):
            while True:
                data, events = self._next_batch()
                if data and not self._over:
                    self._write_all(data)
                with self._lock:
                    # Only now: `write_message` must not overtake these bytes.
                    self._waiting -= len(data)
                for event in events:
                    self._loop.call_soon_threadsafe(event.set)

    def _next_batch(self) -> tuple[bytes, list[asyncio.Event]]:
        """Wait for a message, and take others with it."""
        items = [self._queue.get()]
        with suppress(Empty):
            while True:
                items.append(self._queue.get_nowait())
        data = b"".join(item for item in items if isinstance(item, bytes))
        return data, [item for item in items if isinstance(item, asyncio.Event)]

    def _write_all(self, data: bytes) -> None:
        unwritten = memoryview(data)
        try:
            while unwritten:
                unwritten = unwritten[self._write_part(unwritten) :]
        except OSError:
            self._loop.call_soon_threadsafe(self._give_up_client)

    def _write_part(self, data: memoryview) -> int:
        """Write what there is room for; wait if there is none."""
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            # Another process that shares the output made it non-blocking.
            select.select((), (self._descriptor,), ())
            return 0

    def _give_up_client(self) -> None:
        self._over = True
        self._broken()


def _poll_for_room(descriptor: int) -> select.poll | None:
    """Return a poll for room in a pipe or socket; None for anything else."""
    mode = os.fstat(descriptor).st_mode
    if not hasattr(select, "poll") or not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return None
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT)
    return poller
