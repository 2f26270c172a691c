"""Streamable HTTP of all revisions as an ASGI callable."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from functools import lru_cache
from http import HTTPStatus
from typing import NoReturn

from mcp_app.protocol import envelope, negotiation
from mcp_app.protocol.envelope import Notification, Request
from mcp_app.protocol.envelope import Reply as ClientReply
from mcp_app.protocol.errors import InvalidParams, InvalidRequest, RequestRefused
from mcp_app.protocol.headers import (
    SESSION_HEADER,
    Accepts,
    accepted_content,
    check_session_header,
    parse_accept,
)
from mcp_app.protocol.revisions import LATEST, LATEST_STATEFUL, STATEFUL
from mcp_app.server import conversation, dispatch
from mcp_app.server.run import Run
from mcp_app.streams import event_ids
from mcp_app.streams.open_session import OpenSession
from mcp_app.transports import client_messages
from mcp_app.transports.client_messages import encode_array
from mcp_app.transports.http.call_handler import CallHandler, LoggedTogether
from mcp_app.transports.http.probe import NAME as PROBE
from mcp_app.transports.http.probe import ProbeAnswer, read_ticket
from mcp_app.transports.http.replies import EventStream, send_events
from mcp_app.transports.http.responses import send_empty, send_json, with_retry
from mcp_app.transports.open_streams import StandingStream

SESSION_ID = re.compile(r"[!-~]{1,128}")
WHOLE = Accepts(json=True, events=False)
"""What a client gets without streams (WSGI), whatever it accepts."""


class EndpointHandler(CallHandler):
    """A request at the endpoint itself."""

    def _probe_answer(self) -> Awaitable[None] | None:
        if self._method != "POST":
            return None
        headers, slug = self._headers, self._slug
        probe = read_ticket(headers.raw[PROBE].decode("latin-1"), slug)
        if probe is None:
            return None
        asgi = self._scope, self.receive, self.send
        return ProbeAnswer(*asgi, slug, streams=self._streams).answer(probe, headers)

    async def post(self) -> None:
        """Take one message, or a batch of 2025-03-26."""
        raw = self._headers.raw
        self.accepts = accepted_content(
            raw.get(b"content-type"), raw.get(b"content-encoding"), raw.get(b"accept")
        )
        if not self._streams:
            if not self.accepts.json:
                words = "This site cannot keep streams open (WSGI), so Accept must"
                raise RequestRefused(406, f"{words} allow application/json.")
            self.accepts = WHOLE
        value = await self._read_json()
        if self._has_arrived_late():
            await self._revalidate()
        elif self._generation != self.process.generation:
            await self._refresh_catalog()
        # `recognise` knows stateless requests; with a session, most are stateful.
        unusual = SESSION_HEADER in raw or self._headers.repeated
        recognised = None if unusual else negotiation.recognise(value, raw)
        if recognised is None:
            await self._take_any_message(value)
            return
        request, revision, meta = recognised
        self._request_id, self._revision = request.id, revision
        self._charge_messages()
        await self._stateless(request, revision, meta)

    async def _take_any_message(self, value: object) -> None:
        """Take any message but a plain stateless request, or raise its error."""
        if type(value) is list:
            await self._answer_batch(value)
            return
        message = envelope.parse_message(value, lenient=self.process.lenient)
        if type(message) is Request:
            self._request_id = message.id
        if client_messages.is_charged(message):
            self._charge_messages()
        version = self._headers.get(negotiation.VERSION_HEADER)
        params = {} if type(message) is ClientReply else message.params  # type: ignore[union-attr]
        if not negotiation.is_stateless(params, version):
            await self._stateful(message)
        elif type(message) is Request:
            self._revision = LATEST
            revision_and_meta = negotiation.check_stateless(
                message, self._headers, version
            )
            await self._stateless(message, *revision_and_meta)
        elif type(message) is Notification:
            # HTTP has none in this era, but an unknown one is no error (JSON-RPC 2.0).
            if not client_messages.is_charged(message):
                self.process.rates.note_requests(self._charged_person)
            negotiation.check_version_header(version)
            await self._send_accepted()
        else:
            _refuse_answer()

    # -- the stateful era -----------------------------------------------------------

    def _stateful(self, message: envelope.Message) -> Awaitable[None]:
        if type(message) is not Request or message.method == "initialize":
            return self._stateful_slow_path(message)
        session = self._cached_session()
        if session is None:
            return self._stateful_slow_path(message)
        return self._run_call(self._admit_in_session(session, message))

    async def _stateful_slow_path(self, message: envelope.Message) -> None:
        """Take a message for which a session must be opened, or looked up."""
        if type(message) is Request and message.method == "initialize":
            await self._initialize(message)
            return
        session = await self._find_session()
        await self._refresh_catalog()
        if type(message) is Request:
            await self._run_call(self._admit_in_session(session, message))
        else:
            current, person = self.process, self._person
            await client_messages.take_in_order(current, session, [message], person)
            await self._send_accepted()

    def _cached_session(self) -> OpenSession | None:
        """Return the caller's session if it is cached and its version fits."""
        raw = self._headers.raw
        session = self.process.sessions.cached(
            raw.get(SESSION_HEADER, b"").decode("latin-1"), self._principal, self._slug
        )
        version = _decode_version(raw.get(negotiation.VERSION_HEADER))
        if session is None or session.revision.version != version:
            return None
        self._revision = session.revision
        return session

    async def _find_session(self) -> OpenSession:
        check_session_header(self._headers)
        session_id = self._headers.get(SESSION_HEADER)
        if session_id is None:
            raise InvalidRequest("Mcp-Session-Id is missing: initialize first.")
        if not SESSION_ID.fullmatch(session_id):
            raise InvalidRequest("Mcp-Session-Id is not an id of this server.")
        session = await self.process.sessions.find(
            session_id, self._principal, self._catalog.server.slug
        )
        self._revision = session.revision
        negotiation.check_session_version(
            session.revision, self._headers.get(negotiation.VERSION_HEADER)
        )
        return session

    async def _initialize(self, request: Request) -> None:
        header = self._headers.get(SESSION_HEADER)
        revision = None if header is None else (await self._find_session()).revision
        conversation.check_turn(request.method, revision)
        self.process.refuse_if_stopping()
        meta = negotiation.meta_of(request.params) or {}
        run = Run(self._make_request(request, LATEST_STATEFUL, meta))
        status, body = await dispatch.answer_request(run)
        headers = with_retry(status, self.cors)
        if run.session_id:
            headers = [(SESSION_HEADER, run.session_id.encode("ascii")), *headers]
        if self.accepts.json or status != HTTPStatus.OK:
            await send_json(self.send, status, body, headers)
            return
        await send_events(self.send, headers, self.process.queues, body)

    async def _answer_batch(self, value: list[object]) -> None:
        """Answer a batch with an array of the answers (2025-03-26, JSON-RPC 2.0)."""
        version = self._headers.get(negotiation.VERSION_HEADER)
        if version is not None and version not in STATEFUL:
            # This raises: the stateless era has no batches.
            conversation.check_batches(None)
        session, current = await self._find_session(), self.process
        batch = self._read_batch(value, session, session.revision)
        self._charge_batch(batch)
        if batch.requests:
            current.refuse_if_stopping()
        person = self._person
        await client_messages.take_in_order(current, session, batch.others, person)
        await self._refresh_catalog()
        if batch.requests:
            await self._call_requests(session, batch.requests)
        else:
            await self._send_accepted()

    async def _call_requests(
        self, session: OpenSession, requests: list[Request]
    ) -> None:
        self.process.check_share(self._principal, self._person, len(requests))
        runs, refused = [], []
        # Nothing is awaited until the calls have started, so no id can come twice.
        for request in requests:
            try:
                runs.append(self._admit_in_session(session, request))
            except (InvalidParams, InvalidRequest) as error:
                refusal = dispatch.encoded_refusal(session.revision, request.id, error)
                refused.append(refusal.body)
        self.started = True
        if not runs:
            await send_json(self.send, HTTPStatus.OK, encode_array(refused), self.cors)
            return
        reply = self._reply_for(runs[0], [each.request.id for each in runs])
        together = LoggedTogether(reply, self.process, len(runs), refused, self._renew)
        for run in runs:
            run.answer_through(reply)
            work = together.answer_request(run)
            self.process.running.start_call(run, work, together)
        await reply.deliver_answer()

    async def get(self) -> None:
        """Open the standing stream of a session."""
        self._refuse_stateless_era()
        allow = {"Allow": self._allowed_methods}
        if not self._streams:
            words = "This site cannot keep streams open (WSGI)."
            raise RequestRefused(405, words, allow)
        if not parse_accept(self._headers.get(b"accept")).events:
            raise RequestRefused(406, "Accept must allow text/event-stream.")
        last = self._headers.get(b"last-event-id")
        if self._headers.get(SESSION_HEADER) is None and last is None:
            raise RequestRefused(
                405,
                "GET opens the stream of a session, but this request has no"
                " Mcp-Session-Id. POST a message instead.",
                allow,
            )
        self._charge_messages()
        session, current = await self._find_session(), self.process
        position = None
        if last is not None:
            request_event = event_ids.of_request(last, session.digest)
            if request_event is not None:
                await self._resume_request(session, request_event)
                return
            position = event_ids.position_of(last, session.digest)
        stream = EventStream(self.send, self.cors, current.queues)
        standing = StandingStream(
            stream, current.listeners, session, principal=self._principal
        )
        current.add_listener(standing, self._person)
        with standing:
            await current.stream_opener.standing(standing, session, position)
            self.started = True
            current.spawn_task(current.deliveries.deliver_messages(session))
            await standing.serve_until_end(self.receive)

    async def _resume_request(
        self, session: OpenSession, request_event: tuple[str, int]
    ) -> None:
        current = self.process
        place = await current.followers.find_place(session.pk, *request_event)
        if place is None:
            # The session may be closed elsewhere, which also deletes its streams.
            await current.sessions.client_position(session)
            raise event_ids.wrong_event_id()
        await self.returning().resume_stream(session, place)

    async def delete(self) -> None:
        self._refuse_stateless_era()
        session = await self._find_session()
        await self.process.sessions.delete(session)
        await send_empty(self.send, 204, self.cors)

    def _refuse_stateless_era(self) -> None:
        version = self._headers.get(negotiation.VERSION_HEADER)
        negotiation.check_version_header(version)
        if version is not None and version not in STATEFUL:
            raise self._not_allowed()


def _refuse_answer() -> NoReturn:
    raise InvalidRequest(
        "This revision of the protocol has no requests from the server, so there is"
        " nothing to answer."
    )


# The cache is small, because clients may send long made-up headers.
@lru_cache(maxsize=32)
def _decode_version(value: bytes | None) -> str | None:
    return None if value is None else value.strip(b" \t").decode("latin-1")
