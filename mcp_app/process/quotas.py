"""The limits on running calls, open streams, uploads and slow readers."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mcp_app.conf import Limits
from mcp_app.interface.principal import Principal
from mcp_app.pools.turns import STRANGER, Owner
from mcp_app.process.running import RunningCalls
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.listeners import Listener, Listeners

if TYPE_CHECKING:
    from mcp_app.process.loading import Catalogs


class Quotas:
    """Enforces the limits of this process, unless `LIMITS["rates"]` is false.

    For an anonymous caller, a limit per principal applies to its address, if known.
    """

    def __init__(
        self,
        limits: Limits,
        listeners: Listeners,
        running: RunningCalls,
        catalogs: Catalogs,
    ) -> None:
        self._limits = limits
        self._listeners = listeners
        self._running = running
        self._catalogs = catalogs

    def check_share(self, principal: Principal, person: str, calls: int) -> None:
        """Raise 429 if a principal would exceed its limit of running calls.

        `person` is the key of an anonymous caller's address, "" if it is not known.
        """
        limit, owner = self._limits.running_calls, principal.owner or person
        if (
            self._limits.rates
            and owner
            and self._running.call_count_of(owner) + calls > limit
        ):
            raise _limit_error(limit, "running calls")

    def check_streams(self, listener: Listener, address: str) -> None:
        """Raise 503 or 429 if a limit of open streams is reached.

        `address` is that of an anonymous caller, "" if it is not known.
        """
        limits = self._limits
        if not limits.rates:
            return
        if len(self._listeners) >= limits.streams_per_process:
            raise Unavailable("This process has reached its limit of open streams.")
        if listener.principal.anonymous and self.halves_for_strangers():
            strangers = sum(each.principal.anonymous for each in self._listeners)
            if strangers >= max(1, limits.streams_per_process // 2):
                raise Unavailable(
                    "This process has reached its limit of open streams of anonymous"
                    " callers."
                )
        limit = limits.streams_per_principal
        at_address = self._listeners.count_at_address(address) if address else 0
        streams = [each for each in self._listeners if each.owner == listener.owner]
        if at_address >= limit or (listener.owner and len(streams) >= limit):
            raise _limit_error(limit, "open streams")
        session = [each for each in streams if each.session == listener.session]
        if listener.session and len(session) >= limits.streams_per_session:
            raise _limit_error(limits.streams_per_session, "open streams in a session")

    def halves_for_strangers(self) -> bool:
        """Whether anonymous callers together get only half of the shared places.

        They may use all places if no server of this process asks people to sign in.
        """
        return self._limits.rates and self._catalogs.ask_to_sign_in


def _limit_error(limit: int, what: str) -> Unavailable:
    return Unavailable(f"The limit of {limit} {what} is reached.", http_status=429)


# -- queues ----------------------------------------------------------------------------
# Limits the bytes that wait to be sent, in all event streams of the process together.
#
# A reader that takes nothing costs memory: the stream with the most waiting bytes is
# ended first.


class Queue(Protocol):
    """A stream; used on the loop only."""

    @property
    def waiting(self) -> int:
        """How many bytes wait to be sent."""

    def give_up(self) -> None:
        """End the stream, and drop its waiting bytes (`Queues.count_bytes`)."""


class Queues:
    """Counts the waiting bytes, and ends streams if they exceed `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._waiting = 0
        self._filled: set[Queue] = set()

    def count_bytes(self, queue: Queue, change: int) -> None:
        """Note that the waiting bytes of a queue have changed by `change`."""
        self._waiting += change
        if queue.waiting:
            self._filled.add(queue)
        else:
            self._filled.discard(queue)
        # Spare a stream that begins to wait only now: its reader may still read.
        spared = {queue} if queue.waiting == change else set()
        while self._waiting > self._max_bytes:
            queues = self._filled - spared or self._filled
            max(queues, key=lambda each: each.waiting).give_up()


# -- uploads ---------------------------------------------------------------------------
# Requests whose bodies are still arriving: limited in time and in room.
#
# A client that sends half a body and waits would hold its connection and its bytes for
# ever.  It would also delay the end of the process: servers wait for requests that have
# begun.

FIRST_SECONDS = 10.0
"""Time for a body that is small or does not come at all."""
BYTES_A_SECOND = 1024
"""A body gets one more second for each of these many bytes that have arrived."""
BODY_SECONDS = 60.0
LOOK_EVERY = 1.0
MAX_BODIES_PER_ADDRESS = 8
"""Bodies in pieces that an anonymous caller may send from one address."""

Reader: TypeAlias = "asyncio.Task[Any] | None"


class NoRoom(Exception):
    """There is no room for this body, or for more of it."""


class Uploads:
    """The tasks that read a body, with the times (monotonic) at which they began.

    One timer serves them all, because most bodies are complete at once.  For bodies
    that come in pieces, the size is noted, too (`hold_body`): together they hold at
    most `limit` bytes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        self._loop = loop
        self._limit = limit
        self._reading: dict[Reader, float] = {}
        self._cancelled: set[Reader] = set()
        self._owners: dict[Reader, Owner] = {}
        self._sizes: dict[Reader, int] = {}
        """Bytes of bodies in pieces; the one whose last piece is oldest is first."""
        self._total_size = 0
        self._unread: Counter[Owner] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def begin_upload(self, arrived: float) -> Reader:
        """Register the current task, which starts to read a body; return the task."""
        task = asyncio.current_task(self._loop)
        self._reading[task] = arrived
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_EVERY, self._cancel_overdue)
        return task

    def end_upload(self, task: Reader) -> None:
        self._reading.pop(task, None)
        if self._owners:
            self._owners.pop(task, None)
        if self._cancelled:
            self._cancelled.discard(task)

    def hold_body(self, size: int, owner: Owner = STRANGER) -> None:
        """Note how many bytes of a body in pieces the current task has; 0 at its end.

        Above `limit`, bodies are given up: of anonymous callers first, of the caller
        with the most bytes, and with the oldest last piece.  Raises `NoRoom` if an
        anonymous caller already has `MAX_BODIES_PER_ADDRESS` bodies in pieces.
        """
        task = asyncio.current_task(self._loop)
        if owner is not STRANGER:
            self._owners[task] = owner
        if size and task not in self._sizes and self._is_crowded(task):
            raise NoRoom
        self._total_size += size - self._sizes.pop(task, 0)
        if size:
            self._sizes[task] = size
        while self._total_size > self._limit and len(self._sizes) > 1:
            self._cancel_upload(self._surplus_body())

    def _surplus_body(self) -> Reader:
        totals: Counter[Owner] = Counter()
        for task, size in self._sizes.items():
            totals[self._owner_of_task(task)] += size
        owners = [owner for owner in totals if owner.stranger] or list(totals)
        owner = max(owners, key=totals.__getitem__)
        return next(each for each in self._sizes if self._owner_of_task(each) == owner)

    def _owner_of_task(self, task: Reader) -> Owner:
        return self._owners.get(task, STRANGER)

    def _is_crowded(self, task: Reader) -> bool:
        owner = self._owner_of_task(task)
        bodies = sum(self._owner_of_task(each) == owner for each in self._sizes)
        at_address = owner.stranger and bool(owner.person)
        return at_address and bodies >= MAX_BODIES_PER_ADDRESS

    def hold_in_room(self, size: int) -> None:
        """Do what `hold_body` does, but raise `NoRoom` instead of giving up bodies."""
        old_size = self._sizes.get(asyncio.current_task(self._loop), 0)
        if self._total_size + size - old_size > self._limit:
            raise NoRoom
        self.hold_body(size)

    @contextmanager
    def count_unread(self, owner: Owner, size: int) -> Iterator[None]:
        """Count a complete body until it is read.

        Raises `NoRoom` if one person, or all strangers, would have more than half of
        `limit`, or all people more than `limit`.  A first body always has room.
        """
        group = STRANGER if owner.stranger else owner
        people_bytes = self._unread.total() - self._unread[STRANGER]
        if self._unread[group] and (
            self._unread[group] + size > self._limit // 2
            or people_bytes + size > self._limit
        ):
            raise NoRoom
        self._unread[group] += size
        try:
            yield
        finally:
            self._unread -= Counter({group: size})

    def give_up_all(self) -> None:
        for task in tuple(self._reading):
            self._cancel_upload(task)

    def was_cancelled_here(self, task: Reader) -> bool:
        """Return whether a task was given up here, and not cancelled elsewhere, too."""
        return task in self._cancelled and task is not None and task.uncancel() == 0

    def _cancel_upload(self, task: Reader) -> None:
        self._total_size -= self._sizes.pop(task, 0)
        if task is not None and self._reading.pop(task, None) is not None:
            self._cancelled.add(task)
            task.cancel()

    def _cancel_overdue(self) -> None:
        self._timer = None
        now = time.monotonic()
        for task, began in tuple(self._reading.items()):
            # The more of a body has arrived, the more time it gets.
            allowed = FIRST_SECONDS + self._sizes.get(task, 0) / BYTES_A_SECOND
            if now - began > min(allowed, BODY_SECONDS):
                self._cancel_upload(task)
        if self._reading:
            self._timer = self._loop.call_later(LOOK_EVERY, self._cancel_overdue)
