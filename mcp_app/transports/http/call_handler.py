"""Calls over Streamable HTTP: how each runs, and how its answer is sent."""

from __future__ import annotations

from collections.abc import Awaitable
from http import HTTPStatus
from typing import Any

from mcp_app.protocol.envelope import Request
from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.revisions import Revision
from mcp_app.server import dispatch, subscriptions
from mcp_app.server.exchange import Exchange
from mcp_app.server.identity import runs_once
from mcp_app.streams.open_session import OpenSession
from mcp_app.transports.http import at_most_once
from mcp_app.transports.http.event_stream import EventStream
from mcp_app.transports.http.logged_replies import LoggedReply, Requests
from mcp_app.transports.http.replies import Reply
from mcp_app.transports.http.request_handler import HttpRequestHandler
from mcp_app.transports.http.responses import send_json
from mcp_app.transports.http.resumption import Returning
from mcp_app.transports.open_streams import ListenStream


class CallHandler(HttpRequestHandler):
    """A request whose answer is its response."""

    def _stateless(
        self, request: Request, revision: Revision, meta: dict[str, Any]
    ) -> Awaitable[None]:
        self._process.refuse_if_stopping()
        if self.accepts.json:
            ready = dispatch.ready(self._catalog, revision, request, self._principal)
            if ready is not None:
                self.started = True
                return send_json(self.send, HTTPStatus.OK, ready, self.cors)
        exchange = self._exchange(request, revision, meta)
        if request.method == subscriptions.METHOD and self._streams:
            return self._listen(exchange)
        return self._call(exchange)

    def _call(self, exchange: Exchange) -> Awaitable[None]:
        """Run a call; in the stateless era here, else in its own task."""
        self._process.admit(exchange.principal, exchange.person, 1)
        session = exchange.session
        if session is not None and runs_once(exchange):
            return self._call_once(exchange, session)
        self.started = True
        exchange.outgoing = reply = self._reply(exchange, exchange.request_id)
        running, call = self._process.running, dispatch.answer(exchange)
        if exchange.revision.disconnect_cancels:
            return reply.run(call, running, self._task)
        running.start(exchange, call, reply)
        return reply.deliver()

    async def _call_once(self, exchange: Exchange, session: OpenSession) -> None:
        """Run a call that must not run twice, or repeat its first answer."""
        log, running = self._process.log, self._process.running
        with running.expected(exchange, session):
            stream = await at_most_once.begin_and_serve(
                self._process, exchange, session
            )
        if stream is None:
            await self.returning().repeat(exchange, session)
            return
        if self._process.stopping:
            stream.withdraw()
            self._process.refuse_if_stopping()
        self.started = True
        reply = LoggedReply(self, exchange, session, log, exchange.request_id)
        reply.begun(stream)
        exchange.outgoing = reply
        running.start(exchange, dispatch.answer(exchange), reply)
        await reply.deliver()

    def returning(self) -> Returning:
        """Return the `Returning` of this client."""
        return Returning(self, self._process, self._principal)

    def _reply(self, exchange: Exchange, requests: Requests) -> Reply:
        session = exchange.session
        if session is None:
            return Reply(self, exchange)
        return LoggedReply(self, exchange, session, self._process.log, requests)

    async def _listen(self, exchange: Exchange) -> None:
        if not self.accepts.events:
            raise RequestRefused(406, "Accept must allow text/event-stream.")
        interest, honoured = await subscriptions.accept(exchange)
        current = self._process
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
        current.listen(listening, self._person)
        with listening:
            async with current.stream_opener.watching(interest.uris):
                self.started = True
                listening.opened(subscriptions.acknowledged_message(exchange, honoured))
                await listening.serve(self.receive)
