"""Calls over Streamable HTTP: how each runs, and how its answer is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from django.db import IntegrityError

from mcp_app.pools.database import unavailable
from mcp_app.process.admission import admit
from mcp_app.process.runtime import Process
from mcp_app.protocol import envelope
from mcp_app.protocol.errors import InvalidRequest, ProtocolError, RequestRefused
from mcp_app.protocol.revisions import Revision
from mcp_app.server import dispatch, subscriptions
from mcp_app.server.events import STREAM
from mcp_app.server.handlers import events
from mcp_app.server.outcome import Response, error_of_end
from mcp_app.server.request import IS_DRAWN, Request
from mcp_app.server.request_digests import digest_of, request_key, runs_once
from mcp_app.server.run import End, Run
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
"""If the database is away, a request is refused after this many seconds."""


Renew: TypeAlias = Callable[[Request], Awaitable[Request]]
"""Gives a request that has waited the current catalog and rights; may raise."""


async def begin_and_serve(
    current: Process, run: Run, session: OpenSession, renew: Renew
) -> OwnedStream | None:
    """Call `begin`, then renew the request, which may be refused by now."""
    stream = await begin(current.log, run.request, session)
    if stream is not None:
        try:
            run.request = await renew(run.request)
        except BaseException:
            stream.withdraw_request()
            raise
    return stream


async def begin(
    log: RequestLog, request: Request, session: OpenSession
) -> OwnedStream | None:
    """Return the stream of a request once its row exists.

    Returns None if the request came before, or if its session is gone.  Raises 503
    if the database is away.
    """
    stream = open_stream(
        log,
        session,
        request.id,
        tool=request.params["name"],
        request_key=request_key(request.id),
        request_digest=await digest_of(request),
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
    """Runs calls whose answer is the response of their POST, as JSON or as a stream."""

    def _stateless(
        self, message: envelope.Request, revision: Revision, meta: dict[str, Any]
    ) -> Awaitable[None]:
        self.process.refuse_if_stopping()
        if self.accepts.json and not self._is_recorded(meta):
            ready = dispatch.ready_list_page(
                self._catalog, revision, message, self._principal
            )
            if ready is not None:
                self.started = True
                return send_json(self.send, HTTPStatus.OK, ready, self.cors)
        request = self._make_request(message, revision, meta)
        if request.method == subscriptions.METHOD and self._streams:
            return self._listen_for_changes(Run(request))
        if request.method == STREAM and self._streams:
            return self._push_events(Run(request))
        return self._run_call(admit(self.process, request))

    def _is_recorded(self, meta: dict[str, Any]) -> bool:
        """Whether the request gets a span: then it takes no short cut."""
        tracing, principal = self.process.tracing, self._principal
        if tracing is None:
            return False
        is_drawn: bool | None = self._scope.get(IS_DRAWN)
        if is_drawn is None:
            raw = self._headers.raw
            is_drawn = tracing.wants_headers(raw, principal, self._scope)
        return is_drawn or tracing.wants_meta(meta, principal)

    def _run_call(self, run: Run) -> Awaitable[None]:
        """Run a call: a stateless one in this task, any other in its own task."""
        request = run.request
        session = request.session
        if session is not None and runs_once(request):
            return self._call_once(run, session)
        self.started = True
        reply = self._reply_for(run, request.id)
        run.answer_through(reply)
        running, call = self.process.running, dispatch.answer_request(run)
        if request.revision.disconnect_cancels:
            return reply.run_call(call, running, self._task)
        running.start_call(run, call, reply)
        return reply.deliver_answer()

    async def _call_once(self, run: Run, session: OpenSession) -> None:
        """Run a call that must not run twice, or repeat its first answer."""
        log, running = self.process.log, self.process.running
        with running.expect_call(run, session):
            stream = await begin_and_serve(self.process, run, session, self._renew)
        if stream is None:
            await self.returning().repeat_answer(run, session)
            return
        if self.process.stopping:
            stream.withdraw_request()
            self.process.refuse_if_stopping()
        self.started = True
        reply = LoggedReply(self, run, session, log, run.request.id)
        reply.use_stream(stream)
        run.answer_through(reply)
        running.start_call(run, dispatch.answer_request(run), reply)
        await reply.deliver_answer()

    def returning(self) -> Returning:
        return Returning(self, self.process, self._principal)

    def _reply_for(self, run: Run, requests: Requests) -> Reply:
        session = run.request.session
        if session is None:
            return Reply(self, run)
        return LoggedReply(self, run, session, self.process.log, requests)

    async def _listen_for_changes(self, run: Run) -> None:
        if not self.accepts.events:
            raise RequestRefused(406, "Accept must allow text/event-stream.")
        interest, honoured = await subscriptions.accept_subscription(run)
        current = self.process
        stream = EventStream(self.send, self.cors, current.queues)
        listening = ListenStream(
            stream,
            current.listeners,
            server=self._slug,
            principal=self._principal,
            interest=interest,
            subscription=run.request.id,
            closing=subscriptions.closed_message(run.request),
        )
        current.add_listener(listening, self._person)
        with listening:
            async with current.stream_opener.store_watched_uris(interest.uris):
                self.started = True
                listening.open_with_message(
                    subscriptions.acknowledged_message(run.request, honoured)
                )
                with current.tasks.listen(listening, interest.tasks):
                    await listening.serve_until_end(self.receive)

    async def _push_events(self, run: Run) -> None:
        if not self.accepts.events:
            raise RequestRefused(406, "Accept must allow text/event-stream.")
        entry, position, truncated = await events.open_stream(run)
        current = self.process
        stream = EventStream(self.send, self.cors, current.queues)
        push = PushStream(stream, current, run.request, entry, position)
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
        self,
        reply: AnsweredRequest,
        current: Process,
        count: int,
        refused: list[bytes],
        renew: Renew,
    ) -> None:
        super().__init__(reply, count, refused)
        self._current, self._renew = current, renew
        self._followers = current.followers

    async def _answer_member(self, run: Run) -> Response:
        session = run.request.session
        if session is not None and runs_once(run.request):
            return await self._answer_once(run, session)
        return await dispatch.answer_request(run)

    async def _answer_once(self, run: Run, session: OpenSession) -> Response:
        """Answer a request; its own row keeps the answer."""
        try:
            stream = await self._begin_stream(run, session)
        except ProtocolError as error:
            return encoded_error(run.request, error)
        stream.lost = lambda _payload: run.stop(End.CANCELLED)
        try:
            answer = await dispatch.answer_request(run)
        except asyncio.CancelledError:
            if isinstance(stream.failure, StreamFenced):
                return await self._answer_from_elsewhere(run.request, stream)
            stream.end(None, ABORTED)
            raise
        if run.ran_nothing:
            stream.withdraw_request()
            return answer
        stream.lost = None
        stream.end(answer.body)
        try:
            await stream.wait_until_committed()
        except StreamFenced:
            return await self._answer_from_elsewhere(run.request, stream)
        except Exception as error:
            return encoded_error(run.request, storage_error(error))
        return answer

    async def _begin_stream(self, run: Run, session: OpenSession) -> OwnedStream:
        try:
            stream = await begin_and_serve(self._current, run, session, self._renew)
        except asyncio.CancelledError:
            # A stop also ends calls of the batch that still wait for their rows.
            raise error_of_end(run) from None
        if stream is None:
            raise InvalidRequest(
                f"The id {run.request.id!r} was used before in this session."
                " Give each request an id of its own."
            )
        return stream

    async def _answer_from_elsewhere(
        self, request: Request, stream: OwnedStream
    ) -> Response:
        """Return the answer of the process that took this one for dead."""
        place = place_after(stream)
        body = None if place is None else await self._followers.wait_for_last(place)
        if body is None:
            return encoded_error(request, storage_error(StreamFenced()))
        return Response(HTTPStatus.OK, body)
