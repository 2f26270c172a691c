"""The way back of a request in a session: streams are logged before they are sent.

A client whose connection breaks can get the rest from any process, with the id of its
last event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final, Protocol

from mcp_app.server.outcome import Response
from mcp_app.server.request import Request
from mcp_app.server.run import End, Run
from mcp_app.streams.event_ids import HARMLESS_FAILURES, final_message, storage_error
from mcp_app.streams.log_writer import Beside, StreamFenced
from mcp_app.streams.open_session import OpenSession
from mcp_app.streams.replay import Place, place_after
from mcp_app.streams.request_log import (
    ABORTED,
    COMPLETED,
    OwnedStream,
    RequestLog,
    Requests,
    open_stream,
)
from mcp_app.transports.http.bodies import ClientGone
from mcp_app.transports.http.replies import EventStream, Reply
from mcp_app.transports.http.responses import OK, Connection, send_json
from mcp_app.transports.http.resumption import Returning

MAX_NAME_LENGTH: Final = 128
"""Characters of a tool's name that the log keeps."""
END_TIMEOUT_S: Final = 1.0
"""Seconds that the end of an unanswered call waits for the database."""


def called_tool(request: Request) -> str:
    """Return the called tool, "" if there is none or a row cannot hold its name."""
    # PostgreSQL takes no NUL in a text.
    name = request.params.get("name") if request.method == "tools/call" else ""
    if not isinstance(name, str) or "\0" in name:
        return ""
    return name[:MAX_NAME_LENGTH]


class SessionConnection(Connection, Protocol):
    """The part of a request that a reply in a session needs."""

    def returning(self) -> Returning:
        """Return the `Returning` of this client."""


class LoggedReply(Reply):
    """A reply that is JSON, or becomes a stream of the log.

    The call goes on if its client leaves, and its messages are logged.  If a request
    must not run twice, its stream is opened before it runs; otherwise it is opened
    before the first message that is not the answer.
    """

    _connection: SessionConnection
    _promoted = False
    """Whether the answer becomes a stream, because the call takes long."""
    _closing_task: asyncio.Task[None] | None = None
    """Closes the connection when its client has all messages."""
    _continuation: Place | None = None
    """Where in the log another process took over."""
    _last: Response | None = None
    """The answer, while it is being logged; `message` recognizes it by its bytes."""

    def __init__(
        self,
        connection: SessionConnection,
        run: Run,
        session: OpenSession,
        log: RequestLog,
        requests: Requests,
    ) -> None:
        super().__init__(connection, run)
        self._session = session
        self._log = log
        self._requests = requests
        self._stream: OwnedStream | None = None

    def use_stream(self, stream: OwnedStream) -> None:
        self._stream = stream
        stream.lost = self._stop_unanswered
        stream.readers.append(self)

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        """Log a message before the answer; `beside` writes rows in its commit."""
        if not self._connection.accepts.events:
            self._connection.process.dropped += 1
            return
        if self._stream is None and self.streams and not self._over:
            self._ensure_stream()
        if self._stream is None:
            return
        if self._stream.may_send_no_more:
            self._stream.end_with_overflow()
            self._stop_unanswered(None)
        else:
            self._stream.append(message, beside)

    def _stop_unanswered(self, error_message: bytes | None) -> None:
        """Stop the unanswered calls; the log sends the error, if any, as the answer."""
        if error_message is not None:
            self._last = Response(OK, error_message)
        requests = self._requests
        for request_id in requests if isinstance(requests, list) else [requests]:
            run = self._session.running.get(request_id)
            if run is not None and run.reply is self:
                run.stop(End.CANCELLED)

    def reconnect(self, after_ms: int) -> None:
        can_resume = self._session.revision.priming and self.streams
        if can_resume and not self._over and self._closing_task is None:
            self._closing_task = asyncio.create_task(
                self._close_when_caught_up(self._ensure_stream(), after_ms)
            )

    async def _close_when_caught_up(self, stream: OwnedStream, after_ms: int) -> None:
        """Close the connection once its client has all messages so far."""
        with suppress(Exception):
            # A failure is told to the readers of the stream, by `ended`.
            await stream.wait_until_committed()
        if self not in stream.readers or self._last is not None:
            # The client has left, or the answer is on its way.
            return
        self._stop_reading()
        self._open_events().end_output(retry_ms=after_ms)
        self._over = True
        self._resolve_answer(None)

    def _ensure_stream(self) -> OwnedStream:
        if self._stream is None:
            run, requests, tool = self._run, self._requests, ""
            if run is not None and not isinstance(requests, list):
                tool = called_tool(run.request)
            self.use_stream(open_stream(self._log, self._session, requests, tool=tool))
        return self._stream  # type: ignore[return-value]

    def _promote_to_stream(self) -> None:
        self._timer = None
        if not self.streams or self._over:
            return
        self._promoted = True
        if self._ensure_stream().key is not None:
            # A key means that the row is committed: the log calls `began` no more.
            self.began()

    def _take_answer(self, answer: Response | None) -> None:
        stream = self._stream
        if stream is None and (
            answer is None or self._has_left or self._is_json_answer(answer)
        ):
            # Nothing was logged, and nothing needs to be.
            super()._take_answer(answer)
        elif stream is not None and (stream.ends or stream.failure is not None):
            # Its last message is on its way, or another process has sent it.
            return
        elif stream is not None and self._is_unrun_call:
            # The client may send the request again, so the log must forget it.
            self._stop_reading()
            stream.withdraw_request()
            super()._take_answer(answer)
        elif answer is None:
            # The call was cancelled or failed.
            self._end_unanswered(self._ensure_stream())
        else:
            # Log the answer: once it is committed, `message` sends it.
            self._last = answer
            self._ensure_stream().end(answer.body, COMPLETED)

    @property
    def _is_unrun_call(self) -> bool:
        """Whether this is a single request, and none of its user code has run."""
        is_single = not isinstance(self._requests, list)
        return is_single and self._run is not None and self._run.ran_nothing

    def _end_unanswered(self, stream: OwnedStream) -> None:
        """End the stream without an answer, after at most `END_TIMEOUT_S`."""
        stream.end(None, ABORTED)
        if self._events is None:
            self._stop_reading()
            super()._take_answer(None)
            return
        # Earlier messages, such as that a question is cancelled, arrive first.
        asyncio.get_running_loop().call_later(END_TIMEOUT_S, self._resolve_answer, None)

    def _is_json_answer(self, answer: Response) -> bool:
        """Whether an answer is sent as JSON, if nothing was streamed before."""
        return self._connection.accepts.json or answer.status != OK

    def gone(self) -> None:
        self._stop_reading()
        super().gone()
        # Keep streaming to the log: questions wait there for the client.
        self.streams = self._stream is not None and self._connection.accepts.events

    def _stop_reading(self) -> None:
        if self._stream is not None and self in self._stream.readers:
            self._stream.readers.remove(self)

    # -- what the log has committed ---------------------------------------------------

    def began(self) -> None:
        if self._promoted:
            self._open_events()
            # ASGI servers send headers with the first bytes: send a heartbeat soon.
            asyncio.get_running_loop().call_soon(self.beat)

    def message(self, payload: bytes, event_id: str) -> None:
        last = self._last
        if (
            self._events is None
            and last
            and payload is last.body
            and self._is_json_answer(last)
        ):
            self._resolve_answer(last)
        else:
            resumable = self._session.revision.resumable
            self._open_events().queue_message(payload, event_id if resumable else None)

    def ended(self) -> None:
        """End the connection, with or without an answer."""
        stream = self._stream
        if stream is not None and isinstance(stream.failure, StreamFenced):
            # Another process has ended the stream, or goes on with it.
            self._continuation = place_after(stream)
        if stream is None or stream.failure is None or self._continuation is not None:
            # All was sent, or `conclude` sends the rest from the log.
            self._resolve_answer(None)
        elif self._events is None:
            # Nothing was sent: the error becomes the answer.
            self._resolve_answer(Response(OK, self._doubtful_answer(stream)))
        else:
            if not isinstance(stream.failure, HARMLESS_FAILURES):
                # The stream ends with an error that is not in the log: it has no id.
                self._events.queue_message(self._doubtful_answer(stream))
            self._resolve_answer(None)

    def _doubtful_answer(self, stream: OwnedStream) -> bytes:
        """Return the error of a request whose answer may not be in the log."""
        error = storage_error(stream.failure or StreamFenced())
        return final_message(stream.requests, error)

    def conclude(self, answer: Response | None) -> Awaitable[object]:
        if self._continuation is None or self._has_left:
            return super().conclude(answer)
        self._over = True
        self._stop_watching()
        return self._send_rest(self._continuation)

    async def _send_rest(self, place: Place) -> None:
        connection, session = self._connection, self._session
        if self._events is not None or not connection.accepts.json:
            await connection.returning().send_rest(session, place, self._open_events())
            return
        try:
            body = await connection.returning().answer_from_elsewhere(session, place)
        except ClientGone:
            return
        error = final_message(place.requests, storage_error(StreamFenced()))
        await send_json(connection.send, OK, body or error, connection.cors)

    def _write_beginning(self, events: EventStream) -> None:
        if self._stream is None or self._over:
            # If only the end follows, no priming event is needed.
            return
        if self._session.revision.priming:
            events.queue_priming_event(self._stream.event_id(0))
