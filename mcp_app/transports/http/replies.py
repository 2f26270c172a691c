"""How one request is answered: JSON, or an event stream from the first message on."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from typing import Any, Final

from mcp_app.process.quotas import Queues
from mcp_app.process.running import RunningCalls
from mcp_app.protocol import framing
from mcp_app.server.outcome import Response
from mcp_app.server.run import End, Run
from mcp_app.streams.log_writer import Beside
from mcp_app.transports.asgi_types import RawHeaders, Send
from mcp_app.transports.http.responses import OK, Connection, send_json

logger = logging.getLogger("mcp_app.transports")

SSE_HEADERS: RawHeaders = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"content-encoding", b"identity"),
]
CLOSE: Final = (b"connection", b"close")
SEND_SECONDS = 30.0
"""A reader that takes nothing for so long is given up."""
MAX_QUEUED_BYTES = 8 * 1024 * 1024
"""A reader that leaves more bytes than this waiting is given up."""
PIECE: Final = 64 * 1024
"""Bytes that are sent at once: the web server keeps them until the client reads."""


class EventStream:
    """Queues messages, and sends them from a task that lives while there are any.

    `closed` is resolved when the last byte was sent or the reader was given up.
    `headers` are added to those of every event stream.
    """

    __slots__ = (
        *("_ending", "_headers", "_queue", "_queues", "_send", "_sending", "_task"),
        *("closed", "waiting"),
    )

    def __init__(self, send: Send, headers: RawHeaders, queues: Queues) -> None:
        self._send = send
        self._headers: RawHeaders | None = [*SSE_HEADERS, *headers]
        self._queues = queues
        self._queue: deque[bytes | memoryview] = deque()
        self.waiting = 0
        """How many bytes wait to be sent."""
        self._ending = self._sending = False
        self._task: asyncio.Task[None] | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def queue_message(self, data: bytes, event_id: str | None = None) -> None:
        self._queue_event(framing.message_event(data, event_id=event_id))

    def queue_endpoint_event(self, uri: str) -> None:
        self._queue_event(framing.endpoint_event(uri))

    def queue_priming_event(self, event_id: str) -> None:
        self._queue_event(framing.priming_event(event_id))

    def queue_heartbeat(self) -> None:
        """Queue a heartbeat, unless something is on its way already."""
        if not self._queue:
            self._queue_event(framing.comment_line())

    def end_output(self, *, retry_ms: int | None = None) -> None:
        if self._ending:
            return
        if retry_ms is not None:
            self._queue_event(framing.retry_field(retry_ms))
        self._ending = True
        self._start_sending()

    def abandon_output(self) -> None:
        """Send nothing any more, because the reader is gone; cancel `closed`."""
        self._cancel_sending()
        if not self.closed.done():
            self.closed.cancel()

    def give_up(self) -> None:
        """End at once, because the reader takes too little; resolve `closed`."""
        self._cancel_sending()
        self._resolve_closed()

    def _cancel_sending(self) -> None:
        self._discard_queue()
        if self._task is not None:
            self._task.cancel()

    def _discard_queue(self) -> None:
        self._ending = True
        self._queue.clear()
        self._count_bytes(-self.waiting)

    def _count_bytes(self, change: int) -> None:
        self.waiting += change
        self._queues.count_bytes(self, change)

    def _queue_event(self, data: bytes) -> None:
        if self._ending:
            return
        # Before sending begins, a long queue is not the reader's fault.  The new
        # message does not count, because one answer may be larger than the limit.
        if self._sending and self.waiting > MAX_QUEUED_BYTES:
            self.give_up()
            return
        self._queue.append(data)
        self._count_bytes(len(data))
        self._start_sending()

    def _start_sending(self) -> None:
        if self._task is None and not self.closed.done():
            self._task = asyncio.create_task(self._drain_queue())

    async def _drain_queue(self) -> None:
        self._sending = True
        try:
            async with asyncio.timeout(SEND_SECONDS) as limit:
                await self._send_queue(limit)
        except Exception as error:
            # The reader is slow or gone; each server has its own errors for that.
            logger.debug(
                "A stream was closed, because its client is slow or gone: %r", error
            )
            self._discard_queue()
            self._resolve_closed()
        finally:
            self._task, self._sending = None, False

    async def _send_queue(self, limit: asyncio.Timeout) -> None:
        if self._headers is not None:
            headers, self._headers = self._headers, None
            await self._send(
                {"type": "http.response.start", "status": OK, "headers": headers}
            )
        while self._queue:
            data = self._next_chunk()
            limit.reschedule(asyncio.get_running_loop().time() + SEND_SECONDS)
            await self._send(
                {"type": "http.response.body", "body": data, "more_body": True}
            )
            self._count_bytes(-len(data))
        if self._ending:
            await self._send({"type": "http.response.body", "body": b""})
            self._resolve_closed()

    def _next_chunk(self) -> bytes:
        """Take what is sent next: some whole events, or a part of a large one."""
        first = self._queue.popleft()
        if len(first) > PIECE:
            view = memoryview(first)
            self._queue.appendleft(view[PIECE:])
            return bytes(view[:PIECE])
        events, size = [first], len(first)
        while self._queue and size + len(self._queue[0]) <= PIECE:
            events.append(self._queue.popleft())
            size += len(events[-1])
        return b"".join(events)

    def _resolve_closed(self) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


async def send_events(
    send: Send, headers: RawHeaders, queues: Queues, *messages: bytes
) -> None:
    """Send an event stream of these messages, and end it."""
    stream = EventStream(send, headers, queues)
    for message in messages:
        stream.queue_message(message)
    stream.end_output()
    await asyncio.wait([stream.closed])


PROMOTE_AFTER = 1.0
"""Seconds of silence after which the answer becomes a stream, with heartbeats."""


class Reply:
    """The way back of one request; it becomes a stream when something must be sent."""

    _events: EventStream | None = None
    _timer: asyncio.TimerHandle | None = None
    _watching: asyncio.Future[Any] | None = None
    _finished: asyncio.Future[Response | None] | None = None
    """Resolves to the answer; to None if there is none to send."""
    _over = False
    """Whether no more messages may be sent before the answer."""
    _has_left = False

    def __init__(self, connection: Connection, run: Run) -> None:
        self._connection = connection
        self._run: Run | None = run
        self.streams = connection.accepts.events
        """Whether messages may be sent or logged before the answer."""

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        """Queue a message before the answer; drop it if the client takes no events."""
        if not self._connection.accepts.events:
            self._connection.process.dropped += 1
        elif self.streams and not self._over:
            self._open_events().queue_message(message)

    def reconnect(self, after_ms: int) -> None:
        """Do nothing: a stream without a log cannot be resumed."""

    def beat(self) -> None:
        if self._events is not None:
            self._events.queue_heartbeat()

    async def run_call(
        self,
        call: Awaitable[Response],
        running: RunningCalls,
        task: asyncio.Task[Any] | None,
    ) -> None:
        """Run the call here, send its answer; it is cancelled if the client leaves."""
        run = self._require_run()
        running.begin_call(run, self, task)
        answer: Response | None
        try:
            answer = await call
        except asyncio.CancelledError:
            if not was_cancelled_by_end(run):
                raise
            answer = None
        finally:
            running.end_call(run)
            self.forget_run()
        await self.conclude(answer)

    def put_answer_into(self, finished: asyncio.Future[Response | None]) -> None:
        """Put the answer into this future; the owner of the future sends it."""
        self._finished = finished

    def forget_run(self) -> None:
        """Forget the run: otherwise run and reply would be a reference cycle."""
        self._run = None
        if self._watching is not None:
            self._stop_watching()

    async def deliver_answer(self) -> None:
        """Send the answer of the call, which goes on if the client leaves."""
        run = self._require_run()
        self._finished = run.request.adapters.loop.create_future()
        try:
            await self.conclude(await self._finished)
        except asyncio.CancelledError:
            self.gone()
            raise
        finally:
            self._stop_watching()

    def _require_run(self) -> Run:
        if self._run is None:
            raise RuntimeError("This reply was already sent.")
        return self._run

    def conclude(self, answer: Response | None) -> Awaitable[object]:
        """Send the answer, or end the stream of a call that has none."""
        self._over = True
        if answer is None:
            return self._end_events()
        status, body = answer
        way = self._connection
        if self._events is None and (way.accepts.json or status != OK):
            headers = self._headers if status == OK else way.error_headers(status)
            return send_json(way.send, status, body, headers)
        self._open_events().queue_message(body)
        return self._end_events()

    def finished(self, task: asyncio.Task[Response]) -> None:
        """Take the answer; a cancelled or failed call has none."""
        broken = task.cancelled() or task.exception() is not None
        self._take_answer(None if broken else task.result())

    def send_answer(self, status: int, body: bytes) -> None:
        self._take_answer(Response(status, body))

    def _take_answer(self, answer: Response | None) -> None:
        self._resolve_answer(answer)

    def _resolve_answer(self, answer: Response | None) -> None:
        if self._finished is not None and not self._finished.done():
            self._finished.set_result(answer)

    async def _end_events(self) -> None:
        """End the stream; return when all was sent or its reader given up."""
        if self._has_left:
            return
        events = self._open_events()
        events.end_output()
        await asyncio.wait([events.closed])

    @property
    def _headers(self) -> RawHeaders:
        way = self._connection
        # A client that kept the connection would be refused at its next call.
        return [*way.cors, CLOSE] if way.process.stopping else way.cors

    def _open_events(self) -> EventStream:
        if self._events is None:
            way = self._connection
            self._events = EventStream(way.send, self._headers, way.process.queues)
            self._events.closed.add_done_callback(self._note_closed_stream)
            self._write_beginning(self._events)
        return self._events

    def _write_beginning(self, events: EventStream) -> None:
        """Write what must come before the first message: here nothing."""

    def lasting(self) -> None:
        """Watch for the client to leave; become a stream after a silence."""
        if self._watching is not None:
            # Another call of the same batch watches already.
            return
        # Heartbeats come from the timer of the process, which this starts.
        self._connection.process.watch()
        if self._run is None:
            # The connection is closed already, and the call goes on.
            return
        loop = asyncio.get_running_loop()
        self._watching = asyncio.ensure_future(self._connection.receive())
        self._watching.add_done_callback(self._note_disconnect)
        self._timer = loop.call_later(PROMOTE_AFTER, self._promote_to_stream)

    def _promote_to_stream(self) -> None:
        self._timer = None
        if self.streams and not self._over:
            self._open_events().queue_heartbeat()

    def _note_disconnect(self, watching: asyncio.Future[Any]) -> None:
        if watching.cancelled() or watching.exception() is not None:
            return
        if watching.result()["type"] == "http.disconnect":
            self.gone()

    def _note_closed_stream(self, _: asyncio.Future[None]) -> None:
        self.gone()

    def gone(self) -> None:
        """Send nothing more: the client left.  This may cancel the call."""
        if self._over or self._run is None:
            return
        if self._events is not None:
            self._events.abandon_output()
        self.streams = False
        self._has_left = True
        if self._run.request.revision.disconnect_cancels:
            self._run.stop(End.CLIENT_GONE)
        self._resolve_answer(None)

    def _stop_watching(self) -> None:
        self._run = None
        if self._timer is not None:
            self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()


def was_cancelled_by_end(run: Run) -> bool:
    """Whether only the end of this run has cancelled the task."""
    # `uncancel` takes one cancellation back, and returns how many remain.
    task = asyncio.current_task()
    return run.end is not None and task is not None and task.uncancel() == 0
