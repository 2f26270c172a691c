"""The log of this process: what its requests say, committed before it is sent.

While one batch is being committed, the next one gathers: the more there is to say, the
more goes into a transaction.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from django.db import IntegrityError

from mcp_app.models.appends import OPEN, NewStream
from mcp_app.models.streams import Stream
from mcp_app.pools.database import log_writer
from mcp_app.protocol.errors import InternalError, Unavailable
from mcp_app.streams import event_ids
from mcp_app.streams.appending import Batch, Beside, Fenced, Gain, write
from mcp_app.streams.last_words import last_words, request_ids

logger = logging.getLogger("mcp_app.streams")

MOST_EVENTS: Final = 500
MOST_BYTES: Final = 1024 * 1024
"""What one transaction holds, but for a message that is larger by itself."""
KEPT_EVENTS: Final = 100_000
KEPT_BYTES: Final = 64 * 1024 * 1024
"""So much is kept of a request that runs."""
RETRY_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Seconds between attempts in an outage; the last one over and over."""

COMPLETED: Final = Stream.State.COMPLETED.value
ABORTED: Final = Stream.State.ABORTED.value

EXPECTED: Final = (Fenced, IntegrityError)
"""What is no fault: a stream that was closed, a request that came before."""
ENDED_ELSEWHERE: Final = InternalError(
    "This call was ended elsewhere: its session was closed, or another process took"
    " this one for dead. Whether it had an effect is not known."
)
UNSTORED: Final = InternalError(
    "What this call said could not be stored; the server's log says why. Whether it had"
    " an effect is not known."
)


def why(failure: Exception) -> InternalError:
    """Say why a call has no other answer."""
    return ENDED_ELSEWHERE if isinstance(failure, EXPECTED) else UNSTORED


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
        "_ids",
        "_log",
        "_new",
        "_queue",
        "_queued",
        "_refused",
        "_size",
        "_state",
        "_waiting",
        "_withdrawn",
        "failure",
        "key",
        "lost",
        "public_id",
        "readers",
        "requests",
        "seq",
        "session_id",
    )

    def __init__(self, log: RequestLog, new: NewStream) -> None:
        self._log = log
        self._new: NewStream | None = new
        self._queue: deque[tuple[bytes, Beside | None]] = deque()
        self._state = OPEN
        self._size = 0
        self._queued = 0
        self._appended = 0
        self._committed = 0
        self._withdrawn = False
        self._refused = False
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.public_id = new.public_id
        self.requests = new.requests
        self._ids: list[str | int] | None = None
        self.session_id = new.session_id
        self.key: int | None = None
        self.seq = 0
        """Number of the last message that is committed."""
        self.readers: list[Reader] = []
        self.failure: Exception | None = None
        """Why nothing can be added any more."""
        self.lost: Callable[[bytes | None], object] | None = None
        """Called when nothing can be added any more, with what is said instead."""

    def __str__(self) -> str:
        return self.public_id

    @property
    def request_ids(self) -> list[str | int]:
        """The ids that it answers; read once, and asked for with each heartbeat."""
        if self._ids is None:
            self._ids = request_ids(self.requests)
        return self._ids

    @property
    def full(self) -> bool:
        """Whether it has as much as is kept of a request that runs."""
        events, size = self.seq + len(self._queue), self._size + self._queued
        return events >= KEPT_EVENTS or size >= KEPT_BYTES

    @property
    def ends(self) -> bool:
        """Whether the last thing was said."""
        return self._state != OPEN

    @property
    def queued(self) -> int:
        """How many messages are not committed yet."""
        return len(self._queue)

    def append(self, payload: bytes, beside: Beside | None = None) -> None:
        """Say something; `beside` writes rows that belong to it, with its commit."""
        if self._state != OPEN or self.failure is not None:
            return
        self._queue.append((payload, beside))
        self._queued += len(payload)
        self._appended += 1
        self._log.wrote(self)

    def end(self, payload: bytes | None, state: str = COMPLETED) -> None:
        """Say the last thing, if there is any."""
        if payload is not None:
            self.append(payload)
        if self._state == OPEN and self.failure is None:
            self._state = state
            self._log.wrote(self)

    def overflow(self) -> None:
        """Say as the last thing that the request has said more than is kept."""
        error = InternalError(
            f"This call said more than {KEPT_EVENTS} messages, or {KEPT_BYTES} bytes,"
            " which is as much as is kept of one."
        )
        self.end(last_words(self.requests, error), ABORTED)

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
        if self.key is not None:
            self._log.left_over(self)

    # -- for the log --------------------------------------------------------------

    def gain(self, events: int, size: int) -> Gain:
        """Take what goes into the next commit, and no more than this."""
        payloads: list[bytes] = []
        beside: list[Beside] = []
        while self._queue and len(payloads) < events and size > 0:
            payload, row = self._queue.popleft()
            payloads.append(payload)
            self._queued -= len(payload)
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

    def gained(self, gain: Gain, key: int) -> None:
        """It is committed: send it."""
        if self._new is not None:
            self._new, self.key = None, key
            if self._withdrawn:
                self._log.left_over(self)
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

    def refused(self, gain: Gain, error: Exception) -> None:
        """The database did not take it: say so instead, if it takes that."""
        if not gain.payloads or self._refused or isinstance(error, EXPECTED):
            self.failed(error)
            return
        self._refused = True
        words = last_words(self.requests, UNSTORED)
        self._drop(error)
        self._state, self._committed = OPEN, self._appended
        self.end(words, ABORTED)
        if self.lost is not None:
            self.lost(words)

    def failed(self, error: Exception) -> None:
        """It cannot be committed, now or later."""
        self.failure = error
        self._drop(error)
        if self.lost is not None:
            self.lost(None)
        self._close()

    def _drop(self, error: Exception) -> None:
        """Let nothing wait to be committed."""
        self._queue.clear()
        self._queued = 0
        for _, waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(error)
        self._waiting.clear()

    def event_id(self, number: int) -> str:
        """Return what an event is called on the wire."""
        return event_ids.of_message(self.public_id, number)

    def _resolve(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._committed:
            _, waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)

    def _close(self) -> None:
        self.lost = None
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
        self._left_over: set[str] = set()
        self._later: set[str] = set()
        """What is left over, and could not be deleted for a fault."""
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def answered(self) -> set[tuple[int, str | int]]:
        """Return what open streams answer: the session's key, and the request's id."""
        return {
            (stream.session_id, each)
            for stream in self._open.values()
            for each in stream.request_ids
        }

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

        `requests` is the JSON-RPC id that it answers, or a batch's array of ids, as
        JSON.
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
        self._begin()

    def left_over(self, stream: OwnedStream) -> None:
        """A stream has a row that should not be there."""
        self._left_over.add(stream.public_id)
        self._begin()

    def closed(self, stream: OwnedStream) -> None:
        """A stream has ended."""
        self._open.pop(stream.public_id, None)
        self._dirty.pop(stream, None)

    def unknown(self, public_ids: Iterable[str]) -> list[str]:
        """Return which of these rows, read before now, nobody here will end.

        Those of requests that did not begin are deleted, once more from now on.
        """
        if self._later:
            self._left_over |= self._later
            self._later.clear()
            self._begin()
        known = self._open.keys() | self._left_over
        return [each for each in public_ids if each not in known]

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._commit_all())

    async def _commit_all(self) -> None:
        try:
            while self._dirty or self._left_over:
                if self._dirty:
                    await self._commit(list(self._taken()))
                if self._left_over:
                    await self._clear()
        finally:
            self._task = None

    async def _clear(self) -> None:
        """Delete the rows of requests that did not begin, now or after an outage."""
        names = list(self._left_over)
        rows = Stream.objects.current()
        try:
            await log_writer.run(rows.filter(public_id__in=names).delete)
        except Unavailable:
            if not self._dirty:
                await asyncio.sleep(RETRY_S[-1])
            return
        except Exception:
            logger.exception("Rows of requests that did not begin are left over.")
            self._later.update(names)
        self._left_over.difference_update(names)

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
                if not isinstance(result, EXPECTED):
                    logger.error("Stream %s lost what it said: %r", stream, result)
                stream.refused(gain, result)
                continue
            try:
                stream.gained(gain, result)
            except Exception as error:
                # A fault of ours: the other streams must not wait for this one.
                logger.exception("Stream %s could not be sent.", stream)
                stream.failed(error)

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
