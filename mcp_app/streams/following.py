"""Reading the streams of requests for clients that came back, wherever they run.

One statement looks for all of them, as long as there are any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from django.db import Error as DatabaseError
from django.db.models import Exists, OuterRef

from mcp_app.models import Event, Stream, Worker
from mcp_app.models.appends import OPEN
from mcp_app.pools.database import reader
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams import event_ids
from mcp_app.streams.request_log import COMPLETED, Reader

logger = logging.getLogger("mcp_app.streams")

LOOK_S = 0.125
"""Seconds between two looks."""

ORPHANED = "orphaned"
"""Open, and its owner has not said for long that it lives."""
GOES_ON = frozenset({OPEN, ORPHANED})

Heads: TypeAlias = dict[int, tuple[int, str]]
"""The last message and the state of streams, by their keys."""


@dataclass(slots=True, eq=False)
class Place:
    """How far a client has read a stream."""

    key: int
    public_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """A request that came before, and the place before its first message.

    `whole` says that it was answered, and that nothing came before its answer.
    """

    place: Place
    digest: str
    tool: str
    whole: bool


class Followers:
    """Those who read what this process need not own; used on the loop only."""

    def __init__(self, orphaned: Callable[[], Awaitable[object]]) -> None:
        """`orphaned` is called where the owner of a stream seems to be dead."""
        self._orphaned = orphaned
        self._places: dict[Place, Reader] = {}
        self._task: asyncio.Task[None] | None = None

    async def find(self, session_id: int, public_id: str, seq: int) -> Place:
        """Return a place in a stream of a session.

        Raises the one answer to a wrong id where there is no such message.
        """
        row = await reader.run(_row, session_id, public_id)
        if row is None or seq > row.head_seq:
            raise event_ids.wrong()
        return Place(row.pk, public_id, seq)

    async def earlier(self, session_id: int, request_key: str) -> Earlier | None:
        """Return the request of a session that had this id."""
        rows = Stream.objects.filter(session_id=session_id, request_key=request_key)
        row = await reader.run(rows.first)
        if row is None:
            return None
        place = Place(row.pk, row.public_id, 0)
        whole = row.state == COMPLETED and row.head_seq == 1
        return Earlier(place, row.request_digest, row.tool, whole)

    @contextmanager
    def following(self, place: Place, to: Reader) -> Iterator[None]:
        """Send what comes after a place, until the block or the stream ends."""
        self._places[place] = to
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            self._places.pop(place, None)

    async def _follow(self) -> None:
        try:
            while self._places:
                await self._look()
                await asyncio.sleep(LOOK_S)
        finally:
            self._task = None

    async def _look(self) -> None:
        places = list(self._places)
        try:
            heads = await reader.run(_heads, [place.key for place in places])
            if any(state == ORPHANED for _, state in heads.values()):
                await self._orphaned()
            for place in places:
                await self._advance(place, *heads.get(place.key, (None, "")))
        except (DatabaseError, Unavailable) as error:
            # The clients stay connected: the next look may succeed.
            logger.warning("Streams could not be read: %r", error.__cause__ or error)

    async def _advance(self, place: Place, head: int | None, state: str) -> None:
        while head is not None and place.seq < head and place in self._places:
            events = await reader.run(_events, place)
            if not self._send(place, events):
                head = None
        if (head is None or state not in GOES_ON) and place in self._places:
            self._places.pop(place).ended()

    def _send(self, place: Place, events: Sequence[tuple[int, str]]) -> bool:
        """Send what follows; return False where something is missing."""
        to = self._places.get(place)
        for seq, payload in events if to is not None else ():
            if seq != place.seq + 1:
                break
            place.seq = seq
            to.message(payload.encode(), f"{place.public_id}.{seq}")  # type: ignore[union-attr]
        else:
            if events or to is None:
                return True
        logger.critical("Stream %s lacks message %d.", place.public_id, place.seq + 1)
        return False


def _row(session_id: int, public_id: str) -> Stream | None:
    rows = Stream.objects.filter(session_id=session_id, public_id=public_id)
    return rows.first()


def _heads(keys: Sequence[int]) -> Heads:
    live = Worker.objects.live().filter(pk=OuterRef("owner"))
    rows = Stream.objects.filter(pk__in=keys).annotate(lives=Exists(live))
    return {
        pk: (seq, ORPHANED if state == OPEN and not lives else state)
        for pk, seq, state, lives in rows.values_list(
            "pk", "head_seq", "state", "lives"
        )
    }


def _events(place: Place) -> Sequence[tuple[int, str]]:
    return list(Event.objects.after(place.key, place.seq))
