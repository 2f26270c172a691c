"""Reading all that is said in sessions of HTTP+SSE, whichever process says it.

One statement looks for all sessions whose stream is open here, and another one reads
what it has found.  What was read is thrown away: nobody comes back for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from django.db.models import OuterRef, Q, Subquery

from mcp_app.models import Event, Stream, Worker
from mcp_app.models.appends import OPEN
from mcp_app.models.streams import EventQuerySet
from mcp_app.pools.database import reader, writer
from mcp_app.streams.troubles import Trouble
from mcp_app.wakeup.others import Others

logger = logging.getLogger("mcp_app.streams")

LOOK_S: Final = 0.125
"""Seconds between two looks, unless something was said by this process."""
MOST_REST_S: Final = 2.0
"""After a look that took longer the next one comes all the same."""
AT_ONCE: Final = 500
MOST_BYTES: Final = 1024 * 1024
MOST_STREAMS: Final = 100
"""So many messages, so much of them, and those of so many streams, are read with one
statement; but for a message that is larger by itself."""
THROW_S: Final = 1.0
"""Seconds between two times at which what was read is thrown away."""


class Sink(Protocol):
    """Where what is said in a session goes; used on the loop only."""

    @property
    def full(self) -> bool:
        """Whether it takes no more for now."""

    def said(self, payload: bytes, *, last: bool) -> None:
        """Take a message; with the last one its request has ended."""


class Head(NamedTuple):
    """Of a stream: its session, the last message, the bytes of all, the state, the
    owner, and what the owner's row says, None where there is none."""

    pk: int
    session: int
    seq: int
    size: int
    state: str
    owner: str
    seen_ms: int | None


class Read(NamedTuple):
    """How far a stream was read: the number of a message, and the bytes so far."""

    seq: int = 0
    size: int = 0


class Place(NamedTuple):
    """What is to be read of a stream: from one message to another.

    `ended` says that nothing more comes, `much` that it is more than goes at once.
    """

    stream: int
    after: int
    upto: int
    ended: bool
    much: bool

    @property
    def whole(self) -> bool:
        """Whether it is all that the stream will ever have."""
        return self.ended and not self.after and not self.much


@dataclass(slots=True)
class _Gathered:
    """One session: how far its streams were read, which are over, and thrown away."""

    sink: Sink
    read: dict[int, Read] = field(default_factory=lambda: defaultdict(Read))
    over: set[int] = field(default_factory=set)
    thrown: set[int] = field(default_factory=set)
    """Until a look no longer finds them: one may have begun before they went."""
    busy: bool = False

    def is_over(self, stream: int) -> bool:
        return stream in self.over or stream in self.thrown


class _Wanted(NamedTuple):
    """A place in a stream of a session."""

    gathered: _Gathered
    head: Head
    place: Place


class Gathering:
    """Reads for the sessions of this process; used on the loop only."""

    def __init__(self, others: Others, orphaned: Callable[[], Awaitable[object]]):
        """`orphaned` is called where the owner of a stream seems to be dead."""
        self._others = others
        self._orphaned = orphaned
        self._sessions: dict[int, _Gathered] = {}
        self._task: asyncio.Task[None] | None = None
        self._throwing: asyncio.Task[None] | None = None
        self._hurried, self._idle = asyncio.Event(), asyncio.Event()
        self._thrown = 0.0
        self._unread = Trouble(logger, "Streams could not be read")
        self._kept = Trouble(logger, "What was read could not be thrown away")
        self.looks = 0
        """How many looks have succeeded."""

    @contextmanager
    def of(self, session: int, sink: Sink) -> Iterator[None]:
        """Gather what is said in a session, until the block ends."""
        self._sessions[session] = _Gathered(sink)
        self._idle.clear()
        if self._task is None:
            self._task = asyncio.create_task(self._gather())
        try:
            yield
        finally:
            del self._sessions[session]
            # After the last one nothing is looked for.
            if not self._sessions:
                self._idle.set()
            self.hurry()

    def __contains__(self, session: int) -> bool:
        return session in self._sessions

    def hurry(self) -> None:
        """Look at once: something was said."""
        self._hurried.set()

    def busy(self, session: int) -> bool:
        """Whether anything ran, or was unread, when it was looked at last."""
        gathered = self._sessions.get(session)
        return gathered is not None and gathered.busy

    @property
    def next_whole(self) -> int:
        """What `looks` is after a look that begins from now on.

        One that goes on at this moment may have missed what was said a moment ago.
        """
        return self.looks + 2

    def at_work(self, known: int) -> bool:
        """Whether any of the sessions is busy, as far as a look up to `known` tells."""
        if not self._sessions:
            return False
        return self.looks < known or any(each.busy for each in self._sessions.values())

    async def _gather(self) -> None:
        try:
            while self._sessions:
                self._hurried.clear()
                began = time.monotonic()
                good = await self._look()
                await self._rest(time.monotonic() - began, hurries=good)
        finally:
            self._task = None

    async def _rest(self, took: float, *, hurries: bool) -> None:
        """Rest after a look that took so long, as long again, whatever is said.

        So looking takes half of the time at most, and others may use the database.
        """
        rest = min(took, MOST_REST_S)
        await _heard(self._idle, rest if hurries else max(rest, LOOK_S))
        if hurries and rest < LOOK_S:
            await _heard(self._hurried, LOOK_S - rest)

    async def _look(self) -> bool:
        """Look once; return whether all went well."""
        began = time.monotonic()
        try:
            heads = await reader.run(_heads, list(self._sessions))
            # First this: what follows may fail, or wait for others.
            await self._read_all(heads)
            self.looks += 1
            self._begin_to_throw()
            if self._any_orphaned(heads, began):
                await self._orphaned()
        except Exception as error:
            # The clients stay connected: the next look may succeed.
            self._unread.failed(error)
            return False
        self._unread.passed()
        return True

    def _any_orphaned(self, heads: Sequence[Head], now: float) -> bool:
        """Look at those who own what is still open, each once."""
        owners = {each.owner: each.seen_ms for each in heads if each.state == OPEN}
        dead = [self._others.note(key, seen, now) for key, seen in owners.items()]
        return any(dead)

    async def _read_all(self, heads: Sequence[Head]) -> None:
        """Pass on what follows in each stream: what is much, a portion at a time."""
        there = {head.pk for head in heads}
        for gathered in self._sessions.values():
            gathered.thrown &= there
        waiting = deque(head for head in heads if self._follows(head))
        while waiting:
            if portion := self._portion(waiting):
                events = await reader.run(_events, [each.place for each in portion])
                for each in portion:
                    self._pass_on(each, events.get(each.head.pk, ()))
        busy = {head.session for head in heads if not self._is_read(head)}
        for session, gathered in self._sessions.items():
            gathered.busy = session in busy

    def _follows(self, head: Head) -> bool:
        """Whether a stream has something that was not read."""
        gathered = self._sessions.get(head.session)
        if gathered is None or gathered.is_over(head.pk):
            return False
        return gathered.read[head.pk].seq < head.seq

    def _portion(self, waiting: deque[Head]) -> list[_Wanted]:
        """Take what is read with one statement, for who takes anything by now.

        What is too much for one by itself is a portion, of which the first messages
        are read.
        """
        portion: list[_Wanted] = []
        messages, size = AT_ONCE, MOST_BYTES
        while waiting and len(portion) < MOST_STREAMS:
            head = waiting[0]
            gathered = self._sessions.get(head.session)
            if gathered is not None and not gathered.sink.full:
                read = gathered.read[head.pk]
                messages -= head.seq - read.seq
                size -= head.size - read.size
                much = messages < 0 or size < 0
                if much and portion:
                    break
                ended = head.state != OPEN
                place = Place(head.pk, read.seq, head.seq, ended, much)
                portion.append(_Wanted(gathered, head, place))
            waiting.popleft()
        return portion

    def _pass_on(self, wanted: _Wanted, events: Sequence[tuple[int, str]]) -> None:
        gathered, head, _ = wanted
        if self._sessions.get(head.session) is not gathered:
            # The session has ended meanwhile.
            return
        read = gathered.read[head.pk]
        for seq, text in events:
            payload = text.encode()
            read = Read(seq, read.size + len(payload))
            gathered.read[head.pk] = read
            last = head.state != OPEN and seq == head.seq
            gathered.sink.said(payload, last=last)
        if events and read.seq < head.seq:
            # The others have their turn before.
            self.hurry()

    def _is_read(self, head: Head) -> bool:
        """Note whether a stream is over, and read; return whether it is."""
        gathered = self._sessions.get(head.session)
        if gathered is None or gathered.is_over(head.pk):
            return True
        if gathered.read[head.pk].seq < head.seq or head.state == OPEN:
            return False
        del gathered.read[head.pk]
        gathered.over.add(head.pk)
        return True

    def _begin_to_throw(self) -> None:
        """Throw away what was read, while more is read: the writer may be busy."""
        due = time.monotonic() - self._thrown >= THROW_S
        if due and self._throwing is None:
            self._throwing = asyncio.create_task(self._throw_away())

    async def _throw_away(self) -> None:
        """Forget what was read: calls that must not run twice keep their rows.

        Of much that was read only a portion goes; the others do after the next look.
        """
        self._thrown = time.monotonic()
        keys = {pk for each in self._sessions.values() for pk in each.over}
        try:
            if keys:
                done = await writer.run(Stream.objects.throw_read, sorted(keys))
                for gathered in self._sessions.values():
                    gathered.thrown |= gathered.over & done
                    gathered.over -= done
                if keys - done:
                    self._thrown = float("-inf")
                self._kept.passed()
        except Exception as error:
            self._kept.failed(error)
        finally:
            self._throwing = None


async def _heard(event: asyncio.Event, within: float) -> None:
    """Return when an event is set, or when so many seconds have passed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()


def _heads(sessions: Sequence[int]) -> Sequence[Head]:
    seen = Worker.objects.filter(pk=OuterRef("owner")).values("seen_ms")
    rows = Stream.objects.current().unread().filter(session_id__in=sessions)
    rows = rows.order_by("pk")
    columns = "pk", "session_id", "head_seq", "size", "state", "owner", Subquery(seen)
    return [Head(*row) for row in rows.values_list(*columns)]


def _events(places: Sequence[Place]) -> Mapping[int, Sequence[tuple[int, str]]]:
    """Return what is to be read, by the streams: numbers and payloads."""
    rows = Event.objects.current()
    some = [_first_ones(rows, each) if each.much else each for each in places]
    # Most of them say one thing, which ends them.
    wanted = Q(stream_id__in=[each.stream for each in some if each.whole])
    for stream, after, upto, *_ in (each for each in some if not each.whole):
        wanted |= Q(stream_id=stream, seq__gt=after, seq__lte=upto)
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    events = rows.filter(wanted).order_by("stream_id", "seq")
    for key, seq, payload in events.values_list("stream_id", "seq", "payload"):
        found[key].append((seq, payload))
    return found


def _first_ones(rows: EventQuerySet, place: Place) -> Place:
    """Return how far a portion goes; one message may be larger by itself."""
    own = rows.filter(stream_id=place.stream, seq__gt=place.after, seq__lte=place.upto)
    upto, size = place.after, 0
    for seq, more in own.order_by("seq").values_list("seq", "size")[:AT_ONCE]:
        if size and size + more > MOST_BYTES:
            break
        upto, size = seq, size + more
    return place._replace(upto=upto)
