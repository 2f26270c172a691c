"""Calls over Streamable HTTP: how each runs, and how its answer is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from django.db import IntegrityError

from mcp_app.pools.database import unavailable
from mcp_app.process.running import HttpAnswer
from mcp_app.process.runtime import Process
from mcp_app.protocol.envelope import Request
from mcp_app.protocol.errors import InvalidRequest, ProtocolError, RequestRefused
from mcp_app.protocol.revisions import Revision
from mcp_app.server import dispatch, subscriptions
from mcp_app.server.events import STREAM
from mcp_app.server.exchange import IS_DRAWN, End, Exchange
from mcp_app.server.handlers import events
from mcp_app.server.outcome import error_of_end
from mcp_app.server.request_digests import digest_of, request_key, runs_once
from mcp_app.streams.event_ids import storage_error
from mcp_app.streams.log_writer import StreamFenced
from mcp_app.streams.open_session import OpenSession
from mcp_app.streams.replay import place_after
from mcp_app.streams.request_log import (
    ABORTED,
    OwnedStream,
    RequestLog,
    Requests,
    open_stream,
)
from mcp_app.transports.client_messages import AnsweredRequest, Together, encoded_error
from mcp_app.transports.http.logged_replies import LoggedReply
from mcp_app.transports.http.replies import EventStream, Reply
from mcp_app.transports.http.request_handler import HttpRequestHandler
from mcp_app.transports.http.responses import send_json
from mcp_app.transports.http.resumption import Returning
from mcp_app.transports.open_streams import ListenStream, PushStream

# -- at most once ----------------------------------------------------------------------
# Requests that must not run twice: their rows exist before they run.

PATIENCE_S: Final = 10.0
"""In an outage of the database a request is refused after so long."""


async def begin_and_serve(
    current: Process, exchange: Exchange, session: OpenSession
) -> OwnedStream | None:
    """Call `begin`, then renew the exchange, which may be refused by now."""
    stream = await begin(current.log, exchange, session)
    if stream is not None and exchange.renew is not None:
        try:
            await exchange.renew(exchange)
        except BaseException:
            stream.withdraw_request()
            raise
    return stream


async def begin(
    log: RequestLog, exchange: Exchange, session: OpenSession
) -> OwnedStream | None:
    """Return the stream of a request once its row exists.

    None stands for one that came before, or whose session is gone.  Raises 503 if
    the database is away.
    """
    stream = open_stream(
        log,
        session,
        exchange.request_id,
        tool=exchange.params["name"],
        request_key=request_key(exchange.request_id),
        request_digest=await digest_of(exchange),
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            await stream.wait_until_committed()
    except IntegrityError:
        return None
    except TimeoutError:
        stream.withdraw_request()
        raise unavailable() from None
    except BaseException:
        stream.withdraw_request()
        raise
    return stream


class CallHandler(HttpRequestHandler):
    """A request whose answer is its response."""

    def _stateless(
        self, request: Request, revision: Revision, meta: dict[str, Any]
    ) -> Awaitable[None]:
        self.process.refuse_if_stopping()
        if self.accepts.json and not self._is_recorded(meta):
            ready = dispatch.ready_list_page(
                self._catalog, revision, request, self._principal
            )
            if ready is not None:
                self.started = True
                return send_json(self.send, HTTPStatus.OK, ready, self.cors)
        exchange = self._build_exchange(request, revision, meta)
        if request.method == subscriptions.METHOD and self._streams:
            return self._listen_for_changes(exchange)
        if request.method == STREAM and self._streams:
            return self._push_events(exchange)
        return self._run_call(exchange)

    def _is_recorded(self, meta: dict[str, Any]) -> bool:
        tracing, principal = self.process.tracing, self._principal
        if tracing is None:
            return False
        is_drawn: bool | None = self._scope.get(IS_DRAWN)
        if is_drawn is None:
            raw = self._headers.raw
            is_drawn = tracing.wants_headers(raw, principal, self._scope)
        return is_drawn or tracing.wants_meta(meta, principal)

    def _run_call(self, exchange: Exchange) -> Awaitable[None]:
        """Run a call; in the stateless era here, else in its own task."""
        self.process.admit(exchange.principal, exchange.person, 1)
        session = exchange.session
        if session is not None and runs_once(exchange):
            return self._call_once(exchange, session)
        self.started = True
        exchange.outgoing = reply = self._reply_for(exchange, exchange.request_id)
        running, call = self.process.running, dispatch.answer_request(exchange)
        if exchange.revision.disconnect_cancels:
            return reply.run_call(call, running, self._task)
        running.start_call(exchange, call, reply)
        return reply.deliver_answer()

    async def _call_once(self, exchange: Exchange, session: OpenSession) -> None:
        """Run a call that must not run twice, or repeat its first answer."""
        log, running = self.process.log, self.process.running
        with running.expect_call(exchange, session):
            stream = await begin_and_serve(self.process, exchange, session)
        if stream is None:
            await self.returning().repeat_answer(exchange, session)
            return
        if self.process.stopping:
            stream.withdraw_request()
            self.process.refuse_if_stopping()
        self.started = True
        reply = LoggedReply(self, exchange, session, log, exchange.request_id)
        reply.use_stream(stream)
        exchange.outgoing = reply
        running.start_call(exchange, dispatch.answer_request(exchange), reply)
        await reply.deliver_answer()

    def returning(self) -> Returning:
        return Returning(self, self.process, self._principal)

    def _reply_for(self, exchange: Exchange, requests: Requests) -> Reply:
        session = exchange.session
        if session is None:
            return Reply(self, exchange)
        return LoggedReply(self, exchange, session, self.process.log, requests)

    async def _listen_for_changes(self, exchange: Exchange) -> None:
        if not self.accepts.events:
            raise RequestRefused(406, "Accept must allow text/event-stream.")
        interest, honoured = await subscriptions.accept_subscription(exchange)
        current = self.process
        stream = EventStream(self.send, self.cors, current.queues)
        listening = ListenStream(
            stream,
            current.listeners,
            server=self._slug,
            principal=self._principal,
            interest=interest,
            subscription=exchange.request_id,
            closing=subscriptions.closed_message(exchange),
        )
        current.add_listener(listening, self._person)
        with listening:
            async with current.stream_opener.store_watched_uris(interest.uris):
                self.started = True
                listening.open_with_message(
                    subscriptions.acknowledged_message(exchange, honoured)
                )
                with current.tasks.listen(listening, interest.tasks):
                    await listening.serve_until_end(self.receive)

    async def _push_events(self, exchange: Exchange) -> None:
        if not self.accepts.events:
            raise RequestRefused(406, "Accept must allow text/event-stream.")
        entry, position, truncated = await events.open_stream(exchange)
        current = self.process
        stream = EventStream(self.send, self.cors, current.queues)
        push = PushStream(stream, current, exchange, entry, position)
        current.add_listener(push, self._person)
        with push:
            self.started = True
            push.open_with_cursor(truncated)
            with current.event_streams.listen(push):
                await push.serve_until_end(self.receive)


# -- logged batches --------------------------------------------------------------------
# Batches in a session that has a row: each call that must run once is logged.


class LoggedTogether(Together):
    """Answers a batch, and logs each call that must run once."""

    def __init__(
        self, reply: AnsweredRequest, current: Process, count: int, refused: list[bytes]
    ) -> None:
        super().__init__(reply, count, refused)
        self._current = current
        self._followers = current.followers

    async def _answer_exchange(self, exchange: Exchange) -> HttpAnswer:
        session = exchange.session
        if session is not None and runs_once(exchange):
            return await self._answered_once(exchange, session)
        return await dispatch.answer_request(exchange)

    async def _answered_once(
        self, exchange: Exchange, session: OpenSession
    ) -> HttpAnswer:
        """Answer a request that has its own row, which keeps the answer."""
        try:
            stream = await self._begin_stream(exchange, session)
        except ProtocolError as error:
            return encoded_error(exchange, error)
        stream.lost = partial(_cancel_exchange, exchange)
        try:
            answer = await dispatch.answer_request(exchange)
        except asyncio.CancelledError:
            if isinstance(stream.failure, StreamFenced):
                return await self._answered_elsewhere(exchange, stream)
            stream.end(None, ABORTED)
            raise
        if exchange.untouched:
            stream.withdraw_request()
            return answer
        stream.lost = None
        stream.end(answer[1])
        try:
            await stream.wait_until_committed()
        except StreamFenced:
            return await self._answered_elsewhere(exchange, stream)
        except Exception as error:
            return encoded_error(exchange, storage_error(error))
        return answer

    async def _begin_stream(
        self, exchange: Exchange, session: OpenSession
    ) -> OwnedStream:
        try:
            stream = await begin_and_serve(self._current, exchange, session)
        except asyncio.CancelledError:
            # A stop also ends calls of the batch that still wait for their rows.
            raise error_of_end(exchange) from None
        if stream is None:
            raise InvalidRequest(
                f"The id {exchange.request_id!r} was used before in this session."
                " Give each request an id of its own."
            )
        return stream

    async def _answered_elsewhere(
        self, exchange: Exchange, stream: OwnedStream
    ) -> HttpAnswer:
        """Return the answer of the process that took this one for dead."""
        place = place_after(stream)
        body = None if place is None else await self._followers.wait_for_last(place)
        if body is None:
            return encoded_error(exchange, storage_error(StreamFenced()))
        return HTTPStatus.OK, body


def _cancel_exchange(exchange: Exchange, _: bytes | None) -> None:
    exchange.stop(End.CANCELLED)
