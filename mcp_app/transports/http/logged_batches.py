"""Batches in a session that has a row: each call that must run once is logged."""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from mcp_app.protocol.errors import InvalidRequest, ProtocolError
from mcp_app.server import dispatch
from mcp_app.server.exchange import End
from mcp_app.server.identity import runs_once
from mcp_app.streams.final_message import why
from mcp_app.streams.log_writer import StreamFenced
from mcp_app.streams.replay import after
from mcp_app.streams.request_log import ABORTED
from mcp_app.transports.batches import AnsweredRequest, Together
from mcp_app.transports.http import at_most_once

if TYPE_CHECKING:
    from mcp_app.process.running import Answer
    from mcp_app.process.runtime import Process
    from mcp_app.server.exchange import Exchange
    from mcp_app.streams.open_session import OpenSession
    from mcp_app.streams.request_log import OwnedStream


class LoggedTogether(Together):
    """Answers a batch, and logs each call that must run once."""

    def __init__(
        self, reply: AnsweredRequest, current: Process, count: int, refused: list[bytes]
    ) -> None:
        super().__init__(reply, count, refused)
        self._current = current
        self._followers = current.followers

    async def _answered(self, exchange: Exchange) -> Answer:
        session = exchange.session
        if session is not None and runs_once(exchange):
            return await self._answered_once(exchange, session)
        return await dispatch.answer(exchange)

    async def _answered_once(self, exchange: Exchange, session: OpenSession) -> Answer:
        """Answer a request that has its own row, which keeps the answer."""
        try:
            stream = await self._begun(exchange, session)
        except ProtocolError as error:
            return dispatch.refusal(exchange.revision, exchange.request_id, error)
        stream.lost = partial(_stop, exchange)
        try:
            answer = await dispatch.answer(exchange)
        except asyncio.CancelledError:
            if isinstance(stream.failure, StreamFenced):
                return await self._answered_elsewhere(exchange, stream)
            stream.end(None, ABORTED)
            raise
        if exchange.untouched:
            stream.withdraw()
            return answer
        stream.lost = None
        stream.end(answer[1])
        try:
            await stream.committed()
        except StreamFenced:
            return await self._answered_elsewhere(exchange, stream)
        except Exception as error:
            return dispatch.refusal(exchange.revision, exchange.request_id, why(error))
        return answer

    async def _begun(self, exchange: Exchange, session: OpenSession) -> OwnedStream:
        """Return the stream of a request once its row exists, or raise the error.

        A stop also ends calls of the batch that still wait for their rows.
        """
        try:
            stream = await at_most_once.begin_and_serve(
                self._current, exchange, session
            )
        except asyncio.CancelledError:
            raise dispatch.error_of_end(exchange) from None
        if stream is None:
            raise InvalidRequest(
                f"The id {exchange.request_id!r} was used before in this session."
                " Give each request an id of its own."
            )
        return stream

    async def _answered_elsewhere(
        self, exchange: Exchange, stream: OwnedStream
    ) -> Answer:
        """Return the answer of the process that took this one for dead."""
        place = after(stream)
        body = None if place is None else await self._followers.last(place)
        if body is None:
            error = why(StreamFenced())
            return dispatch.refusal(exchange.revision, exchange.request_id, error)
        return HTTPStatus.OK, body


def _stop(exchange: Exchange, _: bytes | None) -> None:
    exchange.stop(End.CANCELLED)
