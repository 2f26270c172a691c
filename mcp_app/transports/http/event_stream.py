"""A response of server-sent events; while idle, it has no task."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

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
MOST_QUEUED = 64 * 1024 * 1024
"""A reader for whom more bytes wait is given up."""


class EventStream:
    """Queues messages, and sends them from a task that lives while there are any.

    `closed` is resolved when the last byte was sent or the reader was given up.  The
    response has its own headers and these.
    """

    __slots__ = ("_ending", "_headers", "_queue", "_send", "_size", "_task", "closed")

    def __init__(self, send: Send, headers: RawHeaders) -> None:
        self._send = send
        self._headers: RawHeaders | None = [*SSE_HEADERS, *headers]
        self._queue: deque[bytes] = deque()
        self._size = 0
        self._ending = False
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

    def _stop(self) -> None:
        self._ending = True
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()

    def _write(self, data: bytes) -> None:
        if self._ending:
            return
        # Only bytes that wait are counted: one answer may be larger.
        if self._size > MOST_QUEUED:
            self._stop()
            self._close()
            return
        self._queue.append(data)
        self._size += len(data)
        self._start()

    def _start(self) -> None:
        if self._task is None and not self.closed.done():
            self._task = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(SEND_SECONDS) as limit:
                await self._send_all(limit)
        except Exception as error:
            # The reader is slow or gone; each server has its own errors for that.
            logger.debug(
                "A stream was closed, because its client is slow or gone: %r", error
            )
            self._ending = True
            self._close()
        finally:
            self._task = None

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
            data = b"".join(self._queue)
            self._queue.clear()
            self._size = 0
            limit.reschedule(asyncio.get_running_loop().time() + SEND_SECONDS)
            await self._send(
                {"type": "http.response.body", "body": data, "more_body": True}
            )
        if self._ending:
            await self._send({"type": "http.response.body", "body": b""})
            self._close()

    def _close(self) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


async def send_events(send: Send, headers: RawHeaders, *messages: bytes) -> None:
    """Send an event stream of these messages, which ends at once."""
    stream = EventStream(send, headers)
    for each in messages:
        stream.message(each)
    stream.end()
    await asyncio.wait([stream.closed])
