"""The replay log of this process: it commits the messages of requests before sending.

While one batch is being committed, the next one is collected: the more messages there
are, the larger the transactions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Final, Protocol, TypeAlias

from django.db import router

from mcp_app.models.appends import OPEN, NewStream
from mcp_app.models.streams import Stream
from mcp_app.models.transactions import persistently
from mcp_app.pools.database import log_writer
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams import event_ids
from mcp_app.streams.event_ids import (
    CROWDED,
    HARMLESS_FAILURES,
    UNSTORED,
    final_message,
    request_ids,
    stream_too_long,
)
from mcp_app.streams.log_writer import Batch, Beside, Erase, Gain, Write, write
from mcp_app.streams.open_session import OpenSession

logger = logging.getLogger("mcp_app.streams")

MOST_EVENTS: Final = 500
MOST_BYTES: Final = 1024 * 1024
"""Limits of one transaction; a single message may be larger."""
KEPT_EVENTS: Final = 100_000
KEPT_BYTES: Final = 64 * 1024 * 1024
"""Limits of what is kept of a running request."""
MOST_WAITING: Final = 64 * 1024 * 1024
"""If more bytes wait in all, calls with more than their share may send no more."""
FEW_BYTES: Final = 4 * 1024
MOST_WITH_FEW: Final = 100
"""If much waits, this many streams with only `FEW_BYTES` come before the others."""
RETRY_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Seconds between attempts in an outage; the last one repeats."""

Requests: TypeAlias = str | int | list[str | int]
"""The id of a request, or those of a batch."""

COMPLETED: Final = Stream.State.COMPLETED.value
ABORTED: Final = Stream.State.ABORTED.value


class Reader(Protocol):
    """A receiver of the messages of a stream; used on the loop only."""

    def began(self) -> None:
        """Called when the stream's row exists: a returning client will find it."""

    def message(self, payload: bytes, event_id: str) -> None:
        """Send a committed message."""

    def ended(self) -> None:
        """Called when no more messages follow."""


class OwnedStream:
    """The stream of a request that runs here; used on the loop only.

    Messages are queued, and go to the readers once they are committed.
    """

    __slots__ = (
        *("_appended", "_committed", "_erasers", "_ids", "_log", "_new", "_queue"),
        *("_refused", "_size", "_state", "_waiting", "_withdrawn", "failure", "key"),
        *("lost", "public_id", "queued_bytes", "readers", "requests", "seq"),
        "session_id",
    )

    def __init__(self, log: RequestLog, new: NewStream) -> None:
        self._log = log
        self._new: NewStream | None = new
        self._queue: deque[tuple[bytes, Beside | None]] = deque()
        self._state = OPEN
        self._size = 0
        self.queued_bytes = 0
        """How many bytes are not committed yet."""
        self._appended = 0
        """How many messages were queued so far."""
        self._committed = 0
        self._erasers: list[tuple[int, Erase]] = []
        self._withdrawn = False
        """Whether the request did not start, and the row must be deleted."""
        self._refused = False
        """Whether an error message was queued in place of refused messages."""
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.public_id = new.public_id
        self.requests = new.requests
        self._ids: list[str | int] | None = None
        self.session_id = new.session_id
        self.key: int | None = None
        self.seq = 0
        """Number of the last committed message."""
        self.readers: list[Reader] = []
        self.failure: Exception | None = None
        """Why nothing can be added any more."""
        self.lost: Callable[[bytes | None], object] | None = None
        """Called when nothing can be added any more, with the message sent instead."""

    def __str__(self) -> str:
        return self.public_id

    @property
    def request_ids(self) -> list[str | int]:
        """The request ids that it answers; cached for the heartbeats."""
        if self._ids is None:
            self._ids = request_ids(self.requests)
        return self._ids

    @property
    def may_send_no_more(self) -> bool:
        """Whether it may send no more: it has sent too much, or too much waits."""
        return self._has_reached_limit or self._log.is_crowded_by(self)

    @property
    def _has_reached_limit(self) -> bool:
        events, size = self.seq + len(self._queue), self._size + self.queued_bytes
        return events >= KEPT_EVENTS or size >= KEPT_BYTES

    @property
    def ends(self) -> bool:
        return self._state != OPEN

    def append(self, payload: bytes, beside: Beside | None = None) -> None:
        """Queue a message; `beside` writes rows that belong to it, in its commit."""
        if self._state != OPEN or self.failure is not None:
            return
        self._queue.append((payload, beside))
        self._count_queued(len(payload))
        self._appended += 1
        if beside is not None and beside.erase is not None:
            self._erasers.append((self._appended, beside.erase))
        self._log.schedule_commit(self)

    def end(self, payload: bytes | None, state: str = COMPLETED) -> None:
        """Append the last message, if there is any, and end the stream."""
        if payload is not None:
            self.append(payload)
        if self._state == OPEN and self.failure is None:
            self._state = state
            self._log.schedule_commit(self)

    def end_with_overflow(self) -> None:
        """End the stream with an error: the call may send no more messages."""
        error = (
            stream_too_long(KEPT_EVENTS, KEPT_BYTES)
            if self._has_reached_limit
            else CROWDED
        )
        self.end(final_message(self.requests, error), ABORTED)

    async def wait_until_committed(self) -> None:
        """Wait until everything appended so far is committed; raise if it cannot be."""
        if self.failure is not None:
            raise self.failure
        if self._new is None and self._committed == self._appended:
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._appended, waiting))
        await waiting

    def withdraw_request(self) -> None:
        self._withdrawn = True
        self._clear_queue()
        self._close_stream()
        if self.key is not None:
            self._log.schedule_deletion(self)

    def take_gain(self, events: int, size: int) -> Gain:
        """Take the messages of the next commit, within these limits."""
        payloads: list[bytes] = []
        beside: list[Write] = []
        while self._queue and len(payloads) < events and size > 0:
            payload, rows = self._queue.popleft()
            payloads.append(payload)
            self._count_queued(-len(payload))
            size -= len(payload)
            if rows is not None:
                beside.append(rows.write)
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
        if self._new is not None:
            self._new, self.key = None, key
            if self._withdrawn:
                self._log.schedule_deletion(self)
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
        self._resolve_waiting()
        if gain.state != OPEN:
            self._close_stream()

    def _resolve_waiting(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._committed:
            _, waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)

    def handle_refusal(self, gain: Gain, error: Exception) -> None:
        """Handle a refusal: try once to log an error message instead."""
        if not gain.payloads or self._refused or isinstance(error, HARMLESS_FAILURES):
            self.close_after_failure(error)
            return
        self._refused = True
        words = final_message(self.requests, UNSTORED)
        self._drop_queued(error)
        self._state, self._committed = OPEN, self._appended
        self.end(words, ABORTED)
        if self.lost is not None:
            self.lost(words)

    def close_after_failure(self, error: Exception) -> None:
        self.failure = error
        self._drop_queued(error)
        if self.lost is not None:
            self.lost(None)
        self._close_stream()

    def _drop_queued(self, error: Exception) -> None:
        self._clear_queue()
        # Keep the erasers of messages that are committed: each begins with a number.
        self._erasers = [eraser for eraser in self._erasers if eraser[0] <= self.seq]
        for _, waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(error)
        self._waiting.clear()

    def _clear_queue(self) -> None:
        self._queue.clear()
        self._count_queued(-self.queued_bytes)

    def _count_queued(self, change: int) -> None:
        self.queued_bytes += change
        self._log.waiting += change

    def event_id(self, number: int) -> str:
        return event_ids.of_message(self.public_id, number)

    def _close_stream(self) -> None:
        self.lost = None
        for reader in tuple(self.readers):
            reader.ended()
        self.readers.clear()
        self._log.remove_stream(self)
        if self.key is not None and not self._withdrawn:
            self._log.schedule_erasure(self.key, self._erasers)


def open_stream(
    log: RequestLog, session: OpenSession, requests: Requests, **identity: str
) -> OwnedStream:
    """Begin the stream that answers requests of a session."""
    public_id, ids = event_ids.new_public_id(session.digest), jsonrpc.write(requests)
    return log.open_stream(NewStream(public_id, session.pk, ids.decode(), **identity))


class RequestLog:
    """Commits the messages of the streams of this process, one batch at a time."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self.waiting = 0
        """How many bytes of all streams are not committed yet."""
        self._dirty: dict[OwnedStream, None] = {}
        self._open: dict[str, OwnedStream] = {}
        self._unstarted: set[str] = set()
        self._erasers: list[tuple[int, int, Erase]] = []
        self._later: set[str] = set()
        """Rows whose deletion failed, to be deleted with a later heartbeat."""
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def answered_requests(self) -> set[tuple[int, str | int]]:
        """Return the requests of open streams, each as session key and request id."""
        return {
            (stream.session_id, each)
            for stream in self._open.values()
            for each in stream.request_ids
        }

    def open_stream(self, new: NewStream) -> OwnedStream:
        """Open a stream; its row is inserted with the first commit."""
        self._open[new.public_id] = stream = OwnedStream(self, new)
        self.schedule_commit(stream)
        return stream

    @property
    def is_committing(self) -> bool:
        return self._task is not None

    def is_crowded_by(self, stream: OwnedStream) -> bool:
        """Whether too much waits, and more of a stream than of others on average."""
        if self.waiting < MOST_WAITING:
            return False
        return stream.queued_bytes * len(self._dirty) >= self.waiting

    def schedule_commit(self, stream: OwnedStream) -> None:
        self._dirty[stream] = None
        self._start_committing()

    def schedule_deletion(self, stream: OwnedStream) -> None:
        """Schedule the deletion of a row: its request did not start."""
        self._unstarted.add(stream.public_id)
        self._start_committing()

    def remove_stream(self, stream: OwnedStream) -> None:
        self._open.pop(stream.public_id, None)
        self._dirty.pop(stream, None)

    def schedule_erasure(self, key: int, erasers: Iterable[tuple[int, Erase]]) -> None:
        """Schedule the removal of secrets from the rows of a stream that has ended."""
        self._erasers += ((key, seq, erase) for seq, erase in erasers)
        if self._erasers:
            self._start_committing()

    def unknown_streams(self, public_ids: Iterable[str]) -> list[str]:
        """Return which ids, read from rows before, belong to no stream here."""
        # This also tries again to delete the rows of requests that did not start.
        if self._later:
            self._unstarted |= self._later
            self._later.clear()
            self._start_committing()
        names = self._open.keys() | self._unstarted
        return [each for each in public_ids if each not in names]

    def _start_committing(self) -> None:
        if self._task is None:
            self._task = start_background_task(self._commit_all())

    async def _commit_all(self) -> None:
        try:
            while self._dirty or self._unstarted or self._erasers:
                if self._dirty:
                    await self._commit_gains(list(self._next_gains()))
                if self._unstarted:
                    await self._delete_unstarted()
                if self._erasers:
                    await self._erase_secrets()
        finally:
            self._task = None

    async def _delete_unstarted(self) -> None:
        """Delete the rows of requests that did not start; retried after an outage."""
        names = list(self._unstarted)
        rows = Stream.objects.current()
        try:
            await log_writer.run(rows.filter(public_id__in=names).delete)
        except Unavailable:
            if not self._dirty:
                await asyncio.sleep(RETRY_S[-1])
            return
        except Exception:
            logger.exception(
                "The rows of requests that did not begin could not be deleted."
            )
            self._later.update(names)
        self._unstarted.difference_update(names)

    async def _erase_secrets(self) -> None:
        """Take secrets out of the rows of calls that are over; retried in an outage."""
        key, seq, erase = self._erasers[0]
        work = partial(erase, router.db_for_write(Stream), key, seq)
        try:
            await log_writer.run(persistently, work)
        except Unavailable:
            if not self._dirty:
                await asyncio.sleep(RETRY_S[-1])
            return
        except Exception:
            logger.exception("A question of a call that is over could not be erased.")
        del self._erasers[0]

    def _next_gains(self) -> Iterable[tuple[OwnedStream, Gain]]:
        events, size = MOST_EVENTS, MOST_BYTES
        for stream in self._streams_in_turn():
            del self._dirty[stream]
            gain = stream.take_gain(events, size)
            if stream.queued_bytes:
                self._dirty[stream] = None
            # A gain without messages still updates a row.
            events -= max(1, len(gain.payloads))
            size -= sum(map(len, gain.payloads))
            yield stream, gain
            if events <= 0 or size <= 0:
                return

    def _streams_in_turn(self) -> list[OwnedStream]:
        """Return the streams in the order of writing: the longest waiting first."""
        streams = list(self._dirty)
        if self.waiting <= MOST_BYTES:
            return streams
        # A question or an answer must not wait for streams that send without end.
        few = (stream for stream in streams if stream.queued_bytes <= FEW_BYTES)
        return list(dict.fromkeys([*islice(few, MOST_WITH_FEW), *streams]))

    async def _commit_gains(self, gains: list[tuple[OwnedStream, Gain]]) -> None:
        batch = Batch([gain for _, gain in gains], self._owner)
        results = await self._write_batch(batch)
        for (stream, gain), result in zip(gains, results, strict=True):
            if isinstance(result, Exception):
                if not isinstance(result, HARMLESS_FAILURES):
                    logger.error("Stream %s lost messages: %r", stream, result)
                stream.handle_refusal(gain, result)
                continue
            try:
                stream.gained(gain, result)
            except Exception as error:
                # An error in our code: the other streams must not wait for this one.
                logger.exception("Stream %s could not be sent.", stream)
                stream.close_after_failure(error)

    async def _write_batch(self, batch: Batch) -> list[int | Exception]:
        """Write a batch; retry as long as the database is unavailable."""
        attempt = 0
        while True:
            try:
                return await log_writer.run(write, batch)
            except Unavailable:
                await asyncio.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
                attempt += 1
            except Exception as error:
                # An error in our code: the calls must fail, because they would hang.
                logger.exception("The replay log could not be written.")
                return [error] * len(batch.gains)
