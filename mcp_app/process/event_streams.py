"""Pushes events to the streams of this process that wait for them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from django.db import Error as DatabaseError

from mcp_app.protocol.errors import InvalidParams, ProtocolError, Unavailable
from mcp_app.protocol.events import EventError
from mcp_app.server.events import Batch, dialect_for, find_subscription, read_batch
from mcp_app.server.request import Request
from mcp_app.server.run import Run

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process

MAX_AT_ONCE, MAX_OF_TYPE = 20, 10
"""Streams that are looked at together, in all and of one event type."""
BATCH_SIZE: Final = 200
"""Events that one stream gets before others have their turn."""
FULL_S: Final = 0.25
"""Seconds after which a stream with a slow reader is tried again."""


class Push(Protocol):
    """A stream that is told of events of one type."""

    topic: str
    request: Request
    position: int

    @property
    def is_full(self) -> bool:
        """Whether the reader must first take what was written before."""

    def write_batch(self, batch: Batch) -> None:
        """Write events until the stream is full, and keep the position of the last."""

    def write_heartbeat(self) -> None:
        """Write the position up to which all events were looked at."""

    def write_error(self, error: ProtocolError) -> None:
        """Write an error after which the stream goes on."""

    def terminate(self, error: EventError) -> None:
        """Write that the subscription is over, and end."""


class EventStreams:
    """The event streams of a process; used on its loop only."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._by_topic: dict[str, set[Push]] = {}
        self._due: dict[Push, bool] = {}
        """Streams to look at, and whether each gets a heartbeat."""
        self._busy: set[Push] = set()
        self._workers = 0
        process.events.add_reader(self._note_topics)

    @contextmanager
    def listen(self, stream: Push) -> Iterator[None]:
        """Push to a stream until the block ends."""
        streams = self._by_topic.setdefault(stream.topic, set())
        streams.add(stream)
        self.look_soon(stream)
        try:
            yield
        finally:
            streams.discard(stream)
            self._due.pop(stream, None)
            if not streams:
                self._by_topic.pop(stream.topic, None)

    def _note_topics(self, topics: Collection[str]) -> None:
        for topic in topics:
            for stream in self._by_topic.get(topic, ()):
                self.look_soon(stream)

    def look_soon(self, stream: Push, *, beat: bool = False) -> None:
        """Look for events for a stream, after others had their turn."""
        if stream not in self._by_topic.get(stream.topic, ()):
            return
        self._due[stream] = self._due.get(stream, False) or beat
        if self._workers < min(MAX_AT_ONCE, len(self._due)):
            self._workers += 1
            self._process.spawn_task(self._work())

    async def _work(self) -> None:
        try:
            while (stream := self._next_stream()) is not None:
                beat = self._due.pop(stream)
                self._busy.add(stream)
                try:
                    await self._tell(stream, beat=beat)
                finally:
                    self._busy.discard(stream)
                await asyncio.sleep(0)
        finally:
            self._workers -= 1

    def _next_stream(self) -> Push | None:
        # A slow match holds up only the streams of its own type.
        busy = Counter(each.topic for each in self._busy)
        free = (each for each in self._due if busy[each.topic] < MAX_OF_TYPE)
        return next((each for each in free if each not in self._busy), None)

    async def _tell(self, stream: Push, *, beat: bool) -> None:
        """Write the new events, or why the subscription is over."""
        if stream.is_full:
            asyncio.get_running_loop().call_later(FULL_S, self.look_soon, stream)
            return
        try:
            batch = await self._read(stream)
        except EventError as error:
            stream.terminate(error)
            return
        except (DatabaseError, Unavailable):
            # The next heartbeat tries again.
            pass
        except ProtocolError as error:
            stream.write_error(error)
        else:
            stream.write_batch(batch)
            if batch.has_more or stream.position < batch.position:
                self.look_soon(stream)
        if beat:
            # Outages and stops have heartbeats, too: without them, clients reconnect.
            stream.write_heartbeat()

    async def _read(self, stream: Push) -> Batch:
        run = Run(await self._process.events.renew_request(stream.request))
        try:
            subscription = await find_subscription(run, run.request.params)
        except InvalidParams as error:
            # The arguments were right before, so the schema has changed.
            dialect, reason = dialect_for(run.request), "schema_changed"
            message = error.message
            raise EventError(dialect, "unsupported", message, reason=reason) from None
        return await read_batch(run, subscription, stream.position, BATCH_SIZE)
