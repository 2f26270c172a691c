"""The log of this process: what its requests say, committed before it is sent.

While one batch is being committed, the next one gathers: the more there is to say, the
more goes into a transaction.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from typing import Final, Protocol

from mcp_app.models.appends import OPEN, NewStream
from mcp_app.models.streams import Stream
from mcp_app.pools.database import log_writer
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.appending import Batch, Beside, Gain, write

logger = logging.getLogger("mcp_app.streams")

MOST_EVENTS: Final = 500
MOST_BYTES: Final = 1024 * 1024
"""What one transaction holds, but for a message that is larger by itself."""
RETRY_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Seconds between attempts in an outage; the last one over and over."""

COMPLETED: Final = Stream.State.COMPLETED.value
ABORTED: Final = Stream.State.ABORTED.value


class Reader(Protocol):
    """Who is sent the messages of a stream; used on the loop only."""

    def began(self) -> None:
        """The stream is there: who comes back will find it."""

    def message(self, payload: bytes, event_id: str) -> None:
        """Send a message that is committed."""

    def ended(self) -> None:
        """Nothing more comes."""


class OwnedStream:
    """The stream of a request that runs here; used on the loop only.

    What is said is queued, and goes to the readers once it is committed.
    """

    __slots__ = (
        "_appended",
        "_committed",
        "_log",
        "_new",
        "_queue",
        "_size",
        "_state",
        "_waiting",
        "_withdrawn",
        "failure",
        "key",
        "public_id",
        "readers",
        "seq",
        "session_id",
    )

    def __init__(self, log: RequestLog, new: NewStream) -> None:
        self._log = log
        self._new: NewStream | None = new
        self._queue: deque[tuple[bytes, Beside | None]] = deque()
        self._state = OPEN
        self._size = 0
        self._appended = 0
        self._committed = 0
        self._withdrawn = False
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.public_id = new.public_id
        self.session_id = new.session_id
        self.key: int | None = None
        self.seq = 0
        """Number of the last message that is committed."""
        self.readers: list[Reader] = []
        self.failure: Exception | None = None
        """Why nothing can be added any more."""

    @property
    def queued(self) -> int:
        """How many messages are not committed yet."""
        return len(self._queue)

    def append(self, payload: bytes, beside: Beside | None = None) -> None:
        """Say something; `beside` writes rows that belong to it, with its commit."""
        if self._state != OPEN or self.failure is not None:
            return
        self._queue.append((payload, beside))
        self._appended += 1
        self._log.wrote(self)

    def end(self, payload: bytes | None, state: str = COMPLETED) -> None:
        """Say the last thing, if there is any."""
        if payload is not None:
            self.append(payload)
        if self._state == OPEN:
            self._state = state
            self._log.wrote(self)

    async def committed(self) -> None:
        """Return when all that was said by now is committed; raise why it cannot be."""
        if self.failure is not None:
            raise self.failure
        if self._new is None and self._committed == self._appended:
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._appended, waiting))
        await waiting

    def withdraw(self) -> None:
        """The request did not begin: leave nothing of it behind."""
        self._withdrawn = True
        self._close()

    # -- for the log --------------------------------------------------------------

    def gain(self, events: int, size: int) -> Gain:
        """Take what goes into the next commit, and no more than this."""
        payloads: list[bytes] = []
        beside: list[Beside] = []
        while self._queue and len(payloads) < events and size > 0:
            payload, row = self._queue.popleft()
            payloads.append(payload)
            size -= len(payload)
            if row is not None:
                beside.append(row)
        return Gain(
            new=self._new,
            key=self.key,
            seq=self.seq,
            size=self._size,
            payloads=payloads,
            state=OPEN if self._queue else self._state,
            beside=beside,
        )

    @property
    def is_left_over(self) -> bool:
        """Whether a row is there that should not be."""
        return self._withdrawn and self.key is not None

    def gained(self, gain: Gain, key: int) -> None:
        """It is committed: send it."""
        if self._new is not None:
            self._new, self.key = None, key
            for reader in tuple(self.readers):
                reader.began()
        number = self.seq
        self.seq += len(gain.payloads)
        self._size += sum(map(len, gain.payloads))
        for payload in gain.payloads:
            number += 1
            for reader in tuple(self.readers):
                reader.message(payload, self.event_id(number))
        self._committed += len(gain.payloads)
        self._resolve()
        if gain.state != OPEN:
            self._close()

    def failed(self, error: Exception) -> None:
        """It cannot be committed, now or later."""
        self.failure = error
        self._queue.clear()
        for _, waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(error)
        self._waiting.clear()
        self._close()

    def event_id(self, number: int) -> str:
        """Return what an event is called on the wire."""
        return f"{self.public_id}.{number}"

    def _resolve(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._committed:
            _, waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)

    def _close(self) -> None:
        for reader in tuple(self.readers):
            reader.ended()
        self.readers.clear()
        self._log.closed(self)


class RequestLog:
    """Commits what the streams of this process say, one batch at a time."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._dirty: dict[OwnedStream, None] = {}
        self._open: dict[str, OwnedStream] = {}
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def open(
        self,
        session_id: int,
        public_id: str,
        *,
        requests: str,
        tool: str = "",
        request_key: str | None = None,
        request_digest: str = "",
    ) -> OwnedStream:
        """Begin a stream; its row comes with the first commit.

        `requests` is the JSON array of the ids that it answers.
        """
        stream = OwnedStream(
            self,
            NewStream(
                public_id=public_id,
                session_id=session_id,
                requests=requests,
                tool=tool,
                request_key=request_key,
                request_digest=request_digest,
            ),
        )
        self._open[public_id] = stream
        self.wrote(stream)
        return stream

    @property
    def busy(self) -> bool:
        """Whether anything is still to be committed."""
        return self._task is not None

    def wrote(self, stream: OwnedStream) -> None:
        """A stream has something to be committed."""
        self._dirty[stream] = None
        if self._task is None:
            self._task = asyncio.create_task(self._commit_all())

    def closed(self, stream: OwnedStream) -> None:
        """A stream has ended."""
        self._open.pop(stream.public_id, None)
        self._dirty.pop(stream, None)

    async def _commit_all(self) -> None:
        try:
            while self._dirty:
                await self._commit(list(self._taken()))
        finally:
            self._task = None

    def _taken(self) -> Iterable[tuple[OwnedStream, Gain]]:
        """Yield what goes into the next batch, the stream that waits longest first."""
        events, size = MOST_EVENTS, MOST_BYTES
        for stream in tuple(self._dirty):
            del self._dirty[stream]
            gain = stream.gain(events, size)
            if stream.queued:
                self._dirty[stream] = None
            events -= max(1, len(gain.payloads))
            size -= sum(map(len, gain.payloads))
            yield stream, gain
            if events <= 0 or size <= 0:
                return

    async def _commit(self, taken: list[tuple[OwnedStream, Gain]]) -> None:
        batch = Batch([gain for _, gain in taken], self._owner)
        results = await self._results(batch)
        for (stream, gain), result in zip(taken, results, strict=True):
            if isinstance(result, Exception):
                stream.failed(result)
            else:
                stream.gained(gain, result)
        names = [stream.public_id for stream, _ in taken if stream.is_left_over]
        if names:
            left_over = Stream.objects.filter(public_id__in=names)
            await log_writer.run(left_over.delete)

    async def _results(self, batch: Batch) -> list[int | Exception]:
        """Write a batch, however long the database is away."""
        attempt = 0
        while True:
            try:
                return await log_writer.run(write, batch)
            except Unavailable:
                await asyncio.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
                attempt += 1
            except Exception as error:
                # A fault of ours: better the calls fail than that they hang.
                logger.exception("The log could not be written.")
                return [error] * len(batch.gains)
