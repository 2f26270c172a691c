"""One HTTP request: its admission, its principal and its body.

The order: Host and Origin, the process, the server, the principal; then the handler of
the method.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final

from mcp_app.auth import principals
from mcp_app.auth.site_requests import SCOPES, scope_challenge
from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.principal import (
    NOTHING,
    AuthenticationRequest,
    Principal,
    Rights,
)
from mcp_app.pools.turns import Owner
from mcp_app.process.admission import NoAccess, admit, check_rights
from mcp_app.process.current import process
from mcp_app.process.quotas import NoRoom, Reader
from mcp_app.process.runtime import Process
from mcp_app.protocol import envelope, jsonrpc, negotiation
from mcp_app.protocol.envelope import RequestId
from mcp_app.protocol.errors import (
    InternalError,
    InvalidRequest,
    ProtocolError,
    RequestRefused,
    Unavailable,
)
from mcp_app.protocol.headers import Accepts, Headers, check_singletons
from mcp_app.protocol.revisions import LATEST, LATEST_STATEFUL, STATEFUL, Revision
from mcp_app.server import conversation, dispatch
from mcp_app.server.conversation import Batch, MixedEras
from mcp_app.server.ports import Adapters
from mcp_app.server.request import IS_DRAWN, UNKNOWN_ADDRESS, Request
from mcp_app.server.request_digests import runs_once
from mcp_app.server.run import Run
from mcp_app.server.searching import resolve_called_tool
from mcp_app.streams.open_session import OpenSession
from mcp_app.transports import client_messages
from mcp_app.transports.asgi_types import RawHeaders, Receive, Scope, Send
from mcp_app.transports.http import responses
from mcp_app.transports.http.bodies import (
    ClientGone,
    is_large_body,
    read_body,
    read_json,
    read_request_id,
    too_slow,
)
from mcp_app.transports.http.host_and_origin import (
    HostAndOriginPolicy,
    forget_token,
    preflight,
)
from mcp_app.transports.http.probe import NAME as PROBE
from mcp_app.transports.http.responses import (
    PAGE_FOR_PEOPLE,
    PAGE_HEADERS,
    send_empty,
    send_json,
    send_whole,
    with_retry,
)

logger = logging.getLogger("mcp_app.transports")

MAY_NOT = "You are authenticated, but you lack the rights that this server requires."
ALLOW_WHOLE = "POST, DELETE, OPTIONS"
"""The methods where no stream can stay open (WSGI): GET only opens streams."""

BEFORE_THE_BODY: Final = frozenset((400, 401, 403, 404, 429, 503))
"""For these statuses an unread body is read, but only for the id of the request."""

BROWSER_STATUSES: Final = (401, 405, 406)
"""Statuses that a browser gets if it opens the address of a server."""

LATE_AFTER_S = 0.005
"""A request that took longer to arrive is checked again before it is served."""
ANYTHING = Accepts(json=True, events=True)
UNREAD: Final = object()
"""Stands for the JSON of a body that was not parsed."""

policy = HostAndOriginPolicy()


class HttpRequestHandler:
    """Checks a request and its caller; subclasses serve the methods of an address."""

    allowed = "POST, GET, DELETE, OPTIONS"
    _principal = Principal.ANONYMOUS
    _rights: Rights = NOTHING
    _revision: Revision | None = None
    _generation = 0
    _request_id: RequestId | None = None
    _identified = False
    """Whether the principal is known, or the server is open to everybody."""
    _is_charged = False
    started = False
    _task: Reader = None
    _headers = Headers(())
    _value: object = UNREAD
    """The JSON of the body, if `PlainCall` has parsed it."""
    _is_wide = False
    """Whether the body is so large that threads check its arguments."""

    process: Process
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

    async def answer_request(self) -> None:
        try:
            self._headers = headers = Headers(self._scope["headers"])
            if PROBE in headers.raw and (probe := self._probe_answer()) is not None:
                await probe
                return
            self.cors = policy.check_headers(headers)
            if self._method == "OPTIONS":
                await self._preflight()
                return
            self.process = current = process()
            if headers.repeated:
                check_singletons(headers)
            if not current.gate.fresh(self._arrived):
                await current.gate.wait_until_fresh(self._arrived)
            self._generation = current.generation
            self._catalog = catalog = current.catalogs.serving(self._slug)
            serve = self._method_handler()
            if catalog.open:
                self._identified = True
            else:
                await self._identify_caller()
            await serve()
        except Exception as error:
            await self._answer_failure(error)

    def _probe_answer(self) -> Awaitable[None] | None:
        return None

    async def answer_admitted(self, admitted: Any) -> None:
        """Serve a `PlainCall`: its headers and principal were checked already."""
        self._arrived, self._headers = admitted.arrived, Headers(self._scope["headers"])
        self.cors, self.process = admitted.cors, admitted.process
        self._generation, caller = admitted.generation, admitted.caller
        self._catalog, self._rights = caller.catalog, caller.rights
        self._principal = caller.principal
        self._identified, self._value = True, admitted.value
        try:
            await self.post()
        except Exception as error:
            await self._answer_failure(error)

    async def _answer_failure(self, error: Exception) -> None:
        if isinstance(error, ClientGone):
            return
        if not isinstance(error, ProtocolError):
            logger.error(
                "A request failed.", extra={"path": self._scope["path"]}, exc_info=error
            )
            error = InternalError("The server failed; its log says why.")
            error.http_status = 500
        is_uncharged = not self._is_charged and self._method in ("POST", "DELETE")
        if self._identified and is_uncharged:
            # A request that cannot be read is charged, too.
            self.process.rates.note_requests(self._charged_person)
        await self._refuse_request(error)

    def _method_handler(self) -> Callable[[], Awaitable[None]]:
        match self._method:
            case "POST":
                return self.post
            case "GET":
                return self.get
            case "DELETE":
                return self.delete
        return self._refuse_method

    async def _identify_caller(self) -> None:
        """Find the principal, and its rights if anything depends on them."""
        catalog = self._catalog
        if not catalog.public:
            forget_token(self._scope, self._slug)
            cached = principals.cached_token(catalog.server, self._headers)
            principal = cached and cached[0].principal
            self._principal = principal or await principals.find_principal(
                catalog.server, self._authentication_request()
            )
        self._identified = True
        if catalog.restricted:
            rights = self.process.rights
            key = self._principal, self._slug, catalog.demands
            self._rights = rights.cached_value(key) or await rights.find(*key)
            try:
                check_rights(catalog, self._rights)
            except NoAccess:
                raise RequestRefused(403, MAY_NOT) from None

    async def _refuse_method(self) -> None:
        raise self._not_allowed()

    def _not_allowed(self) -> RequestRefused:
        message = f"{self._method} is not allowed here."
        return RequestRefused(405, message, {"Allow": self._allowed_methods})

    @property
    def _allowed_methods(self) -> str:
        return self.allowed if self._streams else ALLOW_WHOLE

    async def _refuse_request(self, error: ProtocolError) -> None:
        if self.started:
            return
        # If a request was not admitted, count it only if its headers were refused.
        if self._is_admitted() or isinstance(error, RequestRefused):
            reason = responses.reason_of(error, at_server=self._identified)
            process().count_refused(reason, responses.client_of(self._scope["headers"]))
        await self._send_refusal(error, await self._refused_id(error))

    async def _refused_id(self, error: ProtocolError) -> RequestId | None:
        """Return the id of the request that is refused, None if it has none."""
        if error.request_id is not None:
            return error.request_id
        # Before the body was read, a small one is read for its id: some clients show an
        # error only if it names their request.  Nothing of a request with a wrong Host
        # or Origin is read.
        unread = self._method == "POST" and self._task is None
        if unread and error.http_status in BEFORE_THE_BODY and self._is_admitted():
            current = self.process
            self._request_id = await read_request_id(
                self.receive, self._headers.raw, current.read_limits, current.uploads
            )
        return self._request_id

    def _is_admitted(self) -> bool:
        """Whether Host and Origin were right: only then `process` is set."""
        return hasattr(self, "process")

    async def _send_refusal(
        self, error: ProtocolError, request_id: RequestId | None
    ) -> None:
        revision = self._revision or await self._refusing_revision()
        status, body = dispatch.encoded_refusal(revision, request_id, error)
        extra_headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in error.headers.items()
        ]
        takes_pages = b"text/html" in self._headers.raw.get(b"accept", b"")
        if status in BROWSER_STATUSES and self._method == "GET" and takes_pages:
            page_headers = [*PAGE_HEADERS, *extra_headers, *self.cors]
            await send_whole(self.send, status, PAGE_FOR_PEOPLE, page_headers)
            return
        await send_json(self.send, status, body, [*extra_headers, *self.cors])

    async def _refusing_revision(self) -> Revision:
        """Return the revision for a refusal before the session is known."""
        version = self._headers.get(negotiation.VERSION_HEADER)
        if not self._identified:
            # For an unknown caller only its own header counts.
            return STATEFUL.get(version or "", LATEST_STATEFUL)
        if version is not None and version not in STATEFUL:
            return LATEST
        with contextlib.suppress(ProtocolError):
            return (await self._find_session()).revision
        return self._revision or STATEFUL.get(version or "", LATEST_STATEFUL)

    async def _preflight(self) -> None:
        requested = self._headers.get(b"access-control-request-headers")
        allowed = preflight(self.cors, requested)
        allow = (b"allow", self._allowed_methods.encode("ascii"))
        await send_empty(self.send, 204, [allow, *self.cors, *allowed])

    @cached_property
    def _person(self) -> str:
        """The person whose rates apply to the request, or else the address."""
        forwarded = self._headers.get(b"x-forwarded-for")
        addresses = self.process.addresses
        return self._principal.person or addresses.address_key(
            peer_address(self._scope), forwarded
        )

    @property
    def _charged_person(self) -> str:
        """Whose rates are charged; all requests of unknown addresses share one."""
        return self._person or UNKNOWN_ADDRESS

    @cached_property
    def _body_owner(self) -> Owner:
        return Owner(self._person, self._principal.anonymous)

    def _charge_messages(self, messages: int = 1) -> None:
        """Charge for messages; raise 429 if the person has sent too many."""
        self._is_charged = True
        rates = self.process.rates
        if rates.on:
            rates.check_requests(self._charged_person, messages)

    def _charge_batch(self, batch: Batch) -> None:
        charges = map(client_messages.is_charged, batch.others)
        self._charge_messages(len(batch.requests) + sum(charges))

    def _authentication_request(self) -> AuthenticationRequest:
        return AuthenticationRequest(
            headers=self._headers,
            host=self._headers.get(b"host") or "",
            path=self._scope["path"],
            server=self._catalog.server.slug,
            method=self._method,
            peer=peer_address(self._scope),
            scheme=self._scope.get("scheme", "http"),
        )

    def error_headers(self, status: int) -> RawHeaders:
        """Return the headers of an error; 403 says which scopes a call needs."""
        if status != HTTPStatus.FORBIDDEN:
            return with_retry(status, self.cors)
        server, request = self._catalog.server, self._authentication_request()
        challenge = scope_challenge(SCOPES, principals.metadata_for(server, request))
        return [(b"www-authenticate", challenge.encode("latin-1")), *self.cors]

    async def get(self) -> None:
        raise self._not_allowed()

    async def post(self) -> None:
        raise self._not_allowed()

    async def delete(self) -> None:
        raise self._not_allowed()

    async def _find_session(self) -> OpenSession:
        """Return the session that the request names; raise 400 or 404."""
        raise InvalidRequest("There is no session at this address.")

    async def _read_json(self) -> object:
        current, announced = self.process, self._headers.raw.get(b"content-length")
        # The upload begins now, because authentication may have taken a while.
        self._task = task = current.uploads.begin_upload(time.monotonic())
        try:
            body = await read_body(
                self.receive, current.limits.body, announced, self._count_body_bytes
            )
        except NoRoom:
            raise Unavailable(
                "Too many requests from your address are incomplete.", http_status=429
            ) from None
        except asyncio.CancelledError:
            # A late body gets 408, or 503 if the process stops.
            if current.uploads.was_cancelled_here(task):
                current.refuse_if_stopping()
                raise too_slow() from None
            raise
        finally:
            current.uploads.end_upload(task)
        if self._value is not UNREAD:
            return self._value
        self._is_wide = is_large_body(current, body)
        if not self._is_wide:
            return jsonrpc.read(body, current.read_limits)
        owner = self._body_owner
        try:
            with current.uploads.count_unread(owner, len(body)):
                return await read_json(current, body, owner, large=True)
        except NoRoom:
            raise Unavailable("Too many large requests wait to be read.") from None

    def _count_body_bytes(self, size: int) -> None:
        self.process.uploads.hold_body(size, self._body_owner)

    def _has_arrived_late(self) -> bool:
        return time.monotonic() - self._arrived > LATE_AFTER_S

    async def _revalidate(self) -> None:
        """Check a late request against the rules as they are now."""
        # Since the request began, staff may have stopped something or changed rights.
        now = time.monotonic()
        if not self.process.gate.fresh(now):
            await self.process.gate.wait_until_fresh(now)
        await self._refresh_catalog()

    async def _refresh_catalog(self) -> None:
        """Find the catalog and the principal again if anything changed."""
        current = self.process
        while self._generation != current.generation:
            previous, self._generation = self._principal, current.generation
            self._catalog = current.catalogs.serving(self._slug)
            if not self._catalog.open:
                await self._identify_caller()
            if self._principal.key != previous.key:
                words = "The access rules of this server have changed."
                raise Unavailable(f"{words} Send the request again.")

    async def _renew(self, request: Request) -> Request:
        """Give a request that has waited the current catalog and rights, or raise."""
        await self._revalidate()
        return request.with_changes(
            catalog=self._catalog, principal=self._principal, rights=self._rights
        )

    async def _send_accepted(self) -> None:
        await send_empty(self.send, 202, self.cors)

    def _make_request(
        self,
        message: envelope.Request,
        revision: Revision,
        meta: dict[str, Any],
        session: OpenSession | None = None,
        adapters: Adapters | None = None,
    ) -> Request:
        request = Request(
            adapters or self.process.adapters,
            self._catalog,
            self._principal,
            self._rights,
            revision,
            message.id,
            message.method,
            message.params,
            meta,
            session=session,
            headers=self._headers,
            path=self._scope["path"],
            person=self._person,
            connection=connection_name(self._scope),
            streams=self._streams,
            is_large=self._is_wide,
            is_drawn=self._scope.get(IS_DRAWN),
        )
        return resolve_called_tool(request)

    def _admit_in_session(self, session: OpenSession, message: envelope.Request) -> Run:
        """Return the run of a request in a session; raise if its id is taken."""
        meta = negotiation.meta_of(message.params) or {}
        request = self._make_request(message, session.revision, meta, session)
        earlier = session.running.get(message.id)
        # If both calls run once, the log tells whether they are the same.
        is_free = earlier is None or (runs_once(earlier.request) and runs_once(request))
        return admit(self.process, request, () if is_free else session.running)

    def _read_batch(
        self, value: list[object], session: OpenSession, revision: Revision | None
    ) -> Batch:
        """Return the messages; `revision` is None before `initialize`."""
        current = self.process
        try:
            return conversation.read_batch(
                value,
                revision,
                session.running,
                limit=current.limits.batch,
                lenient=current.lenient,
            )
        except MixedEras:
            # The stateless era has no error whose id is null.
            self._revision = LATEST
            raise


def connection_name(scope: Scope) -> str:
    """Return the client's host and port, ":" if the server does not tell them."""
    host, port = scope.get("client") or ("", "")
    return f"{host}:{port}"


def peer_address(scope: Scope) -> str:
    """Return the address of the connection; "" if it has none (a Unix socket)."""
    client = scope.get("client")
    return client[0] if client else ""
