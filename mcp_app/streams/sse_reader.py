"""Reads the messages of HTTP+SSE sessions, whichever process writes them.

One statement polls all sessions whose stream is open here; another one reads the new
messages.  Messages that were read are deleted, because nobody can ask for them again.

The position in each stream is in memory only, and only this module writes to the
client, so nothing is sent twice.  Streams of this process are read in the same way.  If
a client has too much queued, nothing is read for it.  After a poll that took long there
is a pause of the same length, up to `MOST_REST_S`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias

from django.db.models import OuterRef, Q, Subquery

from mcp_app.invalidation.workers import PeerMonitor
from mcp_app.models import Event, Stream, Worker
from mcp_app.models.appends import OPEN
from mcp_app.models.streams import EventQuerySet
from mcp_app.pools.database import reader, writer
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.streams.claims import Trouble

logger = logging.getLogger("mcp_app.streams")

LOOK_S: Final = 0.125
"""Seconds between two polls, unless this process has logged a message."""
MOST_REST_S: Final = 2.0
"""Longest pause after a poll that took long."""
AT_ONCE: Final = 500
MOST_BYTES: Final = 1024 * 1024
MOST_STREAMS: Final = 100
"""Limits of one statement: messages, bytes, streams.  One message may be larger."""
DELETE_EVERY_S: Final = 1.0
"""Seconds between two deletions of what was read."""


class Sink(Protocol):
    """Where the messages of a session go; used on the loop only."""

    @property
    def full(self) -> bool:
        """Whether it takes no more messages for now."""

    def deliver(self, payload: bytes, *, last: bool) -> None:
        """Take a message; `last` means that it ends its request."""


class Head(NamedTuple):
    """A stream: last message, size of all, and `heartbeat_ms` of the owner's row or
    None."""

    pk: int
    session: int
    seq: int
    size: int
    state: str
    owner: str
    heartbeat_ms: int | None

    @property
    def is_open(self) -> bool:
        return self.state == OPEN


class Read(NamedTuple):
    """The position in a stream: the number of a message, and the bytes so far."""

    seq: int = 0
    size: int = 0


class Place(NamedTuple):
    """The part of a stream that is to be read, after one message up to another.

    `ended` says that nothing more follows, `much` that one statement is not enough.
    """

    stream: int
    after: int
    upto: int
    ended: bool
    much: bool

    @property
    def is_everything(self) -> bool:
        """Whether this is everything that the stream will ever have."""
        return self.ended and not self.after and not self.much


@dataclass(slots=True)
class _SessionMessages:
    """A session: the positions in its streams, and which are finished or deleted."""

    sink: Sink
    read: dict[int, Read] = field(default_factory=lambda: defaultdict(Read))
    over: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)
    """Kept until a poll no longer finds them: it may have begun before the deletion."""
    busy: bool = False

    def is_finished(self, stream: int) -> bool:
        return stream in self.over or stream in self.deleted


_WantedMessages: TypeAlias = tuple[_SessionMessages, Head, Place]


class SseReader:
    """Reads for the sessions of this process; used on the loop only."""

    def __init__(self, peers: PeerMonitor, orphaned: Callable[[], Awaitable[object]]):
        """`orphaned` is called if the owner of a stream seems to be dead."""
        self._peers = peers
        self._orphaned = orphaned
        self._sessions: dict[int, _SessionMessages] = {}
        self._task: asyncio.Task[None] | None = None
        self._deleting: asyncio.Task[None] | None = None
        # `_hurried` asks for a poll now, `_empty` says that no session is left.
        self._hurried, self._empty = asyncio.Event(), asyncio.Event()
        self._deleted_at = 0.0
        self._unread = Trouble(logger, "Streams could not be read")
        self._undeleted = Trouble(
            logger, "Messages that were read could not be deleted"
        )
        self.looks = 0
        """How many polls have succeeded."""

    @contextmanager
    def deliver_to(self, session: int, sink: Sink) -> Iterator[None]:
        """Deliver the messages of a session to the sink, until the block ends."""
        self._sessions[session] = _SessionMessages(sink)
        self._empty.clear()
        if self._task is None:
            self._task = start_background_task(self._poll_sessions())
        try:
            yield
        finally:
            del self._sessions[session]
            # Without sessions there is nothing to poll.
            if not self._sessions:
                self._empty.set()
            self.poll_soon()

    def __contains__(self, session: int) -> bool:
        return session in self._sessions

    def poll_soon(self) -> None:
        self._hurried.set()

    def is_session_busy(self, session: int) -> bool:
        """Return whether anything ran or was unread at the last poll."""
        gathered = self._sessions.get(session)
        return gathered is not None and gathered.busy

    @property
    def looks_after_next_poll(self) -> int:
        """The value of `looks` after a poll that starts from now on."""
        # The poll that runs now counts as one; it may have missed the latest messages.
        return self.looks + 2

    def has_work_until(self, count: int) -> bool:
        """Return whether any session is busy, or `looks` has not reached `count`."""
        if not self._sessions:
            return False
        return self.looks < count or any(each.busy for each in self._sessions.values())

    async def _poll_sessions(self) -> None:
        try:
            while self._sessions:
                self._hurried.clear()
                began = time.monotonic()
                is_read = await self._poll_once()
                await self._rest_after_poll(time.monotonic() - began, succeeded=is_read)
        finally:
            self._task = None

    async def _rest_after_poll(self, took: float, *, succeeded: bool) -> None:
        # Rest as long as the poll took, so polls take half of the time at most.  Then
        # rest up to LOOK_S in all; `poll_soon` ends this part, but not after a failure.
        pause = min(took, MOST_REST_S)
        await _wait_for_event(self._empty, pause if succeeded else max(pause, LOOK_S))
        if succeeded and pause < LOOK_S:
            await _wait_for_event(self._hurried, LOOK_S - pause)

    async def _poll_once(self) -> bool:
        began = time.monotonic()
        try:
            heads = await reader.run(_heads, list(self._sessions))
            # Deliver first: what follows may fail, or wait for others.
            await self._read_new_messages(heads)
            self.looks += 1
            self._begin_to_delete()
            owners = {head.owner: head.heartbeat_ms for head in heads if head.is_open}
            if self._peers.observe_open_streams(owners, began):
                await self._orphaned()
        except Exception as error:
            # The clients stay connected: the next poll may succeed.
            self._unread.report_failure(error)
            return False
        self._unread.report_success()
        return True

    async def _read_new_messages(self, heads: Sequence[Head]) -> None:
        keys = {head.pk for head in heads}
        for gathered in self._sessions.values():
            gathered.deleted &= keys
        waiting = deque(head for head in heads if self._has_unread(head))
        while waiting:
            if portion := self._next_portion(waiting):
                events = await reader.run(_events, [place for _, _, place in portion])
                for gathered, head, _ in portion:
                    self._deliver_events(gathered, head, events.get(head.pk, ()))
        unread = [head for head in heads if not self._finish_if_read(head)]
        busy = {head.session for head in unread}
        for session, gathered in self._sessions.items():
            gathered.busy = session in busy

    def _has_unread(self, head: Head) -> bool:
        gathered = self._sessions.get(head.session)
        if gathered is None or gathered.is_finished(head.pk):
            return False
        return gathered.read[head.pk].seq < head.seq

    def _next_portion(self, waiting: deque[Head]) -> list[_WantedMessages]:
        """Take what one statement reads, for clients that can take more now."""
        portion: list[_WantedMessages] = []
        messages, size = AT_ONCE, MOST_BYTES
        while waiting and len(portion) < MOST_STREAMS:
            head = waiting[0]
            gathered = self._sessions.get(head.session)
            if gathered is not None and not gathered.sink.full:
                position = gathered.read[head.pk]
                messages -= head.seq - position.seq
                size -= head.size - position.size
                much = messages < 0 or size < 0
                if much and portion:
                    # The stream waits for the next portion, which has the whole limit.
                    break
                place = Place(head.pk, position.seq, head.seq, not head.is_open, much)
                portion.append((gathered, head, place))
            waiting.popleft()
        return portion

    def _deliver_events(
        self, gathered: _SessionMessages, head: Head, events: Sequence[tuple[int, str]]
    ) -> None:
        if self._sessions.get(head.session) is not gathered:
            # The session has ended meanwhile.
            return
        position = gathered.read[head.pk]
        for seq, text in events:
            payload = text.encode()
            position = Read(seq, position.size + len(payload))
            gathered.read[head.pk] = position
            last = not head.is_open and seq == head.seq
            gathered.sink.deliver(payload, last=last)
        if events and position.seq < head.seq:
            # The other streams have their turn first.
            self.poll_soon()

    def _finish_if_read(self, head: Head) -> bool:
        gathered = self._sessions.get(head.session)
        if gathered is None or gathered.is_finished(head.pk):
            return True
        if gathered.read[head.pk].seq < head.seq or head.is_open:
            return False
        del gathered.read[head.pk]
        gathered.over.add(head.pk)
        return True

    def _begin_to_delete(self) -> None:
        """Start to delete what was read, without waiting: the writer may be busy."""
        is_due = time.monotonic() - self._deleted_at >= DELETE_EVERY_S
        if is_due and self._deleting is None:
            self._deleting = start_background_task(self._delete_read())

    async def _delete_read(self) -> None:
        """Delete what was read; calls that must not run twice keep their rows."""
        self._deleted_at = time.monotonic()
        keys = {pk for session in self._sessions.values() for pk in session.over}
        try:
            if keys:
                deleted = await writer.run(Stream.objects.delete_read, sorted(keys))
                for gathered in self._sessions.values():
                    gathered.deleted |= gathered.over & deleted
                    gathered.over -= deleted
                if keys - deleted:
                    # There was too much: the rest is deleted after the next poll.
                    self._deleted_at = float("-inf")
                self._undeleted.report_success()
        except Exception as error:
            self._undeleted.report_failure(error)
        finally:
            self._deleting = None


async def _wait_for_event(event: asyncio.Event, within: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()


def _heads(sessions: Sequence[int]) -> Sequence[Head]:
    heartbeats = Worker.objects.filter(pk=OuterRef("owner")).values("seen_ms")
    rows = Stream.objects.current().unread().filter(session_id__in=sessions)
    columns = "pk", "session_id", "head_seq", "size", "state", "owner"
    heads = rows.order_by("pk").values_list(*columns, Subquery(heartbeats))
    return [Head(*row) for row in heads]


def _events(places: Sequence[Place]) -> Mapping[int, Sequence[tuple[int, str]]]:
    rows = Event.objects.current()
    parts = [_first_part(rows, place) if place.much else place for place in places]
    # One IN for all streams that are read whole: most have a single message.
    condition = Q(stream_id__in=[each.stream for each in parts if each.is_everything])
    for stream, after, upto, *_ in (each for each in parts if not each.is_everything):
        condition |= Q(stream_id=stream, seq__gt=after, seq__lte=upto)
    by_stream: dict[int, list[tuple[int, str]]] = defaultdict(list)
    events = rows.filter(condition).order_by("stream_id", "seq")
    for key, seq, payload in events.values_list("stream_id", "seq", "payload"):
        by_stream[key].append((seq, payload))
    return by_stream


def _first_part(rows: EventQuerySet, place: Place) -> Place:
    """Return the place up to the end of its first portion."""
    part = rows.filter(stream_id=place.stream, seq__gt=place.after, seq__lte=place.upto)
    upto, size = place.after, 0
    for seq, length in part.order_by("seq").values_list("seq", "size")[:AT_ONCE]:
        if size and size + length > MOST_BYTES:
            break
        upto, size = seq, size + length
    return place._replace(upto=upto)
