"""Threads of our own for statements, in pools of five kinds: see `POOLS`.

Neither the loop nor user code's threads ever hold one of their connections.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar

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
TELL_EVERY_S = 10.0
"""In an outage every request fails: the log says so once in so many seconds."""
IDLE_SECONDS = 10.0
"""A connection that is kept is closed when there was no work for so long."""
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

    def refuse(self) -> None:
        """Let nobody wait for it: it was not begun, and will not be."""
        settle(self.post, self.future, _refused)


class Doing(NamedTuple):
    """What one of the threads does, since when (monotonic)."""

    work: Work
    since: float


class Hand:
    """One of the threads, as the others see it."""

    __slots__ = (
        "cut_at",
        "doing",
        "ended",
        "idle",
        "left",
        "lines",
        "lock",
        "thread",
        "wrappers",
    )

    def __init__(self, idle: float | None) -> None:
        self.thread: threading.Thread | None = None
        self.idle = idle
        """After so many seconds without work it closes its connections."""
        self.lock = threading.Lock()
        """Who holds it knows that `doing` does not end meanwhile."""
        self.doing: Doing | None = None
        self.ended = False
        """Whether it has done anything to its end since its pool last gave up any."""
        self.left = False
        """Whether another has its place: it takes no more work, but for one piece."""
        self.cut_at = NEVER
        """When its connections were cut; from then on it opens no other."""
        self.wrappers: Sequence[BaseDatabaseWrapper] = ()
        self.lines: dict[str, Line] = {}
        """The last connection that it opened to each database."""

    def is_alive(self) -> bool:
        return self.thread is not None and self.thread.is_alive()

    def has_left(self) -> bool:
        """Asked anew each time: another thread sets it, which mypy does not know."""
        return self.left

    def open_lines(self) -> list[Line]:
        """Return what can be cut; a connection of Django's pool may be another's."""
        return [each for each in list(self.lines.values()) if each.is_held()]

    def do(self, work: Work) -> None:
        """Do it, in this hand's own thread; raises nothing."""
        self.doing = Doing(work, time.monotonic())
        with _logged():
            self.wrappers = self.wrappers or connections.all()
        with _logged():
            work()
        with self.lock:
            self.doing = None
        if self.cut_at == NEVER:
            self.ended = True


_here = threading.local()


@receiver(connection_created, dispatch_uid="mcp_app.pools.database")
def _connected(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Remember how to cut it; who was given up must not write when it is back."""
    hand: Hand | None = getattr(_here, "hand", None)
    if hand is None:
        return
    if line := Line.of(connection):
        hand.lines[connection.alias] = line
    # In this order: who cuts says so first, and looks then for what to cut.
    if hand.cut_at > NEVER:
        connection.close()
        _gave_up()


def _gave_up() -> NoReturn:
    raise OperationalError("The database did not answer in time.")


def _refused() -> NoReturn:
    raise unavailable()


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
        self._gave_up_at = self._told_at = NEVER

    @property
    def busy(self) -> bool:
        """Whether anything waits, or is being done and was not cut."""
        with self._lock:
            return not self._queue.empty() or any(
                hand.doing is not None and hand.cut_at == NEVER
                for hand in (*self._hands, *self._left)
            )

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
            self._tell(error)
            raise unavailable() from error

    def _tell(self, error: DatabaseError) -> None:
        """Log why somebody is told of an outage, not each time."""
        now = time.monotonic()
        if now - self._told_at >= TELL_EVERY_S:
            self._told_at = now
            logger.warning("%s: the database could not be used: %r", self.name, error)

    def close(self) -> None:
        """End the threads and their connections when their work is done."""
        with self._lock:
            # One that was left between two pieces of work waits as the others do.
            for _ in (*self._hands, *self._left):
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
                doing = hand.doing
                if doing is not None and now - doing.since >= after:
                    self._leave(hand)

    def refuse(self) -> None:
        """Let nobody wait any more for work that was not begun."""
        with self._lock:
            self._refuse()

    def give_up(self, after: float | None = None) -> None:
        """Cut the connections of threads that hang; does not wait.

        Whoever waits for them hears of an outage, and others take their places.  A
        database that is only slow gets more time with each try, up to `MOST_TIMES`.
        """
        now = time.monotonic()
        with self._lock:
            self._calm_down(now)
            patience = self._patience * self._times
            for hand in (*self._hands, *self._left):
                doing = hand.doing
                # Whoever was left alone has kept somebody waiting already.
                own = min(patience, HANGS_S) if hand.left else patience
                most = own if after is None else after
                if doing is not None and now - doing.since >= most:
                    self._give_up(hand, doing, now)
            if not self._queue.empty():
                self._fill()

    def _calm_down(self, now: float) -> None:
        """Wait no longer than usual where nothing has hung for a while; locked.

        That a short statement ends says nothing of a long one: it must have had the
        time to be tried again, and to end.
        """
        quiet = now - self._gave_up_at >= 2 * self._patience * self._times
        if quiet and any(hand.ended for hand in self._hands):
            self._times = 1

    def _give_up(self, hand: Hand, doing: Doing, now: float) -> None:
        """Locked."""
        again = hand.cut_at > NEVER
        if now - hand.cut_at < AGAIN_S:
            return
        if not hand.open_lines() and waits_for_a_lock(hand.wrappers):
            return
        with hand.lock:
            if hand.doing is not doing:
                return
            # First this: what it opens from now on it closes by itself.
            hand.cut_at = now
        cut(hand.open_lines())
        if again:
            return
        logger.warning("%s: the database did not answer in time.", self.name)
        if doing.since >= self._gave_up_at:
            # Not one of several that hang for the same reason: the next attempt.
            self._times = min(self._times * 2, MOST_TIMES)
        self._gave_up_at = now
        for each in self._hands:
            each.ended = False
        doing.work.give_up()
        self._leave(hand)

    def _leave(self, hand: Hand) -> None:
        """Let another have its place; locked."""
        self._left = [each for each in self._left if each.is_alive()]
        if hand not in self._hands or len(self._left) >= MOST_LEFT:
            return
        hand.left = True
        self._left.append(hand)
        self._hands.remove(hand)
        if not self._queue.empty():
            self._fill()

    def _put(self, work: Work) -> None:
        with self._lock:
            self._queue.put(work)
            self._fill()

    def _fill(self) -> None:
        """Start a thread where there is a place; refuse what none could do; locked."""
        self._hands = [each for each in self._hands if each.is_alive()]
        if len(self._hands) >= self.size:
            return
        try:
            self._hands.append(self._started())
        except Exception:
            logger.exception("%s: no thread could be started.", self.name)
            if not self._hands:
                self._refuse()

    def _started(self) -> Hand:
        hand = Hand(self._idle)
        hand.thread = threading.Thread(
            target=_serve, args=(hand, self._queue), name=self.name, daemon=True
        )
        hand.thread.start()
        return hand

    def _refuse(self) -> None:
        """Locked."""
        with suppress(Empty):
            while (work := self._queue.get_nowait()) is not None:
                work.refuse()


def _serve(hand: Hand, queue: SimpleQueue[Work | None]) -> None:
    _here.hand = hand
    while (work := _next(queue, hand.idle)) is not None:
        # One that was left between two pieces of work does what it has in hand: put
        # back, that would wait for somebody to look, or for ever where the pool closed.
        hand.do(work)
        if hand.has_left():
            break
        if hand.cut_at > NEVER:
            # Nobody could take its place.
            _close_all()
            hand.cut_at = NEVER
    _close_all()


@contextmanager
def _logged() -> Iterator[None]:
    """Log what goes wrong beside the work: the thread goes on."""
    try:
        yield
    except Exception:
        logger.exception("A thread for statements has met a fault, and goes on.")


def _close_all() -> None:
    """Close the connections of this thread, each by itself; raises nothing."""
    with _logged():
        for each in connections.all(initialized_only=True):
            with _logged():
                each.close()


def _next(queue: SimpleQueue[Work | None], idle: float | None) -> Work | None:
    """Wait for work; close the connections where there is none for a while."""
    try:
        return queue.get(timeout=idle)
    except Empty:
        _close_all()
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
            _close_all()
        raise
    finally:
        close_old_connections()


def _with_kept_connections(function: Callable[[], Returned]) -> Returned:
    """Do it; once more on a new connection, where the kept one was cut meanwhile."""
    kept = [each for each in connections.all() if each.connection is not None]
    try:
        return function()
    except Exception as error:
        _close_all()
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
judges = DatabaseThreads("mcp-rules", 2, patience=30.0)
"""Rules of the site: one that hangs keeps nobody from authenticating."""
POOLS = (reader, writer, log_writer, call_writer, authenticators, judges)
"""All there are, for whoever counts or closes connections."""


def give_up_hanging(after: float | None = None) -> None:
    """Cut what hangs in any of the pools; see `DatabaseThreads.give_up`."""
    for pool in POOLS:
        try:
            pool.give_up(after)
        except Exception:
            logger.exception("%s: what hangs could not be given up.", pool.name)


def give_up_everything() -> None:
    """Refuse what waits in any of the pools, and cut all the rest."""
    for pool in POOLS:
        pool.refuse()
    give_up_hanging(0.0)
