"""Replays the streams of requests to clients that reconnect, wherever the calls run.

While there are such clients, one statement polls all of their streams.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from django.db.models import OuterRef, Subquery

from mcp_app.invalidation.workers import PeerMonitor
from mcp_app.models import Event, Stream, Worker
from mcp_app.models.appends import OPEN
from mcp_app.pools.database import reader
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.streams import event_ids
from mcp_app.streams.claims import Trouble
from mcp_app.streams.request_log import COMPLETED, OwnedStream, Reader

logger = logging.getLogger("mcp_app.streams")

LOOK_S = 0.125
"""Seconds between two polls."""

Head: TypeAlias = tuple[int, str, str, int | None]
"""A stream: the last message, the state, the owner, and `seen_ms` of the owner's row
(None if there is none)."""


@dataclass(slots=True, eq=False)
class Place:
    """How far a client has read a stream.

    If `floor` is greater than `seq`, the messages between are deleted.  `requests` is
    what the stream answers, as JSON: an id, or an array of ids.
    """

    key: int
    public_id: str
    seq: int
    floor: int
    requests: str


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier request, and the place before its first message.

    `whole` says that it was answered, and that its answer is its only message.  If it
    `is_silent`, it has no message yet: perhaps it will not run.
    """

    place: Place
    digest: str
    tool: str
    whole: bool
    is_silent: bool


def place_after(stream: OwnedStream) -> Place | None:
    """Return the place up to which a stream was sent here, None if it has no row."""
    if stream.key is None:
        return None
    return Place(stream.key, stream.public_id, stream.seq, 0, stream.requests)


class LastMessage:
    """A reader that waits for the end; `over` resolves to the last message."""

    def __init__(self) -> None:
        self._last: bytes | None = None
        self.over: asyncio.Future[bytes | None]
        self.over = asyncio.get_running_loop().create_future()

    def began(self) -> None:
        """Do nothing: the stream existed before."""

    def message(self, payload: bytes, event_id: str) -> None:
        self._last = payload

    def ended(self) -> None:
        if not self.over.done():
            self.over.set_result(self._last)


class Followers:
    """Replays streams that any process may own; used on the loop only."""

    def __init__(
        self, peers: PeerMonitor, orphaned: Callable[[], Awaitable[object]]
    ) -> None:
        """`orphaned` is called if the owner of a stream seems to be dead."""
        self._peers = peers
        self._orphaned = orphaned
        self._places: dict[Place, Reader] = {}
        self._unread = Trouble(logger, "Streams could not be read")
        self._task: asyncio.Task[None] | None = None

    async def find_place(
        self, session_id: int, public_id: str, seq: int
    ) -> Place | None:
        """Return a place in a stream of a session; None if there is no such message."""
        row = await reader.run(_row, session_id, public_id=public_id)
        if row is None or seq > row.head_seq:
            return None
        return _place_in_stream(row, seq)

    async def earlier_request(
        self, session_id: int, request_key: str
    ) -> Earlier | None:
        row = await reader.run(_row, session_id, request_key=request_key)
        if row is None:
            return None
        place = _place_in_stream(row, row.floor_seq)
        whole = row.state == COMPLETED and row.head_seq == 1
        is_silent = row.state == OPEN and row.head_seq == 0
        return Earlier(place, row.request_digest, row.tool, whole, is_silent)

    @contextmanager
    def following(self, place: Place, to: Reader) -> Iterator[None]:
        """Send the messages after a place, until the block or the stream ends."""
        self._places[place] = to
        if self._task is None:
            self._task = start_background_task(self._poll_places())
        try:
            yield
        finally:
            self._places.pop(place, None)

    async def wait_for_last(self, place: Place) -> bytes | None:
        to = LastMessage()
        with self.following(place, to):
            return await to.over

    async def _poll_places(self) -> None:
        try:
            while self._places:
                await self._poll_once()
                await asyncio.sleep(LOOK_S)
        finally:
            self._task = None

    async def _poll_once(self) -> None:
        places, began = list(self._places), time.monotonic()
        try:
            heads = await reader.run(_heads, [place.key for place in places])
            # A `Head` has the state at 1, the owner at 2 and its heartbeat at 3.
            owners = {each[2]: each[3] for each in heads.values() if each[1] == OPEN}
            if self._peers.observe_open_streams(owners, began):
                await self._orphaned()
            for place in places:
                head, state, *_ = heads.get(place.key, (None, ""))
                await self._advance_place(place, head, state)
        except Exception as error:
            # The clients stay connected: the next poll may succeed.
            self._unread.report_failure(error)
        else:
            self._unread.report_success()

    async def _advance_place(self, place: Place, head: int | None, state: str) -> None:
        while head is not None and place.seq < head and place in self._places:
            events = await reader.run(_events, place)
            if not self._send(place, events):
                await self._look_into(place)
                head = None
        if (head is None or state != OPEN) and place in self._places:
            self._places.pop(place).ended()

    def _send(self, place: Place, events: Sequence[tuple[int, str]]) -> bool:
        """Send these messages; return False if one is missing."""
        to = self._places.get(place)
        if to is None:
            return True
        for seq, payload in events:
            if seq != place.seq + 1:
                return False
            place.seq = seq
            to.message(payload.encode(), event_ids.of_message(place.public_id, seq))
        return bool(events)

    async def _look_into(self, place: Place) -> None:
        """Log an alarm, unless the missing message was deleted meanwhile."""
        rows = Stream.objects.current().filter(pk=place.key, floor_seq__lte=place.seq)
        if await reader.run(rows.exists):
            number = place.seq + 1
            logger.critical("Stream %s lacks message %d.", place.public_id, number)


def _row(session_id: int, **conditions: str) -> Stream | None:
    return Stream.objects.current().filter(session_id=session_id, **conditions).first()


def _place_in_stream(row: Stream, seq: int) -> Place:
    return Place(row.pk, row.public_id, seq, row.floor_seq, row.requests)


def _heads(keys: Sequence[int]) -> Mapping[int, Head]:
    heartbeats = Worker.objects.filter(pk=OuterRef("owner")).values("seen_ms")
    rows = Stream.objects.current().filter(pk__in=keys)
    columns = "pk", "head_seq", "state", "owner", Subquery(heartbeats)
    return {pk: head for pk, *head in rows.values_list(*columns)}


def _events(place: Place) -> Sequence[tuple[int, str]]:
    return list(Event.objects.current().after(place.key, place.seq))
