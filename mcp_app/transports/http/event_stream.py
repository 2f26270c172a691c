"""A response of server-sent events; while idle, it has no task."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from mcp_app.process.queues import Queues
from mcp_app.protocol import sse
from mcp_app.transports.asgi_types import RawHeaders, Send

logger = logging.getLogger("mcp_app.transports")

SSE_HEADERS: RawHeaders = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"content-encoding", b"identity"),
]
SEND_SECONDS = 30.0
"""A reader that takes nothing for so long is given up."""
MOST_QUEUED = 8 * 1024 * 1024
"""A reader for whom more bytes wait, and who does not take them, is given up."""
PIECE: Final = 64 * 1024
"""Bytes that are sent at once: what a server has taken it keeps until it is read."""


class EventStream:
    """Queues messages, and sends them from a task that lives while there are any.

    `closed` is resolved when the last byte was sent or the reader was given up.  The
    response has its own headers and these.
    """

    __slots__ = (
        *("_ending", "_headers", "_queue", "_queues", "_send", "_sending", "_size"),
        *("_task", "closed"),
    )

    def __init__(self, send: Send, headers: RawHeaders, queues: Queues) -> None:
        self._send = send
        self._headers: RawHeaders | None = [*SSE_HEADERS, *headers]
        self._queues = queues
        self._queue: deque[bytes | memoryview] = deque()
        self._size = 0
        self._ending = self._sending = False
        self._task: asyncio.Task[None] | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def message(self, data: bytes, event_id: str | None = None) -> None:
        """Queue a JSON-RPC message."""
        self._write(sse.message(data, event_id=event_id))

    def endpoint(self, uri: str) -> None:
        """Queue the event with the address for a session's messages."""
        self._write(sse.endpoint(uri))

    @property
    def waiting(self) -> int:
        """How many bytes wait to be sent."""
        return self._size

    def prime(self, event_id: str) -> None:
        """Queue an event that has an id only."""
        self._write(sse.priming(event_id))

    def beat(self) -> None:
        """Queue a heartbeat, unless something is on its way already."""
        if not self._queue:
            self._write(sse.comment())

    def end(self, *, retry_ms: int | None = None) -> None:
        """Send what is queued, then end the response."""
        if self._ending:
            return
        if retry_ms is not None:
            self._write(sse.retry(retry_ms))
        self._ending = True
        self._start()

    def abandon(self) -> None:
        """Send nothing any more: the reader is gone."""
        self._stop()
        if not self.closed.done():
            self.closed.cancel()

    def give_up(self) -> None:
        """End at once, because the reader takes too little."""
        self._stop()
        self._close()

    def _stop(self) -> None:
        self._forget()
        if self._task is not None:
            self._task.cancel()

    def _forget(self) -> None:
        """Let go of what waits, and take no more."""
        self._ending = True
        self._queue.clear()
        self._count(-self._size)

    def _count(self, change: int) -> None:
        self._size += change
        self._queues.count(self, change)

    def _write(self, data: bytes) -> None:
        if self._ending:
            return
        # What comes before anything could be sent is no fault of the reader, and of
        # the rest only what waits is counted: one answer may be larger.
        if self._sending and self._size > MOST_QUEUED:
            self.give_up()
            return
        self._queue.append(data)
        self._count(len(data))
        self._start()

    def _start(self) -> None:
        if self._task is None and not self.closed.done():
            self._task = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        self._sending = True
        try:
            async with asyncio.timeout(SEND_SECONDS) as limit:
                await self._send_all(limit)
        except Exception as error:
            # The reader is slow or gone; each server has its own errors for that.
            logger.debug(
                "A stream was closed, because its client is slow or gone: %r", error
            )
            self._forget()
            self._close()
        finally:
            self._task, self._sending = None, False

    async def _send_all(self, limit: asyncio.Timeout) -> None:
        if self._headers is not None:
            start = {
                "type": "http.response.start",
                "status": 200,
                "headers": self._headers,
            }
            self._headers = None
            await self._send(start)
        while self._queue:
            data = self._piece()
            limit.reschedule(asyncio.get_running_loop().time() + SEND_SECONDS)
            await self._send(
                {"type": "http.response.body", "body": data, "more_body": True}
            )
            self._count(-len(data))
        if self._ending:
            await self._send({"type": "http.response.body", "body": b""})
            self._close()

    def _piece(self) -> bytes:
        """Take what is sent next: some whole events, or a part of a large one."""
        first = self._queue.popleft()
        if len(first) > PIECE:
            rest = memoryview(first)
            self._queue.appendleft(rest[PIECE:])
            return bytes(rest[:PIECE])
        events, size = [first], len(first)
        while self._queue and size + len(self._queue[0]) <= PIECE:
            events.append(self._queue.popleft())
            size += len(events[-1])
        return b"".join(events)

    def _close(self) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


async def send_events(
    send: Send, headers: RawHeaders, queues: Queues, *messages: bytes
) -> None:
    """Send an event stream of these messages, which ends at once."""
    stream = EventStream(send, headers, queues)
    for each in messages:
        stream.message(each)
    stream.end()
    await asyncio.wait([stream.closed])
