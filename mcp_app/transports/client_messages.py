"""Notifications and replies from the client of a session; answers of batches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final, Protocol

from mcp_app.process.running import Waiting
from mcp_app.process.runtime import Process
from mcp_app.protocol.envelope import Message, Notification, Reply
from mcp_app.protocol.errors import InternalError, InvalidRequest, ProtocolError
from mcp_app.server import dispatch
from mcp_app.server.outcome import Response
from mcp_app.server.request import Request
from mcp_app.server.run import End, Run
from mcp_app.streams.open_session import OpenSession
from mcp_app.streams.questions import AnswerStatus


class AnsweredRequest(Waiting, Protocol):
    """The receiver of the answers of a batch."""

    def send_answer(self, status: int, body: bytes) -> None:
        """Send all answers; `body` is their array."""


class Together:
    """Collects the answers of a batch (2025-03-26), and sends them as one array.

    `refused` has the encoded errors of requests that do not run.
    """

    def __init__(
        self, reply: AnsweredRequest, count: int, refused: list[bytes]
    ) -> None:
        self._reply = reply
        self._open = count
        """How many requests still run."""
        self._bodies = refused
        self._size = 0

    async def answer_request(self, run: Run) -> Response:
        """Answer one request; the answers share a size limit."""
        answer = await self._answer_member(run)
        self._size += len(answer.body)
        limit = run.request.adapters.limits.body
        if self._size <= limit:
            return answer
        self._size -= len(answer.body)
        error = InternalError(
            f"The answers of this batch have more than {limit} bytes. Send this"
            " request by itself."
        )
        return encoded_error(run.request, error)

    async def _answer_member(self, run: Run) -> Response:
        return await dispatch.answer_request(run)

    def lasting(self) -> None:
        self._reply.lasting()

    def beat(self) -> None:
        self._reply.beat()

    def finished(self, task: asyncio.Task[Response]) -> None:
        """Note one answer; the last one sends them all."""
        self._open -= 1
        if not task.cancelled() and task.exception() is None:
            self._bodies.append(task.result().body)
        if self._open > 0:
            return
        if self._bodies:
            self._reply.send_answer(HTTPStatus.OK, encode_array(self._bodies))
        else:
            # All requests were cancelled, and an empty array is no answer.
            self._reply.finished(task)


def encoded_error(request: Request, error: ProtocolError) -> Response:
    """Return the status and the message that answer a request with an error."""
    return dispatch.encoded_refusal(request.revision, request.id, error)


def encode_array(bodies: list[bytes]) -> bytes:
    return b"[" + b",".join(bodies) + b"]"


call_logger = logging.getLogger("mcp_app.calls")

LOGGED: Final = 200
"""Characters of a client's text that a log record may have."""
CANCELLED: Final = "notifications/cancelled"


async def take_in_order(
    current: Process, session: OpenSession, messages: Sequence[Message], person: str
) -> None:
    """Take the notifications and replies of one request, in their order.

    If `take_message` raises, so does this, and later messages are not taken.  `person`
    is charged for an answer or a cancellation that matches nothing open here.
    """
    log_cancellations(messages)
    for message in messages:
        await take_message(current, session, message, person)


def is_charged(message: Message) -> bool:
    """Whether a message may be refused because its sender has sent too many.

    Answers and cancellations are not refused: their question or request may be open at
    another process.  If they match nothing, `take_message` charges the sender.
    """
    if type(message) is Notification:
        return message.method != CANCELLED
    return type(message) is not Reply


async def take_message(
    current: Process, session: OpenSession, message: Message, person: str
) -> None:
    """Take a notification or a reply; a request is left alone.

    Raises 400 if a reply answers no question, 404 if the session is gone.
    """
    if type(message) is Reply:
        status = await current.questions.take(
            session, message.id, message.result, message.error
        )
        if status is not AnswerStatus.FIRST:
            current.rates.note_requests(person)
        if status is AnswerStatus.UNKNOWN:
            # The session may be closed elsewhere, which also deletes its questions.
            await current.sessions.client_position(session)
            raise InvalidRequest(
                f"No question with the id {message.id!r} is waiting for an answer."
            )
    elif type(message) is Notification:
        if message.method == "notifications/initialized" and session.negotiated:
            await current.sessions.complete_handshake(session)
        elif message.method == CANCELLED:
            await _cancel_request(current, session, message.params, person)


async def _cancel_request(
    current: Process, session: OpenSession, params: dict[str, Any], person: str
) -> None:
    """Cancel a request of the session at any process; ignore unknown ids."""
    request_id = cancelled_id(params)
    running = None if request_id is None else session.running.get(request_id)
    if running is not None:
        running.stop(End.CANCELLED)
    # The request may run in another process; the rate limits such searches.
    elif current.rates.note_requests(person) and request_id is not None:
        await current.cancel_elsewhere(session, request_id)


def cancelled_id(params: dict[str, Any]) -> str | int | None:
    """Return the id in `notifications/cancelled`; None stands for an invalid id."""
    request_id: str | int | None = params.get("requestId")
    # True and 1.0 would find the request with the id 1.
    if type(request_id) is not str and type(request_id) is not int:
        return None
    return request_id


def log_cancellations(messages: Sequence[Message]) -> None:
    """Log once how many requests are cancelled, and the first reason."""
    reasons = [
        str(message.params.get("reason", ""))[:LOGGED]
        for message in messages
        if type(message) is Notification
        and message.method == CANCELLED
        and cancelled_id(message.params) is not None
    ]
    if len(reasons) == 1:
        call_logger.info("A client cancelled a request.", extra={"reason": reasons[0]})
    elif reasons:
        call_logger.info(
            "A client cancelled %d requests.",
            len(reasons),
            extra={"reason": reasons[0]},
        )
