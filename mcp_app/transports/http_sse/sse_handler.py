"""HTTP+SSE of 2024-11-05: one stream for all messages, and an address to POST to.

The stream is the session: its first event names the address with the session's id, and
with its end the session ends.  A POST to any process is answered with 202; its messages
are logged, and the process that has the stream reads them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qs, quote

from django.conf import settings
from django.db import IntegrityError

from mcp_app.interface.server import MESSAGES_PART
from mcp_app.pools.database import unavailable
from mcp_app.process.admission import admit
from mcp_app.protocol import envelope, negotiation
from mcp_app.protocol.envelope import Message, Request, RequestId
from mcp_app.protocol.envelope import Reply as ClientReply
from mcp_app.protocol.errors import InvalidRequest, ProtocolError, RequestRefused
from mcp_app.protocol.headers import accepted_content, parse_accept
from mcp_app.protocol.revisions import LATEST, LATEST_STATEFUL, Revision
from mcp_app.server import conversation, dispatch
from mcp_app.server.request_digests import runs_once
from mcp_app.server.run import End, Run
from mcp_app.streams.bound_sessions import Negotiation
from mcp_app.streams.log_writer import StreamFenced
from mcp_app.streams.open_session import OpenSession, SessionNotFound
from mcp_app.streams.request_log import OwnedStream, open_stream
from mcp_app.transports import client_messages
from mcp_app.transports.asgi_types import path_below_root
from mcp_app.transports.http import call_handler
from mcp_app.transports.http.handler import SESSION_ID
from mcp_app.transports.http.logged_replies import called_tool
from mcp_app.transports.http.replies import EventStream
from mcp_app.transports.http.request_handler import HttpRequestHandler
from mcp_app.transports.http.resumption import find_earlier
from mcp_app.transports.http_sse.stream import HeldStream, OneChannel, PostedCall

PARAMETER: Final = "session_id"
"""The query parameter with the session's id."""


class Address(HttpRequestHandler):
    """A request to the address of the stream, or to that for messages."""

    def _method_handler(self) -> Callable[[], Awaitable[None]]:
        if not self._streams:
            raise RequestRefused(
                501,
                "HTTP+SSE needs a stream that stays open, and this site cannot keep"
                " streams open (WSGI). Use Streamable HTTP at the endpoint.",
            )
        return super()._method_handler()


class StreamHandler(Address):
    """A client opens the stream of a new session."""

    allowed = "GET, OPTIONS"

    async def get(self) -> None:
        if not parse_accept(self._headers.get(b"accept")).events:
            raise RequestRefused(406, "Accept must allow text/event-stream.")
        self._charge_messages()
        current = self.process
        session = current.sse_sessions.new_session(self._principal, self._slug)
        channel = OneChannel(EventStream(self.send, self.cors, current.queues))
        stream = HeldStream(channel, current, session, self._principal)
        try:
            current.add_listener(stream, self._person)
            with stream:
                await current.sessions.store_session(session, self._principal)
                self.started = True
                with current.sse_reader.deliver_to(session.pk, stream):
                    channel.open_channel(self._messages_at(session.session_id))
                    await stream.serve_until_end(self.receive)
        finally:
            current.listeners.discard(stream)
            current.spawn_task(current.sse_sessions.end_session(session))

    def _messages_at(self, session_id: str) -> str:
        """Return the address for the session's messages, with the site's prefix."""
        root = settings.FORCE_SCRIPT_NAME or self._scope.get("root_path", "")
        path = root.rstrip("/") + path_below_root(root, self._scope["path"])
        # Two slashes would begin the name of a host (RFC 3986, section 4.2).
        parent = f"/{path.strip('/')}".rpartition("/")[0]
        return f"{quote(parent)}/{MESSAGES_PART}?{PARAMETER}={session_id}"


class MessagesHandler(Address):
    """A client sends a message of its session."""

    allowed = "POST, OPTIONS"
    _requested_id: str
    _logged = True
    """Whether the log takes messages; if not, it cannot carry an error either."""

    async def answer_request(self) -> None:
        # The session's id leaves the scope, because servers log scopes.
        query = self._scope.get("query_string", b"")
        self._scope["query_string"] = b""
        values = parse_qs(query.decode("latin-1")).get(PARAMETER, [])
        self._requested_id = values[0] if len(values) == 1 else ""
        await super().answer_request()

    async def post(self) -> None:
        """Take a message, or a batch of 2025-03-26."""
        raw = self._headers.raw
        # The Accept header does not matter: the answer has no body.
        accepted_content(raw.get(b"content-type"), raw.get(b"content-encoding"), None)
        value = await self._read_json()
        if self._has_arrived_late():
            await self._revalidate()
        await self._refresh_catalog()
        if type(value) is list:
            await self._take_batch(value)
        else:
            message = envelope.parse_message(value, lenient=self.process.lenient)
            await self._take_message(message)
        await self._send_accepted()

    async def _send_refusal(
        self, error: ProtocolError, request_id: RequestId | None
    ) -> None:
        """Send the error of a request on its session's stream, and accept the POST."""
        # Clients read answers from the stream alone, and some take the status of a
        # refusal for the end of the transport.
        has_session = not isinstance(error, SessionNotFound)
        if has_session and request_id is not None and self._identified and self._logged:
            with suppress(ProtocolError):
                session = await self._session_by_id()
                # The error would be taken for the answer of the call that runs.
                if request_id not in session.running:
                    await self._send_error(session, request_id, error)
                    await self._send_accepted()
                    return
        await super()._send_refusal(error, request_id)

    async def _send_error(
        self, session: OpenSession, request_id: RequestId, error: ProtocolError
    ) -> None:
        _refuse_if_closed(session)
        _, body = dispatch.encoded_refusal(session.revision, request_id, error)
        stream = open_stream(self.process.log, session, request_id)
        stream.end(body)
        await self._wait_for_row(stream, session)

    async def _session_by_id(self) -> OpenSession:
        if not SESSION_ID.fullmatch(self._requested_id):
            raise InvalidRequest(
                f"{PARAMETER} is missing. Open the stream, and POST to the address in"
                " its first event."
            )
        return await self.process.sse_sessions.find(
            self._requested_id, self._principal, self._catalog.server.slug
        )

    async def _find_session(self) -> OpenSession:
        session = await self._session_by_id()
        self._revision = session.revision
        if session.negotiated:
            header = self._headers.get(negotiation.VERSION_HEADER)
            negotiation.check_session_version(session.revision, header)
        return session

    def _check_era(self, message: Message) -> None:
        params = {} if isinstance(message, ClientReply) else message.params
        header = self._headers.get(negotiation.VERSION_HEADER)
        try:
            negotiation.refuse_stateless(params, header)
        except ProtocolError:
            self._revision = LATEST
            raise

    async def _take_message(self, message: Message) -> None:
        if isinstance(message, Request):
            self._request_id = message.id
        if client_messages.is_charged(message):
            self._charge_messages()
        self._check_era(message)
        session = await self._find_session()
        current, person = self.process, self._person
        if not isinstance(message, Request):
            await client_messages.take_in_order(current, session, [message], person)
            return
        await self._refresh_catalog()
        await self._run_request(session, self._admit(session, message))

    def _admit(self, session: OpenSession, message: Request) -> Run:
        """Return the run of a request; raise if it is not its turn."""
        _refuse_if_closed(session)
        conversation.check_turn(message.method, _agreed_revision(session))
        if session.negotiated:
            return self._admit_in_session(session, message)
        meta = negotiation.meta_of(message.params) or {}
        adapters = replace(self.process.adapters, handshakes=Negotiation(session))
        request = self._make_request(message, LATEST_STATEFUL, meta, adapters=adapters)
        return admit(self.process, request)

    async def _take_batch(self, value: list[object]) -> None:
        """Take a batch; each request is answered by itself (2025-03-26, transports)."""
        session, current = await self._find_session(), self.process
        batch = self._read_batch(value, session, _agreed_revision(session))
        self._charge_batch(batch)
        if batch.requests:
            current.refuse_if_stopping()
        person = self._person
        await client_messages.take_in_order(current, session, batch.others, person)
        await self._refresh_catalog()
        current.check_share(self._principal, person, len(batch.requests))
        for request in batch.requests:
            try:
                await self._run_request(session, self._admit(session, request))
            except ProtocolError as error:
                await self._send_error(session, request.id, error)

    async def _run_request(self, session: OpenSession, run: Run) -> None:
        """Run a request; return when its row is written."""
        if run.request.session is not None and runs_once(run.request):
            await self._run_call_once(session, run)
            return
        log, tool = self.process.log, called_tool(run.request)
        stream = open_stream(log, session, run.request.id, tool=tool)
        call = self._start_call(session, run, stream)
        try:
            await self._wait_for_row(stream, session)
        except ProtocolError:
            # A refused request gets this error, and no other answer.
            call.over = True
            run.stop(End.CANCELLED)
            raise

    async def _run_call_once(self, session: OpenSession, run: Run) -> None:
        """Run a call that must not run twice; ignore the same one again."""
        current = self.process
        with current.running.expect_call(run, session):
            stream = await call_handler.begin_and_serve(
                current, run, session, self._renew
            )
        if stream is None:
            await find_earlier(current, run.request, session)
            return
        try:
            current.refuse_if_stopping()
            _refuse_if_closed(session)
        except ProtocolError:
            stream.withdraw_request()
            raise
        self._start_call(session, run, stream)

    def _start_call(
        self, session: OpenSession, run: Run, stream: OwnedStream
    ) -> PostedCall:
        current = self.process
        call = PostedCall(current, session, run, stream)
        run.answer_through(call)
        current.running.start_call(run, dispatch.answer_request(run), call)
        return call

    async def _wait_for_row(self, stream: OwnedStream, session: OpenSession) -> None:
        """Return when a stream has its row; raise 404 or 503 if it gets none."""
        try:
            async with asyncio.timeout(call_handler.PATIENCE_S):
                await stream.wait_until_committed()
        except (IntegrityError, StreamFenced):
            # The session may be closed elsewhere, which also deletes its streams.
            await self.process.sessions.client_position(session)
            raise unavailable() from None
        except TimeoutError:
            stream.withdraw_request()
            self._logged = False
            raise unavailable() from None


def _agreed_revision(session: OpenSession) -> Revision | None:
    return session.revision if session.negotiated else None


def _refuse_if_closed(session: OpenSession) -> None:
    # A call that began now would not be cancelled by the end of the stream.
    if session.closed:
        raise SessionNotFound
