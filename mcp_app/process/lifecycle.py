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
import logging
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseError

from mcp_app import conf
from mcp_app.audit.call_log import CallLog
from mcp_app.auth.token_cache import token_cache
from mcp_app.catalog.lint import registry_problems, unknown_rules
from mcp_app.catalog.registry import mcp
from mcp_app.egress.client import close_connections
from mcp_app.pools.database import POOLS, give_up_everything
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.protocol.errors import Unavailable
from mcp_app.server.run import End

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process

# -- drain -----------------------------------------------------------------------------
# The drain: running calls get time to end, and their answers are sent.

LAST_WORDS = 1.0
"""Seconds in which the last messages of streams and calls may still be sent."""
LAST_CALLS = 2.0
"""Seconds in which the last records of the call log may still be written."""
LAST_BYTES = 0.1


def retry_seconds() -> int:
    """Return seconds until a client should come back, spread over the clients."""
    return random.randint(2, 5)  # noqa: S311 - no secret


async def drain_process(process: Process, patience: float, end: End) -> None:
    """End uploads and streams; end calls that run on after `patience` seconds."""
    process.uploads.give_up_all()
    for listener in process.listeners:
        listener.end(retry_ms=1_000 * retry_seconds())
    looks = process.sse_reader.looks_after_next_poll

    def is_at_work() -> bool:
        # A client that is connected here may have a call that has just begun elsewhere.
        # When this process is gone, other processes close the client's session.
        waited_for = process.sse_reader.has_work_until(looks)
        return bool(
            process.running
            or process.tasks
            or process.event_delivery
            or process.log.is_committing
            or waited_for
        )

    await _wait_while(is_at_work, patience, 0.05)
    process.uploads.give_up_all()
    for run in process.running:
        run.stop(end)
    await _wait_while(
        lambda: bool(
            process.running
            or process.tasks
            or process.listeners
            or process.log.is_committing
        ),
        LAST_WORDS,
    )
    process.doorbell.close()
    await close_connections()
    # A call ends before its answer is sent; some servers cut the connection then.
    await asyncio.sleep(LAST_BYTES)
    await write_call_log(process.audit)
    with suppress(DatabaseError, Unavailable):
        await token_cache.write_uses()
    await process.heartbeat.end()
    await _wait_while(lambda: any(pool.busy for pool in POOLS), LAST_WORDS)
    # Otherwise the server would wait for requests that wait for the database.
    give_up_everything()


async def _wait_while(
    condition: Callable[[], bool], seconds: float, pause: float = 0.02
) -> None:
    """Wait until the condition is false, for at most so many seconds."""
    deadline = time.monotonic() + seconds
    while condition() and time.monotonic() < deadline:
        await asyncio.sleep(pause)


async def write_call_log(audit: CallLog | None) -> None:
    """Write pending records of the call log, within `LAST_CALLS` seconds."""
    await _wait_while(partial(_write_pending, audit), LAST_CALLS)


def _write_pending(audit: CallLog | None) -> bool:
    """Write pending records of the call log; return whether there were any."""
    if audit is None or not audit.has_pending:
        return False
    audit.write_pending()
    return True


# -- startup log -----------------------------------------------------------------------
# Logs what the system checks find, because no check runs in a server process.
#
# Each sentence is logged once.

logger = logging.getLogger("mcp_app.process")

_logged: set[str] = set()


def log_problems() -> None:
    _log_sentences_once(logging.ERROR, registry_problems(mcp))
    # Tools of toolsets are made when they are asked for.
    unknown = [sentence for sentence, _ in unknown_rules(mcp)]
    _log_sentences_once(logging.ERROR, mcp.toolset_problems)
    _log_sentences_once(logging.WARNING, unknown)


def log_closed_hosts() -> None:
    """Log an error if DEBUG is off and the settings refuse every host."""
    if settings.DEBUG:
        return
    # Settings that cannot be read have a check of their own.
    with suppress(ImproperlyConfigured):
        if conf.refuses_every_host(conf.current_settings()):
            sentence = f"{conf.EVERY_HOST_REFUSED} {conf.NAME_HOSTS_HINT}"
            _log_sentences_once(logging.ERROR, [sentence])


def _log_sentences_once(level: int, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        if sentence not in _logged:
            _logged.add(sentence)
            logger.log(level, "%s", sentence)


# -- lifecycle -------------------------------------------------------------------------

SIGNALS = (signal.SIGTERM, signal.SIGINT)

Previous: TypeAlias = Callable[[int, FrameType | None], Any] | int | None


class Drainable(Protocol):
    """The process that is drained and closed."""

    loop: asyncio.AbstractEventLoop
    at_close: Callable[[], None] | None

    async def drain(self) -> None: ...
    def close(self) -> None: ...


def install_drain(process: Drainable) -> None:
    if threading.current_thread() is threading.main_thread():
        _Drain(process).install_handlers()


class _Drain:
    def __init__(self, process: Drainable) -> None:
        self._process = process
        self._previous: dict[int, Previous] = {}
        self._wakeups: _Wakeups | None = None
        self._pending_signals: list[int] = []
        self._task: asyncio.Future[None] | None = None
        self._done = False

    def install_handlers(self) -> None:
        for number in SIGNALS:
            previous = signal.getsignal(number)
            earlier = getattr(previous, "__self__", None)
            if isinstance(earlier, _Drain):
                # The handler of an older loop, or of the parent before a fork.
                previous = earlier.detach_handler(number)
            # None stands for a handler that C code has installed.
            if previous not in (signal.SIG_IGN, None):
                self._previous[number] = previous
                signal.signal(number, self.handle_signal)
                # System calls in the middle of C code are restarted, not interrupted.
                signal.siginterrupt(number, False)
        descriptor = signal.set_wakeup_fd(-1)
        # Without a descriptor, the loop handles no signals itself.
        if descriptor != -1:
            self._wakeups = _Wakeups(
                self._process.loop, descriptor, self._defers_signal
            )

    def detach_handler(self, number: int) -> Previous:
        """Close, and return the handler that was there before."""
        if self._wakeups is not None:
            self._wakeups.close()
            self._wakeups = None
        return self._previous.get(number)

    def handle_signal(self, number: int, frame: FrameType | None) -> None:
        """Start to drain; another SIGINT skips the rest of the drain."""
        loop = self._process.loop
        if self._done or not loop.is_running():
            self._call_previous(number, frame)
        elif not self._pending_signals:
            self._pending_signals.append(number)
            loop.call_soon_threadsafe(self._start_drain)
        elif number == signal.SIGINT:
            self._pending_signals.append(number)
            self._forward_signals()

    def _start_drain(self) -> None:
        self._task = start_background_task(self._drain_process())

    async def _drain_process(self) -> None:
        try:
            await self._process.drain()
        finally:
            # Later requests must be refused: if one started a new process, that would
            # leave a row behind.
            self._process.at_close = None
            self._process.close()
            if not self._done:
                self._forward_signals()

    def _forward_signals(self) -> None:
        self._done = True
        for number in self._pending_signals:
            self._call_previous(number, None)
            if self._wakeups is not None:
                self._wakeups.forward_signal(number)

    def _call_previous(self, number: int, frame: FrameType | None) -> None:
        previous = self._previous[number]
        if callable(previous):
            previous(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    def _defers_signal(self, number: int) -> bool:
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
        loop.add_reader(self._reads, self._read_signals)

    def forward_signal(self, number: int) -> None:
        with suppress(OSError):
            os.write(self._descriptor, bytes([number]))

    def close(self) -> None:
        """Restore the loop's descriptor, unless other code has replaced ours."""
        is_same_process = self._pid == os.getpid()
        current = signal.set_wakeup_fd(-1)
        if current != self._writes.fileno():
            signal.set_wakeup_fd(current)
        elif is_same_process:
            signal.set_wakeup_fd(self._descriptor)
        # A forked child shares its parent's selector, and must leave it alone.
        if is_same_process and not self._loop.is_closed():
            self._loop.remove_reader(self._reads)
        self._reads.close()
        self._writes.close()

    def _read_signals(self) -> None:
        for number in self._reads.recv(4096):
            if not self._holds(number):
                self.forward_signal(number)
