"""Batches of 2025-03-26: many requests, and one array with their answers."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

from mcp_app.process.running import Waiting
from mcp_app.protocol.errors import InternalError
from mcp_app.server import dispatch

if TYPE_CHECKING:
    from mcp_app.process.running import Answer
    from mcp_app.server.exchange import Exchange


class AnsweredRequest(Waiting, Protocol):
    """Sends the answers of a batch."""

    def answered(self, status: int, body: bytes) -> None:
        """Send them all."""


class Together:
    """The answers of a batch; a cancelled request has none."""

    def __init__(
        self, reply: AnsweredRequest, count: int, refused: list[bytes]
    ) -> None:
        self._reply = reply
        self._open = count
        self._bodies = refused
        self._size = 0

    async def answer(self, exchange: Exchange) -> Answer:
        """Answer one request; the answers share a size limit."""
        answer = await self._answered(exchange)
        self._size += len(answer[1])
        most = exchange.adapters.limits.body
        if self._size <= most:
            return answer
        self._size -= len(answer[1])
        error = InternalError(
            f"The answers of this batch have more than {most} bytes. Send this"
            " request by itself."
        )
        return dispatch.refusal(exchange.revision, exchange.request_id, error)

    async def _answered(self, exchange: Exchange) -> Answer:
        return await dispatch.answer(exchange)

    def lasting(self) -> None:
        self._reply.lasting()

    def beat(self) -> None:
        self._reply.beat()

    def finished(self, task: asyncio.Task[Answer]) -> None:
        """Note one answer; the last one sends them all."""
        self._open -= 1
        if not task.cancelled() and task.exception() is None:
            self._bodies.append(task.result()[1])
        if self._open > 0:
            return
        if self._bodies:
            self._reply.answered(HTTPStatus.OK, array(self._bodies))
        else:
            # Nothing is left to answer, and an empty array is no answer.
            self._reply.finished(task)


def array(bodies: list[bytes]) -> bytes:
    """Return encoded messages as an array."""
    return b"[" + b",".join(bodies) + b"]"
