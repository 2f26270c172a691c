"""Streamable HTTP of all revisions as an ASGI callable.

The order of a request: Host and Origin, the process, the server, the principal,
content type and Accept, the body, the message, its era, the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NoReturn

from mcp_app.auth import principals
from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.principal import AuthenticationRequest, Principal
from mcp_app.interface.rights import NOTHING, Rights
from mcp_app.interface.server import HEALTH_SLUG
from mcp_app.process.runtime import Process, process
from mcp_app.process.uploads import Reader
from mcp_app.protocol import envelope, jsonrpc, negotiation
from mcp_app.protocol.envelope import Notification, Request
from mcp_app.protocol.envelope import Reply as ClientReply
from mcp_app.protocol.errors import (
    InternalError,
    InvalidParams,
    InvalidRequest,
    ProtocolError,
    Refused,
    Unavailable,
)
from mcp_app.protocol.headers import (
    SESSION_HEADER,
    Accepts,
    Headers,
    accepted_content,
    accepts,
    check_session_header,
)
from mcp_app.protocol.revisions import LATEST, LATEST_STATEFUL, STATEFUL, Revision
from mcp_app.server import conversation, dispatch, subscriptions
from mcp_app.server.conversation import Batch, MixedEras
from mcp_app.server.exchange import Exchange, NoWayBack
from mcp_app.server.identity import runs_once
from mcp_app.streams import event_ids
from mcp_app.streams.sessions import OpenSession
from mcp_app.transports import client_messages
from mcp_app.transports.asgi_types import RawHeaders, Receive, Scope, Send
from mcp_app.transports.batches import LoggedTogether, array
from mcp_app.transports.http import at_most_once, health, refusals
from mcp_app.transports.http.bodies import ClientGone, read_body, too_slow
from mcp_app.transports.http.event_stream import EventStream, send_events
from mcp_app.transports.http.host_and_origin import HostAndOriginPolicy, preflight
from mcp_app.transports.http.logged_replies import LoggedReply, Requests
from mcp_app.transports.http.replies import Reply
from mcp_app.transports.http.responses import send_empty, send_json, with_retry
from mcp_app.transports.http.resumption import Returning
from mcp_app.transports.http.token_in_address import forget_token
from mcp_app.transports.open_streams import ListenStream, StandingStream

logger = logging.getLogger("mcp_app.transports")

MAY_NOT = "You are known here, and have not the rights that this server asks for."
SESSION_ID = re.compile(r"[!-~]{1,128}")
ALLOW_WHOLE = "POST, DELETE, OPTIONS"
"""Without streams, which are what GET is for."""

AT_ONCE_S = 0.005
"""A request that took longer to come is served as things are when it is there."""
ANYTHING = Accepts(json=True, events=True)
WHOLE = Accepts(json=True, events=False)

policy = HostAndOriginPolicy()


class Endpoint:
    """Serves the endpoint of one server, named by its slug; and what says it can.

    Without `streams` each answer is one JSON document.  `parts` says how the addresses
    below it are served, by their last part; "" is the endpoint itself.
    """

    def __init__(self, parts: Mapping[str, type[Visit]] | None = None) -> None:
        self._parts = parts or {"": Visit}

    def __call__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        slug: str,
        part: str = "",
        streams: bool = True,
    ) -> Coroutine[Any, Any, None]:
        if slug == HEALTH_SLUG and not part:
            return health.answer(scope, send)
        visit = self._parts[part]
        return visit(scope, receive, send, slug, streams=streams).answer()


class Visit:
    """One HTTP request on its way through the transport."""

    allowed = "POST, GET, DELETE, OPTIONS"
    _principal = Principal.ANONYMOUS
    _rights: Rights = NOTHING
    _revision: Revision | None = None
    _generation = 0
    _request_id: str | int | None = None
    _identified = False
    started = False
    _task: Reader = None
    _headers = Headers(())

    _process: Process
    _catalog: Catalog

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        slug: str,
        *,
        streams: bool = True,
    ) -> None:
        self._arrived = time.monotonic()
        self._streams = streams
        self._scope = scope
        self._slug = slug
        self._method: str = scope["method"]
        self.receive = receive
        self.send = send
        self.cors: RawHeaders = []
        self.accepts = ANYTHING

    async def answer(self) -> None:
        """Serve the request, or say why not."""
        try:
            self._headers = headers = Headers(self._scope["headers"])
            self.cors = policy.check(headers)
            if self._method == "OPTIONS":
                await self._preflight()
                return
            self._process = current = process()
            if not current.gate.fresh(self._arrived):
                await current.gate.wait(self._arrived)
            self._generation = current.generation
            self._catalog = catalog = current.catalog(self._slug)
            serve = self._serving()
            if catalog.open:
                self._identified = True
            else:
                await self._identify()
            await serve()
        except ProtocolError as error:
            await self._refuse(error)
        except ClientGone:
            return
        except Exception:
            logger.exception("A request failed.", extra={"path": self._scope["path"]})
            failure = InternalError("The server failed; its log says why.")
            failure.http_status = 500
            await self._refuse(failure)

    def _serving(self) -> Callable[[], Awaitable[None]]:
        """Return what serves the method."""
        match self._method:
            case "POST":
                return self.post
            case "GET":
                return self.get
            case "DELETE":
                return self.delete
        return self._refuse_method

    async def _identify(self) -> None:
        """Learn who asks, and what they may where anything depends on it."""
        catalog = self._catalog
        if not catalog.public:
            forget_token(self._scope, self._slug)
            known = principals.known(catalog.server, self._headers)
            self._principal = known or await self._who()
        self._identified = True
        if catalog.restricted:
            rights = self._process.rights
            asked = self._principal, self._slug, catalog.demands
            self._rights = rights.known(*asked) or await rights.of(*asked)
            if not self._rights.meet(catalog.server.demands):
                raise Refused(403, MAY_NOT)

    async def _refuse_method(self) -> None:
        raise self._not_allowed()

    def _not_allowed(self) -> Refused:
        message = f"{self._method} is not allowed here."
        return Refused(405, message, {"Allow": self._allow})

    @property
    def _allow(self) -> str:
        return self.allowed if self._streams else ALLOW_WHOLE

    async def _refuse(self, error: ProtocolError) -> None:
        """Send an error that answers the whole request."""
        if self.started:
            return
        self._note(error)
        revision = self._revision or await self._refusing_revision()
        request_id = error.request_id
        if request_id is None:
            request_id = self._request_id
        status, body = dispatch.refusal(revision, request_id, error)
        named = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in error.headers.items()
        ]
        await send_json(self.send, status, body, [*named, *self.cors])

    def _note(self, error: ProtocolError) -> None:
        """Count what was refused, for people who wonder why a client cannot come in."""
        # Without a process it was turned away by its headers, or there can be none.
        if hasattr(self, "_process") or isinstance(error, Refused):
            reason = refusals.reason_of(error, at_server=self._identified)
            process().refused(reason, refusals.client_of(self._scope["headers"]))

    async def _refusing_revision(self) -> Revision:
        """Return the revision of what is refused before its session was looked at.

        It decides how an error without an id is written.
        """
        version = self._headers.get(negotiation.VERSION_HEADER)
        if not self._identified:
            # A stranger is told in the words that it used itself.
            return STATEFUL.get(version or "", LATEST_STATEFUL)
        if version is not None and version not in STATEFUL:
            return LATEST
        with contextlib.suppress(ProtocolError):
            return (await self._session()).revision
        return self._revision or STATEFUL.get(version or "", LATEST_STATEFUL)

    async def _preflight(self) -> None:
        requested = self._headers.get(b"access-control-request-headers")
        allowed = preflight(self.cors, requested)
        allow = (b"allow", self._allow.encode("ascii"))
        await send_empty(self.send, 204, [allow, *self.cors, *allowed])

    async def _who(self) -> Principal:
        server = self._catalog.server
        request = AuthenticationRequest(
            headers=self._headers,
            host=self._headers.get(b"host") or "",
            path=self._scope["path"],
            server=server.slug,
            method=self._method,
            peer=_peer(self._scope),
            scheme=self._scope.get("scheme", "http"),
        )
        return await principals.principal(server, request)

    def watch(self) -> None:
        """Beat and look for changes as long as the reply is open."""
        self._process.watch()

    def dropped(self) -> None:
        """Count a message that goes nowhere: this client takes JSON alone."""
        self._process.dropped += 1

    # -- POST -------------------------------------------------------------------

    async def post(self) -> None:
        """Take one message, or a batch of 2025-03-26."""
        raw = self._headers.raw
        self.accepts = accepted_content(
            raw.get(b"content-type"), raw.get(b"content-encoding"), raw.get(b"accept")
        )
        if not self._streams:
            self.accepts = _whole(self.accepts)
        value = await self._value()
        # What names a session is most likely of that era, which has its own quick way.
        unusual = SESSION_HEADER in raw or self._headers.repeated
        recognised = None if unusual else negotiation.recognised(value, raw)
        if recognised is None:
            await self._take_apart(value)
            return
        request, revision, meta = recognised
        self._request_id, self._revision = request.id, revision
        await self._stateless(request, revision, meta)

    async def _value(self) -> object:
        """Return the JSON of the body."""
        current, announced = self._process, self._headers.raw.get(b"content-length")
        limits = current.limits
        self._task = task = current.uploads.begin(self._arrived)
        try:
            body = await read_body(self.receive, limits.body, announced)
        except asyncio.CancelledError:
            self._check_given_up(task)
            raise
        finally:
            current.uploads.end(task)
        value = (
            jsonrpc.read(body, current.read_limits)
            if len(body) <= limits.parse_in_thread
            else await current.read_in_thread(body)
        )
        if time.monotonic() - self._arrived > AT_ONCE_S:
            await self._look_again()
        else:
            await self._keep_up()
        return value

    async def _look_again(self) -> None:
        """The request was on its way for a while: what holds now is what counts.

        Whoever has stopped something, or taken a right away, has been told so.
        """
        now = time.monotonic()
        if not self._process.gate.fresh(now):
            await self._process.gate.wait(now)
        await self._keep_up()

    async def _keep_up(self) -> None:
        """Look once more who asks, and what is served, where anything changed."""
        current = self._process
        while self._generation != current.generation:
            before, self._generation = self._principal, current.generation
            self._catalog = current.catalog(self._slug)
            if not self._catalog.open:
                await self._identify()
            if self._principal.key != before.key:
                # What was begun is the other one's.
                raise Unavailable("Whom this server lets in has changed: come again.")

    async def _renew(self, exchange: Exchange) -> None:
        """Let a request that has waited go on as one that comes now."""
        await self._look_again()
        exchange.catalog, exchange.rights = self._catalog, self._rights
        exchange.principal = self._principal

    def _check_given_up(self, task: Reader) -> None:
        """Raise 408 where the body did not come, and 503 at a stop."""
        if self._process.uploads.gave_up(task):
            self._process.refuse_if_stopping()
            raise too_slow() from None

    async def _take_apart(self, value: object) -> None:
        """Take what is no plain request of the stateless era, or say what is wrong."""
        if type(value) is list:
            await self._batch(value)
            return
        message = envelope.parse(value, lenient=self._process.lenient)
        if type(message) is Request:
            self._request_id = message.id
        version = self._headers.get(negotiation.VERSION_HEADER)
        params = {} if type(message) is ClientReply else message.params  # type: ignore[union-attr]
        if not negotiation.is_stateless(params, version):
            await self._stateful(message)
        elif type(message) is Request:
            self._revision = LATEST
            found = negotiation.check_stateless(message, self._headers, version)
            await self._stateless(message, *found)
        elif type(message) is Notification:
            # The core has none for HTTP; an unknown one is no error (JSON-RPC 2.0).
            negotiation.check_version_header(version)
            await self._accepted()
        else:
            _refuse_answer()

    async def _accepted(self) -> None:
        await send_empty(self.send, 202, self.cors)

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

    def _exchange(
        self,
        request: Request,
        revision: Revision,
        meta: dict[str, Any],
        session: OpenSession | None = None,
    ) -> Exchange:
        return Exchange(
            adapters=self._process.adapters,
            catalog=self._catalog,
            revision=revision,
            principal=self._principal,
            rights=self._rights,
            request_id=request.id,
            method=request.method,
            params=request.params,
            meta=meta,
            outgoing=NO_WAY_BACK,
            session=session,
            headers=self._headers,
            path=self._scope["path"],
            streams=self._streams,
            renew=self._renew,
        )

    def _call(self, exchange: Exchange) -> Awaitable[None]:
        """Run a call; in the stateless era here, else in a task of its own."""
        if not exchange.principal.anonymous:
            self._process.admit(exchange.principal, 1)
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
        """Run a call that must not run twice, or answer as the first one is."""
        log, running = self._process.log, self._process.running
        with running.expected(exchange, session):
            stream = await at_most_once.begun_and_served(
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
        """Return who serves this client from the log."""
        return Returning(self, self._process, self._principal)

    def _reply(self, exchange: Exchange, requests: Requests) -> Reply:
        session = exchange.session
        if session is None:
            return Reply(self, exchange)
        return LoggedReply(self, exchange, session, self._process.log, requests)

    # -- the stateful era ---------------------------------------------------------

    def _stateful(self, message: envelope.Message) -> Awaitable[None]:
        if type(message) is not Request or message.method == "initialize":
            return self._stateful_at_leisure(message)
        session = self._known_session()
        if session is None:
            return self._stateful_at_leisure(message)
        return self._call(self._session_exchange(session, message))

    async def _stateful_at_leisure(self, message: envelope.Message) -> None:
        """Take a message for which a session must be opened, or looked up."""
        if type(message) is Request and message.method == "initialize":
            await self._initialize(message)
            return
        session = await self._session()
        await self._keep_up()
        if type(message) is Request:
            await self._call(self._session_exchange(session, message))
        else:
            await client_messages.take(self._process, session, message)
            await self._accepted()

    def _known_session(self) -> OpenSession | None:
        """Return the caller's session where nothing is to be asked or refused."""
        raw = self._headers.raw
        session = self._process.sessions.known(
            raw.get(SESSION_HEADER, b"").decode("latin-1"), self._principal, self._slug
        )
        version = _version(raw.get(negotiation.VERSION_HEADER))
        if session is None or session.revision.version != version:
            return None
        self._revision = session.revision
        return session

    async def _session(self) -> OpenSession:
        """Return the caller's session; raise 400 or 404."""
        check_session_header(self._headers)
        named = self._headers.get(SESSION_HEADER)
        if not named:
            raise InvalidRequest("Mcp-Session-Id is missing: initialize first.")
        if not SESSION_ID.fullmatch(named):
            raise InvalidRequest("Mcp-Session-Id is not one that this server gives.")
        session = await self._process.sessions.find(
            named, self._principal, self._catalog.server.slug
        )
        self._revision = session.revision
        negotiation.check_session_version(
            session.revision, self._headers.get(negotiation.VERSION_HEADER)
        )
        return session

    async def _initialize(self, request: Request) -> None:
        named = self._headers.get(SESSION_HEADER)
        revision = None if named is None else (await self._session()).revision
        conversation.check_turn(request.method, revision)
        self._process.refuse_if_stopping()
        exchange = self._exchange(request, LATEST_STATEFUL, {})
        status, body = await dispatch.answer(exchange)
        headers = with_retry(status, self.cors)
        if exchange.opened_session is not None:
            session_id = exchange.opened_session.encode("ascii")
            headers = [(SESSION_HEADER, session_id), *headers]
        if self.accepts.json or status != HTTPStatus.OK:
            await send_json(self.send, status, body, headers)
            return
        await send_events(self.send, headers, body)

    def _session_exchange(self, session: OpenSession, request: Request) -> Exchange:
        self._process.refuse_if_stopping()
        meta = negotiation.meta_of(request.params) or {}
        exchange = self._exchange(request, session.revision, meta, session)
        same = session.running.get(request.id)
        # The log tells whether a call that runs once is the same one.
        if same is not None and not (runs_once(same) and runs_once(exchange)):
            conversation.check_id(request.id, session.running)
        return exchange

    async def _batch(self, value: list[object]) -> None:
        """Answer a batch with an array of the answers (2025-03-26, JSON-RPC 2.0)."""
        version = self._headers.get(negotiation.VERSION_HEADER)
        if version is not None and version not in STATEFUL:
            conversation.check_batches(None)
        session, current = await self._session(), self._process
        batch = self._read_batch(value, session, session.revision)
        if batch.requests:
            current.refuse_if_stopping()
        for each in batch.others:
            await client_messages.take(current, session, each)
        await self._keep_up()
        if batch.requests:
            await self._call_all(session, batch.requests)
        else:
            await self._accepted()

    def _read_batch(
        self, value: list[object], session: OpenSession, revision: Revision | None
    ) -> Batch:
        """Return the messages; `revision` is None before `initialize`."""
        current = self._process
        try:
            return conversation.read_batch(
                value,
                revision,
                session.running,
                most=current.limits.batch,
                lenient=current.lenient,
            )
        except MixedEras:
            # Whoever speaks of the newer era knows no error whose id is null.
            self._revision = LATEST
            raise

    async def _call_all(self, session: OpenSession, requests: list[Request]) -> None:
        if not self._principal.anonymous:
            self._process.admit(self._principal, len(requests))
        exchanges, refused = [], []
        # From here to the start of the calls nothing waits, so no id can come twice.
        for each in requests:
            try:
                exchanges.append(self._session_exchange(session, each))
            except (InvalidParams, InvalidRequest) as error:
                refusal = dispatch.refusal(session.revision, each.id, error)
                refused.append(refusal[1])
        self.started = True
        if not exchanges:
            await send_json(self.send, HTTPStatus.OK, array(refused), self.cors)
            return
        reply = self._reply(exchanges[0], [each.request_id for each in exchanges])
        together = LoggedTogether(reply, self._process, len(exchanges), refused)
        for exchange in exchanges:
            exchange.outgoing = reply
            work = together.answer(exchange)
            self._process.running.start(exchange, work, together)
        await reply.deliver()

    # -- GET and DELETE -----------------------------------------------------------

    async def get(self) -> None:
        """Open the standing stream of a session."""
        self._refuse_stateless_era()
        if not self._streams:
            raise Refused(405, "No stream is kept open here.", {"Allow": self._allow})
        if not accepts(self._headers.get(b"accept")).events:
            raise Refused(406, "Accept must allow text/event-stream.")
        last = self._headers.get(b"last-event-id")
        if self._headers.get(SESSION_HEADER) is None and last is None:
            raise Refused(
                405,
                "GET opens the stream of a session, and this request names none:"
                " POST a message.",
                {"Allow": self._allow},
            )
        session, current = await self._session(), self._process
        named = None if last is None else event_ids.of_request(last, session.digest)
        if named is not None:
            place = await current.followers.find(session.pk, *named)
            if place is None:
                # A session that was closed elsewhere took its streams along.
                await current.sessions.seen(session)
                raise event_ids.wrong()
            await self.returning().resume(session, place)
            return
        seen = None if last is None else event_ids.seen(last, session.digest)
        stream = EventStream(self.send, self.cors)
        standing = StandingStream(
            stream, current.listeners, session, principal=self._principal
        )
        current.listen(standing)
        with standing:
            await current.openings.standing(standing, session, seen)
            self.started = True
            current.spawn(current.deliveries.deliver(session))
            await standing.serve(self.receive)

    async def delete(self) -> None:
        """Close a session."""
        self._refuse_stateless_era()
        session = await self._session()
        await self._process.sessions.delete(session)
        await send_empty(self.send, 204, self.cors)

    def _refuse_stateless_era(self) -> None:
        version = self._headers.get(negotiation.VERSION_HEADER)
        negotiation.check_version_header(version)
        if version is not None and version not in STATEFUL:
            raise self._not_allowed()

    # -- subscriptions/listen -------------------------------------------------------

    async def _listen(self, exchange: Exchange) -> None:
        if not self.accepts.events:
            raise Refused(406, "Accept must allow text/event-stream.")
        interest, honoured = await subscriptions.accept(exchange)
        current = self._process
        stream = EventStream(self.send, self.cors)
        listening = ListenStream(
            stream,
            current.listeners,
            server=self._slug,
            principal=self._principal,
            interest=interest,
            subscription=exchange.request_id,
            closing=subscriptions.closed(exchange),
        )
        current.listen(listening)
        with listening:
            async with current.openings.watching(interest.uris):
                self.started = True
                listening.opened(subscriptions.acknowledged(exchange, honoured))
                await listening.serve(self.receive)


NO_WAY_BACK = NoWayBack()


def _refuse_answer() -> NoReturn:
    raise InvalidRequest("Nobody asked: this revision sends no requests.")


def _peer(scope: Scope) -> str:
    """Return the address of the connection; "" where it has none (a Unix socket)."""
    client = scope.get("client")
    return client[0] if client else ""


def _whole(accepted: Accepts) -> Accepts:
    """Return what a client takes where no stream can be kept open; raise 406."""
    if not accepted.json:
        raise Refused(406, "No stream is kept open here: take application/json.")
    return WHOLE


# Whoever makes headers up may make long ones up: few are kept.
@lru_cache(maxsize=32)
def _version(value: bytes | None) -> str | None:
    return None if value is None else value.strip(b" \t").decode("latin-1")
