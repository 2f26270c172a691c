"""The stream of HTTP+SSE: all messages of one session, without event ids."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from django.db import Error as DatabaseError

from mcp_app.interface.principal import Principal
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import ProtocolError, RequestRefused
from mcp_app.server.outcome import Response
from mcp_app.server.run import End, Run
from mcp_app.streams.log_writer import Beside
from mcp_app.streams.open_session import OpenSession
from mcp_app.streams.request_log import ABORTED, OwnedStream
from mcp_app.streams.sse_reader import LOOK_S
from mcp_app.transports.asgi_types import APART_S
from mcp_app.transports.http.replies import EventStream
from mcp_app.transports.open_streams import StandingStream

logger = logging.getLogger("mcp_app.transports")

MAX_WAITING_BYTES: Final = 1024 * 1024
"""While more bytes wait for the client, no more is read."""


class OneChannel:
    """The output of a session's stream: messages and answers, without event ids."""

    def __init__(self, events: EventStream) -> None:
        self._events = events
        self.closed = events.closed
        self._is_open = self._is_over = False
        self._message_at = float("-inf")
        self._late: deque[tuple[float, bytes]] = deque()
        """Answers that wait, and until when."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def has_backlog(self) -> bool:
        """Whether much waits for the client."""
        late = sum(len(data) for _, data in self._late)
        return self._events.waiting + late > MAX_WAITING_BYTES

    def queue_message(self, data: bytes, event_id: str | None = None) -> None:
        self._message_at = asyncio.get_running_loop().time()
        self._events.queue_message(data)

    def queue_answer(self, data: bytes) -> None:
        """Queue the answer of a request, a moment after the message before it."""
        # The TypeScript SDK may reorder the two if it reads them together.
        loop = asyncio.get_running_loop()
        due = self._message_at + APART_S
        if not self._late and loop.time() >= due:
            self._events.queue_message(data)
            return
        self._late.append((due, data))
        if self._timer is None:
            self._timer = loop.call_at(due, self._send_due_answers)

    def _send_due_answers(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._late and self._late[0][0] <= loop.time():
            self._events.queue_message(self._late.popleft()[1])
        if self._late:
            self._timer = loop.call_at(self._late[0][0], self._send_due_answers)

    def queue_priming_event(self, event_id: str) -> None:
        """Do nothing: there are no ids."""

    def open_channel(self, address: str) -> None:
        """Send the first event, which names the address for messages."""
        self._is_open = True
        if self._is_over:
            self._events.end_output()
        else:
            self._events.queue_endpoint_event(address)

    def queue_heartbeat(self) -> None:
        # Until the channel is open, the response may still become an error.
        if self._is_open:
            self._events.queue_heartbeat()

    def end_output(self, *, retry_ms: int | None = None) -> None:
        if not self._is_open:
            self._is_over = True
            return
        while self._late:
            self._events.queue_message(self._late.popleft()[1])
        self._events.end_output(retry_ms=retry_ms)

    def abandon_output(self) -> None:
        self._late.clear()
        self._events.abandon_output()


class HeldStream(StandingStream):
    """Sends a session its messages and, once it is initialized, changes."""

    __slots__ = ("_current", "_opening", "_parting")
    _stream: OneChannel

    def __init__(
        self,
        channel: OneChannel,
        current: Process,
        session: OpenSession,
        principal: Principal,
    ) -> None:
        super().__init__(channel, current.listeners, session, principal=principal)
        self._current = current
        self._opening = self._parting = False

    @property
    def full(self) -> bool:
        return self._stream.has_backlog

    def deliver(self, payload: bytes, *, last: bool) -> None:
        """Write a message of a request; the `last` one is its answer."""
        if not last:
            self._stream.queue_message(payload)
            return
        self._stream.queue_answer(payload)
        self._listen_for_changes()

    def _listen_for_changes(self) -> None:
        """Listen for changes from now on, once the session is initialized."""
        if not self._open and not self._opening:
            self._opening = True
            self._current.spawn_task(self._open_for_changes())

    async def _open_for_changes(self) -> None:
        current, session = self._current, self._session
        try:
            if await current.sessions.load_agreement(session):
                await current.stream_opener.standing(self, session, None)
                current.spawn_task(current.deliveries.deliver_messages(session))
        except RequestRefused:
            # The client has left meanwhile, or the session was closed elsewhere.
            return
        except (ProtocolError, DatabaseError) as error:
            # It is tried again with the next answer, or the next heartbeat.
            logger.warning("A session cannot be told about changes: %r", error)
        finally:
            self._opening = False

    def beat(self) -> None:
        self._stream.queue_heartbeat()
        if self._session.negotiated:
            self._listen_for_changes()

    def end(self, *, retry_ms: int | None = None) -> None:
        """End at once, or after the running calls if the process stops."""
        if retry_ms is None:
            self._stream.end_output()
        elif not self._parting:
            self._parting = True
            self._current.spawn_task(self._end_after_calls(retry_ms))

    async def _end_after_calls(self, retry_ms: int) -> None:
        """End once a new poll has found no running call, or after the drain."""
        sse_reader, loop = self._current.sse_reader, self._current.loop
        deadline = loop.time() + self._current.limits.drain
        target = sse_reader.looks_after_next_poll
        while loop.time() < deadline and (
            sse_reader.looks < target or sse_reader.is_session_busy(self._session.pk)
        ):
            sse_reader.poll_soon()
            await asyncio.sleep(LOOK_S / 4)
        self._stream.end_output(retry_ms=retry_ms)


# -- reply -----------------------------------------------------------------------------
# The way back of a POSTed request: the stream of its session.


class PostedCall:
    """Logs a call's messages; the process with the session's stream reads them."""

    streams = True
    over = False
    """Whether further messages are dropped."""

    def __init__(
        self,
        current: Process,
        session: OpenSession,
        run: Run,
        stream: OwnedStream,
    ) -> None:
        self._current = current
        self._session = session
        self._run: Run | None = run
        self._stream = stream
        stream.lost = self._stop_call
        stream.readers.append(self)

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        stream = self._stream
        if self.over:
            return
        if stream.may_send_no_more:
            stream.end_with_overflow()
            self._stop_call(None)
        else:
            stream.append(message, beside)

    def reconnect(self, after_ms: int) -> None:
        """Do nothing: the session would end with its stream."""

    def lasting(self) -> None:
        self._current.watch()

    def beat(self) -> None:
        """The session's stream has its own heartbeats."""

    def finished(self, task: asyncio.Task[Response]) -> None:
        """Log the answer; a call that was cancelled has none."""
        self._run = None
        stream = self._stream
        if self.over or stream.ends or stream.failure is not None:
            return
        if task.cancelled() or task.exception() is not None:
            stream.end(None, ABORTED)
        else:
            stream.end(task.result().body)

    def _stop_call(self, _: bytes | None) -> None:
        if self._run is not None:
            self._run.stop(End.CANCELLED)

    # -- what the log has committed ---------------------------------------------------

    def began(self) -> None:
        """Do nothing: readers only need messages."""

    def message(self, payload: bytes, event_id: str) -> None:
        self._current.wake_reader(self._session.pk)

    def ended(self) -> None:
        self._current.wake_reader(self._session.pk)
