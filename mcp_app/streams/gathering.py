"""Reading all that is said in sessions of HTTP+SSE, whichever process says it.

One statement looks for all sessions whose stream is open here.  What was read is thrown
away: nobody comes back for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from django.db import Error as DatabaseError
from django.db.models import OuterRef, Subquery

from mcp_app.models import Event, Stream, Worker
from mcp_app.models.appends import OPEN
from mcp_app.pools.database import reader, writer
from mcp_app.protocol.errors import Unavailable
from mcp_app.wakeup.others import Others

logger = logging.getLogger("mcp_app.streams")

LOOK_S: Final = 0.125
"""Seconds between two looks, unless something was said by this process."""
THROW_S: Final = 1.0
"""Seconds between two times at which what was read is thrown away."""
MOST_BYTES: Final = 1024 * 1024
"""So much is read at once, but for a message that is larger by itself."""


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


@dataclass(slots=True)
class _Gathered:
    """One session: how far its streams were read, which are over, and thrown away."""

    sink: Sink
    read: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    over: set[int] = field(default_factory=set)
    thrown: set[int] = field(default_factory=set)
    """Until a look no longer finds them: one may have begun before they went."""
    busy: bool = False

    def is_over(self, stream: int) -> bool:
        return stream in self.over or stream in self.thrown


class Gathering:
    """Reads for the sessions of this process; used on the loop only."""

    def __init__(self, others: Others, orphaned: Callable[[], Awaitable[object]]):
        """`orphaned` is called where the owner of a stream seems to be dead."""
        self._others = others
        self._orphaned = orphaned
        self._sessions: dict[int, _Gathered] = {}
        self._task: asyncio.Task[None] | None = None
        self._throwing: asyncio.Task[None] | None = None
        self._hurried = asyncio.Event()
        self._thrown = 0.0
        self.looks = 0
        """How many looks have succeeded."""

    @contextmanager
    def of(self, session: int, sink: Sink) -> Iterator[None]:
        """Gather what is said in a session, until the block ends."""
        self._sessions[session] = _Gathered(sink)
        if self._task is None:
            self._task = asyncio.create_task(self._gather())
        try:
            yield
        finally:
            del self._sessions[session]
            # The last one need not wait for the next look.
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
    def at_work(self) -> bool:
        """Whether any of the sessions was busy when it was looked at last."""
        return any(each.busy for each in self._sessions.values())

    async def _gather(self) -> None:
        try:
            while self._sessions:
                self._hurried.clear()
                if not await self._look():
                    await asyncio.sleep(LOOK_S)
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._hurried.wait()
        finally:
            self._task = None

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
        except (DatabaseError, Unavailable) as error:
            # The clients stay connected: the next look may succeed.
            logger.warning("Streams could not be read: %r", error.__cause__ or error)
            return False
        except Exception:
            logger.exception("Streams could not be read.")
            return False
        return True

    def _any_orphaned(self, heads: Sequence[Head], now: float) -> bool:
        """Look at those who own what is still open, each once."""
        owners = {each.owner: each.seen_ms for each in heads if each.state == OPEN}
        dead = [self._others.note(key, seen, now) for key, seen in owners.items()]
        return any(dead)

    async def _read_all(self, heads: Sequence[Head]) -> None:
        there = {head.pk for head in heads}
        for gathered in self._sessions.values():
            gathered.thrown &= there
        busy: set[int] = set()
        for head in heads:
            if not await self._read(head):
                busy.add(head.session)
        for session, gathered in self._sessions.items():
            gathered.busy = session in busy

    async def _read(self, head: Head) -> bool:
        """Pass on what follows in a stream; return whether it is over, and read."""
        gathered = self._sessions.get(head.session)
        if gathered is None or gathered.is_over(head.pk):
            return True
        seq = gathered.read[head.pk]
        if seq < head.seq and not gathered.sink.full:
            events = await reader.run(_events, head, seq)
            if self._sessions.get(head.session) is not gathered or not events:
                # The session has ended meanwhile.
                return True
            self._pass_on(gathered, head, events)
            if gathered.read[head.pk] < head.seq:
                # The others have their turn before.
                self.hurry()
        if gathered.read[head.pk] < head.seq or head.state == OPEN:
            return False
        del gathered.read[head.pk]
        gathered.over.add(head.pk)
        return True

    def _pass_on(
        self, gathered: _Gathered, head: Head, events: Sequence[tuple[int, str]]
    ) -> None:
        for seq, payload in events:
            if seq > head.seq:
                # Whether it is the last one is seen with the next look.
                return
            gathered.read[head.pk] = seq
            last = head.state != OPEN and seq == head.seq
            gathered.sink.said(payload.encode(), last=last)

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
        except (DatabaseError, Unavailable) as error:
            reason = error.__cause__ or error
            logger.warning("What was read could not be thrown away: %r", reason)
        except Exception:
            logger.exception("What was read could not be thrown away.")
        finally:
            self._throwing = None


def _heads(sessions: Sequence[int]) -> Sequence[Head]:
    seen = Worker.objects.filter(pk=OuterRef("owner")).values("seen_ms")
    rows = Stream.objects.current().filter(session_id__in=sessions)
    rows = rows.exclude(state=Stream.State.CLOSED).order_by("pk")
    columns = "pk", "session_id", "head_seq", "size", "state", "owner"
    return [Head(*row) for row in rows.values_list(*columns, Subquery(seen))]


def _events(head: Head, seq: int) -> Sequence[tuple[int, str]]:
    """Return what follows, and no more of it than may wait for a client."""
    rows = Event.objects.current()
    if head.size > MOST_BYTES:
        rows = rows.portion(head.pk, seq, MOST_BYTES)
    return list(rows.after(head.pk, seq))
