"""Threads for our own database statements, in the pools that `POOLS` lists.

Neither the loop nor the threads of user code ever use their connections.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar

from django.db import Error as DatabaseError
from django.db import OperationalError, close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

from mcp_app.pools.connections import (
    ConnectionKiller,
    cut_connections,
    end_before_exit,
    is_outage,
    note_refusal,
    waits_for_a_lock,
)
from mcp_app.pools.loop_thread import settle_future
from mcp_app.pools.pump import PUMPS
from mcp_app.pools.user_threads import SUBSTITUTES
from mcp_app.protocol.errors import Unavailable

Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")

logger = logging.getLogger("mcp_app.pools")

RETRY_SECONDS = 5
MAX_ABANDONED = 3
"""Threads of each pool that may be abandoned while they hang."""
HANGS_S = 10.0
"""Seconds after which our work counts as hanging."""
MAX_PATIENCE_FACTOR = 8
"""If work hangs again and again, its time limit grows by at most this factor."""
AGAIN_S = 5.0
"""Seconds after which the connections of a cut thread are cut once more."""
NEVER = float("-inf")
TELL_EVERY_S = 10.0
"""Seconds between log messages in an outage, in which every request fails."""
IDLE_SECONDS = 10.0
"""A kept connection is closed after this many seconds without work."""
QUEUE_SECONDS = 10.0
"""Work that could not start within this many seconds is refused.

If each piece of work waits for the database until its time limit, the last of many
would wait for all of them.
"""


def unavailable() -> Unavailable:
    return Unavailable("The database cannot be reached.", retry_after=RETRY_SECONDS)


class Work:
    """A function for one of the threads, and the future of its caller."""

    __slots__ = ("function", "future", "post")

    def __init__(
        self,
        post: Callable[..., object],
        future: asyncio.Future[Any],
        function: Callable[[], Any],
    ) -> None:
        self.post = post
        self.future = future
        self.function = function

    def __call__(self) -> None:
        settle_future(self.post, self.future, self.function)

    def release_caller(self) -> None:
        """Release the caller; whether the work was done is not known."""
        settle_future(self.post, self.future, _raise_timeout)

    def refuse_caller(self) -> None:
        """Release the caller; the work was not started, and will not be."""
        settle_future(self.post, self.future, _raise_unavailable)


class RunningWork(NamedTuple):
    """What a thread is doing, and since when (monotonic)."""

    work: Work
    since: float


class PoolThread:
    """One of the threads ("hands"), as other threads see it."""

    def __init__(self, idle: float | None) -> None:
        self.thread: threading.Thread | None = None
        self.idle = idle
        """Seconds without work after which it closes its connections."""
        self.lock = threading.Lock()
        """While you hold it, `doing` does not end."""
        self.doing: RunningWork | None = None
        self.finished_some = False
        """Whether it has finished anything since its pool last cut off hanging work."""
        self.is_replaced = False
        """Whether another thread has its place: it does one more piece of work at
        most."""
        self.cut_at = NEVER
        """When its connections were cut; from then on it opens no others."""
        self.wrappers: Sequence[BaseDatabaseWrapper] = ()
        self.lines: dict[str, ConnectionKiller] = {}
        """The last connection that it opened to each database."""

    def is_alive(self) -> bool:
        return self.thread is not None and self.thread.is_alive()

    def has_a_successor(self) -> bool:
        # Another thread sets it: mypy does not know that.
        return self.is_replaced

    def open_lines(self) -> list[ConnectionKiller]:
        """Return the connections that can be cut: this thread still has them."""
        return [line for line in list(self.lines.values()) if line.is_attached()]

    def do_work(self, work: Work) -> None:
        """Do the work in the calling thread; raises nothing."""
        self.doing = RunningWork(work, time.monotonic())
        with _logging_failures():
            self.wrappers = self.wrappers or connections.all()
        with _logging_failures():
            work()
        with self.lock:
            self.doing = None
        if self.cut_at == NEVER:
            self.finished_some = True


_here = threading.local()


@receiver(connection_created, dispatch_uid="mcp_app.pools.database")
def _register_connection(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Remember how to cut a connection; a thread that was cut off must get none."""
    hand: PoolThread | None = getattr(_here, "hand", None)
    if hand is None:
        return
    if line := ConnectionKiller.from_wrapper(connection):
        hand.lines[connection.alias] = line
    # The order matters: `_give_up` sets `cut_at` first, and then looks for what to cut.
    if hand.cut_at > NEVER:
        connection.close()
        _raise_timeout()


def _raise_timeout() -> NoReturn:
    raise OperationalError("The database did not answer in time.")


def _raise_unavailable() -> NoReturn:
    raise unavailable()


class DatabaseThreads:
    """Threads with connections of their own, used from any loop.

    They are daemons, so a hanging database does not keep an ending process alive.  If
    the work is repeatable, a connection is kept while there is work, whatever the
    site's CONN_MAX_AGE: connecting costs many times what a check does.

    Work that takes longer than `patience` seconds counts as hanging.
    """

    def __init__(
        self,
        name: str,
        size: int = 1,
        *,
        repeatable: bool = False,
        patience: float = HANGS_S,
    ) -> None:
        self.size = size
        self.name = name
        self._idle = IDLE_SECONDS if repeatable else None
        self._around = _with_open_connections if repeatable else _with_connections
        self._patience = patience
        self._reset_state()
        # A forked child has none of its parent's threads.
        os.register_at_fork(after_in_child=self._reset_state)

    def _reset_state(self) -> None:
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._hands: list[PoolThread] = []
        self._abandoned: list[PoolThread] = []
        self._patience_factor = 1
        self._gave_up_at = self._logged_at = NEVER

    @property
    def busy(self) -> bool:
        with self._lock:
            return not self._queue.empty() or any(
                hand.doing is not None and hand.cut_at == NEVER
                for hand in (*self._hands, *self._abandoned)
            )

    async def run(
        self,
        function: Callable[Arguments, Value],
        *arguments: Arguments.args,
        **keywords: Arguments.kwargs,
    ) -> Value:
        """Run a function in one of the threads; raise its error or `Unavailable`."""
        loop = asyncio.get_running_loop()
        if PUMPS and (pump := PUMPS.get(loop)) is not None:
            return await pump.run_uncounted(partial(function, *arguments, **keywords))
        future: asyncio.Future[Value] = loop.create_future()
        context = contextvars.copy_context()
        if self not in FOR_THE_SITE:
            context.run(_begin_no_trace)
        call = partial(context.run, function, *arguments, **keywords)
        function_in_time = partial(
            _run_unless_late, partial(self._around, call), time.monotonic()
        )
        with self._lock:
            self._queue.put(Work(loop.call_soon_threadsafe, future, function_in_time))
            self._ensure_thread()
        try:
            return await future
        except DatabaseError as error:
            if not is_outage(error):
                raise
            note_refusal(error)
            now = time.monotonic()
            if now - self._logged_at >= TELL_EVERY_S:
                self._logged_at = now
                message = "%s: the database could not be used: %r"
                logger.warning(message, self.name, error)
            raise unavailable() from error

    def close(self) -> None:
        """End the threads and their connections when their work is done."""
        with self._lock:
            # A thread that was abandoned as it finished may wait for work, too.
            for _ in (*self._hands, *self._abandoned):
                self._queue.put(None)
            end_before_exit(each.thread for each in (*self._hands, *self._abandoned))
            self._queue = SimpleQueue()
            self._hands = []

    def replace_hanging(self, after: float = 0.0) -> None:
        """Abandon threads whose work has taken `after` seconds; start others.

        The others do the work that is queued behind a hanging statement; the caller of
        that statement still waits.  Each hanging thread holds a connection, so at most
        `MAX_ABANDONED` threads are abandoned.
        """
        now = time.monotonic()
        with self._lock:
            for hand in tuple(self._hands):
                doing = hand.doing
                if doing is not None and now - doing.since >= after:
                    self._abandon_thread(hand)

    def refuse_queued(self) -> None:
        with self._lock:
            self._refuse_all_work()

    def give_up(self, after: float | None = None) -> None:
        """Cut the connections of hanging threads; does not wait.

        Their callers get `Unavailable`, and other threads take their places.  A
        database that is only slow gets more time with each attempt, up to
        `MAX_PATIENCE_FACTOR`.
        """
        now = time.monotonic()
        with self._lock:
            # The patience shrinks only after a time long enough for another long
            # statement to hang: short ones that end meanwhile prove nothing.
            quiet = now - self._gave_up_at >= 2 * self._patience * self._patience_factor
            if quiet and any(hand.finished_some for hand in self._hands):
                self._patience_factor = 1
            patience = self._patience * self._patience_factor
            for hand in (*self._hands, *self._abandoned):
                doing = hand.doing
                # An abandoned thread has kept its caller waiting already.
                allowed_s = min(patience, HANGS_S) if hand.is_replaced else patience
                allowed_s = allowed_s if after is None else after
                if doing is not None and now - doing.since >= allowed_s:
                    self._give_up(hand, doing, now)
            if not self._queue.empty():
                self._ensure_thread()

    def _give_up(self, hand: PoolThread, doing: RunningWork, now: float) -> None:
        was_cut = hand.cut_at > NEVER
        if now - hand.cut_at < AGAIN_S:
            return
        if not hand.open_lines() and waits_for_a_lock(hand.wrappers):
            # A connection to SQLite cannot be cut; the lock will be released.
            return
        with hand.lock:
            if hand.doing is not doing:
                return
            # Set this first: the thread itself closes what it opens from now on.
            hand.cut_at = now
        cut_connections(hand.open_lines())
        if was_cut:
            # At the first cut its caller was released and its place taken.
            return
        logger.warning("%s: the database did not answer in time.", self.name)
        if doing.since >= self._gave_up_at:
            # This work started after the last cut: a new attempt hangs, too.
            self._patience_factor = min(self._patience_factor * 2, MAX_PATIENCE_FACTOR)
        self._gave_up_at = now
        for each in self._hands:
            each.finished_some = False
        doing.work.release_caller()
        self._abandon_thread(hand)

    def _abandon_thread(self, hand: PoolThread) -> None:
        """Let another thread take its place; the caller holds the lock."""
        self._abandoned = [each for each in self._abandoned if each.is_alive()]
        if hand not in self._hands or len(self._abandoned) >= MAX_ABANDONED:
            return
        hand.is_replaced = True
        self._abandoned.append(hand)
        self._hands.remove(hand)
        if not self._queue.empty():
            self._ensure_thread()

    def _ensure_thread(self) -> None:
        """Start a thread if there is room, or refuse all work; the lock is held."""
        self._hands = [each for each in self._hands if each.is_alive()]
        if len(self._hands) >= self.size:
            return
        hand = PoolThread(self._idle)
        hand.thread = threading.Thread(
            target=_serve_queue, args=(hand, self._queue), name=self.name, daemon=True
        )
        try:
            hand.thread.start()
            self._hands.append(hand)
        except Exception:
            logger.exception("%s: no thread could be started.", self.name)
            if not self._hands:
                self._refuse_all_work()

    def _refuse_all_work(self) -> None:
        with suppress(Empty):
            while (work := self._queue.get_nowait()) is not None:
                work.refuse_caller()


def _serve_queue(hand: PoolThread, queue: SimpleQueue[Work | None]) -> None:
    _here.hand = hand
    while (work := _next(queue, hand.idle)) is not None:
        # A thread that was replaced meanwhile must do this work, too: if it put the
        # work back, that might wait, even for ever if the pool was closed.
        hand.do_work(work)
        if hand.has_a_successor():
            break
        if hand.cut_at > NEVER:
            # It was cut off, but not replaced.
            _close_all()
            hand.cut_at = NEVER
    _close_all()


@contextmanager
def _logging_failures() -> Iterator[None]:
    """Log a failure outside the work itself; the thread goes on."""
    try:
        yield
    except Exception:
        logger.exception("A database thread raised an exception, and continues.")


def _close_all() -> None:
    with _logging_failures():
        for connection in connections.all(initialized_only=True):
            with _logging_failures():
                connection.close()


def _next(queue: SimpleQueue[Work | None], idle: float | None) -> Work | None:
    """Wait for work; close the connections after a while without any."""
    try:
        return queue.get(timeout=idle)
    except Empty:
        _close_all()
        return queue.get()


def _begin_no_trace() -> None:
    """Switch off tracing for a statement of ours that no span surrounds.

    Otherwise each change check of an idle process would be a trace of its own.
    """
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is not None and not trace.get_current_span().get_span_context().is_valid:
        otel: Any = sys.modules["opentelemetry.context"]
        otel.attach(otel.set_value("suppress_instrumentation", True))


def _run_unless_late(function: Callable[[], Value], queued: float) -> Value:
    if time.monotonic() - queued > QUEUE_SECONDS:
        raise Unavailable("Too much waits for the database.", retry_after=RETRY_SECONDS)
    return function()


def _with_connections(function: Callable[[], Value]) -> Value:
    close_old_connections()
    try:
        return function()
    except DatabaseError as error:
        if is_outage(error):
            # A former primary server would answer reads but refuse writes.
            _close_all()
        raise
    finally:
        close_old_connections()


def _with_open_connections(function: Callable[[], Value]) -> Value:
    """Call a function; if a kept connection is broken, call it again on a new one."""
    open_before = [each for each in connections.all() if each.connection is not None]
    try:
        return function()
    except Exception as error:
        _close_all()
        if not open_before or not is_outage(error):
            raise
        return function()


checks = DatabaseThreads("mcp-checks", repeatable=True)
"""Checks for changes wait for nothing else.  `replace_hanging` handles those that hang.
"""
reader = DatabaseThreads("mcp-reader", repeatable=True, patience=60.0)
"""Loading a large catalog takes long."""
lookups = DatabaseThreads("mcp-lookups", repeatable=True, patience=30.0)
"""Look-ups of what clients send, such as tokens: strangers may keep them busy."""
writer = DatabaseThreads("mcp-writer")
"""All other writes; they are not repeated if their connection is broken."""
log_writer = DatabaseThreads("mcp-log", repeatable=True)
"""Messages to clients wait for no other statement of ours."""
call_writer = DatabaseThreads("mcp-calls", repeatable=True)
"""The call log is written afterwards, and delays no call."""
authenticators = DatabaseThreads("mcp-authentication", 4, patience=30.0)
"""Authenticators of the site never wait for a thread of user code."""
judges = DatabaseThreads("mcp-rules", 2, patience=30.0)
"""Rules of the site: one that hangs delays no authentication."""
FOR_THE_SITE = (authenticators, judges)
"""Pools that run functions of the site, whose statements may be traced."""
POOLS = (
    *(checks, reader, lookups, writer),
    *(log_writer, call_writer, authenticators, judges),
)
"""All pools, for counting or closing their connections."""


def give_up_hanging(after: float | None = None) -> None:
    for pool in POOLS:
        try:
            pool.give_up(after)
        except Exception:
            logger.exception("%s: threads that hang could not be abandoned.", pool.name)


def give_up_everything() -> None:
    for pool in POOLS:
        pool.refuse_queued()
    give_up_hanging(0.0)


THREADS_OF_LOOP = 1
"""All statements of async user code run in one thread."""


@dataclass(frozen=True, slots=True)
class Connections:
    """Connections of one process: the usual number, and the most there can be.

    It needs more than `usual` if threads are added: for calls that wait for a person or
    hang, for people who call while all threads are busy, and after statements of ours
    that hung.  Django's connections for the site's own pages are not counted here.
    """

    usual: int
    most: int


def connections_of_process(threads: int) -> Connections:
    """Return how many one process may open; `threads` is the setting of that name."""
    for_statements = sum(each.size for each in POOLS) + THREADS_OF_LOOP
    return Connections(
        for_statements + threads,
        for_statements + MAX_ABANDONED * len(POOLS) + threads * SUBSTITUTES,
    )


def pool_size(pool: object) -> int:
    """Return the size that psycopg_pool makes of Django's option `pool`."""
    options = pool if isinstance(pool, Mapping) else {}
    return int(options.get("max_size") or options.get("min_size", 4))
