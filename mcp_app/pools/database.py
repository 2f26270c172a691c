"""Threads of our own for statements: one reader, one writer, some that authenticate.

Neither the loop nor user code's threads ever hold one of their connections.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, ParamSpec, TypeVar

from django.db import Error as DatabaseError
from django.db import OperationalError, close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

from mcp_app.pools.cutting import Line, cut, waits_for_a_lock
from mcp_app.pools.futures import settle
from mcp_app.pools.outages import is_outage
from mcp_app.protocol.errors import Unavailable

Returned = TypeVar("Returned")
Arguments = ParamSpec("Arguments")

logger = logging.getLogger("mcp_app.pools")

RETRY_SECONDS = 5
MOST_LEFT = 3
"""Threads of each kind that are left alone with what hangs."""
HANGS_S = 10.0
"""Work of ours that takes so long hangs, as far as anybody knows."""
MOST_TIMES = 8
"""So many times as long it takes at most, where it hangs again and again."""
AGAIN_S = 5.0
NEVER = float("-inf")
IDLE_SECONDS = 10.0
"""A connection that is kept is closed when nothing was read for so long."""
QUEUE_SECONDS = 10.0
"""Work that could not begin for so long is refused.

Where each piece before it waits for the database until it may wait no more, the last
of many would wait for all of them.
"""


def unavailable() -> Unavailable:
    """Return the answer to a request that needs the database in an outage."""
    return Unavailable("The database cannot be reached.", retry_after=RETRY_SECONDS)


class Work:
    """A function for one of the threads, and the future of whoever waits for it."""

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
        settle(self.post, self.future, self.function)

    def give_up(self) -> None:
        """Let nobody wait for it any more: whether it was done is not known."""
        settle(self.post, self.future, _gave_up)


class Hand:
    """One of the threads, as the others see it."""

    __slots__ = (
        "cut_at",
        "ended",
        "idle",
        "left",
        "lines",
        "since",
        "thread",
        "work",
        "wrappers",
    )

    def __init__(self, idle: float | None) -> None:
        self.thread: threading.Thread | None = None
        self.idle = idle
        """After so many seconds without work it closes its connections."""
        self.work: Work | None = None
        """What it is doing, `since` when (monotonic)."""
        self.since = 0.0
        self.ended = False
        """Whether it has done anything to its end."""
        self.left = False
        """Whether another has its place: it takes no more work."""
        self.cut_at = NEVER
        """When its connections were cut; from then on it opens no other."""
        self.wrappers: Sequence[BaseDatabaseWrapper] = ()
        self.lines: dict[str, Line] = {}
        """The last connection that it opened to each database."""

    def is_alive(self) -> bool:
        return self.thread is not None and self.thread.is_alive()

    def has_left(self) -> bool:
        return self.left

    def open_lines(self) -> list[Line]:
        """Return what can be cut; a connection of Django's pool may be another's."""
        lines = [(each, self.lines.get(each.alias)) for each in self.wrappers]
        return [
            line
            for each, line in lines
            if line is not None and each.connection is line.driver
        ]

    def at_it_for(self, now: float) -> float:
        """Return for how many seconds it has done what it does; 0 if nothing."""
        since = self.since
        return now - since if self.work is not None else 0.0


_here = threading.local()


@receiver(connection_created, dispatch_uid="mcp_app.pools.database")
def _connected(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Remember how to cut it; who was given up must not write when it is back."""
    hand: Hand | None = getattr(_here, "hand", None)
    if hand is None:
        return
    if line := Line.of(connection.connection):
        hand.lines[connection.alias] = line
    # In this order: who cuts says so first, and looks then for what to cut.
    if hand.cut_at > NEVER:
        connection.close()
        _gave_up()


def _gave_up() -> NoReturn:
    raise OperationalError("The database did not answer in time.")


class DatabaseThreads:
    """Threads with connections of their own, asked from any loop.

    They are daemons: a database that hangs does not keep a process that ends.  Where
    what they do may be done twice, a connection is kept while there is work, whatever
    the site's CONN_MAX_AGE: to connect costs many times what a check does.

    Work that takes longer than `patience` seconds hangs.
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
        self._around = _with_kept_connections if repeatable else _with_connections
        self._patience = patience
        self._begin()
        # A fork has none of its parent's threads.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._hands: list[Hand] = []
        self._left: list[Hand] = []
        self._times = 1

    async def run(
        self,
        function: Callable[Arguments, Returned],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Returned:
        """Run a function there; what it raises is raised here.

        A database that cannot be reached, or that others keep busy, is `Unavailable`.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Returned] = loop.create_future()
        call = partial(contextvars.copy_context().run, function, *arguments, **named)
        self._put(
            Work(
                loop.call_soon_threadsafe,
                future,
                partial(_in_time, partial(self._around, call), time.monotonic()),
            )
        )
        try:
            return await future
        except DatabaseError as error:
            if not is_outage(error):
                raise
            raise unavailable() from error

    def close(self) -> None:
        """End the threads and their connections when their work is done."""
        with self._lock:
            for _ in self._hands:
                self._queue.put(None)
            self._queue = SimpleQueue()
            self._hands = []

    def replace(self, after: float = 0.0) -> None:
        """Leave threads alone that do the same for so many seconds; others go on.

        What waits behind a statement that hangs is done by the others; whoever waits
        for that statement waits on.  Each thread that hangs holds a connection, so that
        beyond `MOST_LEFT` of them everybody waits.
        """
        now = time.monotonic()
        with self._lock:
            for hand in tuple(self._hands):
                if hand.work is not None and hand.at_it_for(now) >= after:
                    self._leave(hand)

    def give_up(self, after: float | None = None) -> None:
        """Cut the connections of threads that hang; does not wait.

        Whoever waits for them hears of an outage, and others take their places.  A
        database that is only slow gets more time with each try, up to `MOST_TIMES`.
        """
        now = time.monotonic()
        with self._lock:
            if any(hand.ended for hand in self._hands):
                self._times = 1
            patience = self._patience * self._times
            for hand in (*self._hands, *self._left):
                # Whoever was left alone has kept somebody waiting already.
                own = min(patience, HANGS_S) if hand.left else patience
                if hand.at_it_for(now) >= (own if after is None else after):
                    self._give_up(hand, now)

    def _give_up(self, hand: Hand, now: float) -> None:
        """Locked."""
        work, again = hand.work, hand.cut_at > NEVER
        if work is None or now - hand.cut_at < AGAIN_S:
            return
        if waits_for_a_lock(hand.wrappers):
            return
        # First this: what it opens from now on it closes by itself.
        hand.cut_at = now
        cut(hand.open_lines())
        if again:
            return
        logger.warning("%s: the database did not answer in time.", self.name)
        self._times = min(self._times * 2, MOST_TIMES)
        self._leave(hand)
        work.give_up()

    def _leave(self, hand: Hand) -> None:
        """Let another have its place; locked."""
        self._left = [each for each in self._left if each.is_alive()]
        if hand not in self._hands or len(self._left) >= MOST_LEFT:
            return
        hand.left = True
        self._left.append(hand)
        self._hands.remove(hand)
        if not self._queue.empty():
            self._start()

    def _put(self, work: Work) -> None:
        with self._lock:
            if len(self._hands) < self.size:
                self._start()
            self._queue.put(work)

    def _start(self) -> None:
        """Start a thread; locked."""
        hand = Hand(self._idle)
        hand.thread = threading.Thread(
            target=_serve, args=(hand, self._queue), name=self.name, daemon=True
        )
        self._hands.append(hand)
        hand.thread.start()


def _serve(hand: Hand, queue: SimpleQueue[Work | None]) -> None:
    _here.hand = hand
    hand.wrappers = connections.all()
    while (work := _next(queue, hand.idle)) is not None:
        if hand.has_left():
            queue.put(work)
            break
        hand.since = time.monotonic()
        hand.work = work
        work()
        hand.work = None
        hand.ended = True
        if hand.has_left():
            break
        if hand.cut_at > NEVER:
            # Nobody could take its place.
            connections.close_all()
            hand.cut_at = NEVER
    connections.close_all()


def _next(queue: SimpleQueue[Work | None], idle: float | None) -> Work | None:
    """Wait for work; close the connections where there is none for a while."""
    try:
        return queue.get(timeout=idle)
    except Empty:
        connections.close_all()
        return queue.get()


def _in_time(function: Callable[[], Returned], queued: float) -> Returned:
    if time.monotonic() - queued > QUEUE_SECONDS:
        raise unavailable()
    return function()


def _with_connections(function: Callable[[], Returned]) -> Returned:
    close_old_connections()
    try:
        return function()
    except DatabaseError as error:
        if is_outage(error):
            # One to a server that others have left would answer, and write nothing.
            connections.close_all()
        raise
    finally:
        close_old_connections()


def _with_kept_connections(function: Callable[[], Returned]) -> Returned:
    """Do it; once more on a new connection, where the kept one was cut meanwhile."""
    kept = [each for each in connections.all() if each.connection is not None]
    try:
        return function()
    except Exception as error:
        connections.close_all()
        if not kept or not is_outage(error):
            raise
        return function()


reader = DatabaseThreads("mcp-reader", repeatable=True, patience=60.0)
"""A check that hangs is given up sooner; to load a large catalog may take its time."""
writer = DatabaseThreads("mcp-writer")
log_writer = DatabaseThreads("mcp-log", repeatable=True)
"""Messages to clients wait for no other statement of ours."""
call_writer = DatabaseThreads("mcp-calls", repeatable=True)
"""What is written behind holds nobody up."""
authenticators = DatabaseThreads("mcp-authentication", 4, patience=30.0)
"""Authentication never waits for a thread of user code."""
POOLS = (reader, writer, log_writer, call_writer, authenticators)
"""All there are, for whoever counts or closes connections."""


def give_up_hanging(after: float | None = None) -> None:
    """Cut what hangs in any of the pools; see `DatabaseThreads.give_up`."""
    for pool in POOLS:
        pool.give_up(after)
