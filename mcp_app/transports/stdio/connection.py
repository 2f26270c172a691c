"""One client on one two-way channel of messages: both eras, and one table of ids."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.principal import Principal, Rights
from mcp_app.pools.turns import STRANGER
from mcp_app.process.running import Waiting
from mcp_app.process.runtime import Process
from mcp_app.protocol import envelope, negotiation
from mcp_app.protocol.envelope import Notification, Reply, Request
from mcp_app.protocol.errors import (
    InternalError,
    InvalidParams,
    InvalidRequest,
    ProtocolError,
    Unavailable,
)
from mcp_app.protocol.framing import Broken
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import LATEST, LATEST_STATEFUL, Revision
from mcp_app.server import conversation, dispatch, subscriptions
from mcp_app.server.events import STREAM
from mcp_app.server.exchange import Adapters, Exchange, NoWayBack
from mcp_app.server.handlers import events
from mcp_app.server.searching import resolve_called_tool
from mcp_app.streams.bound_sessions import MemoryQuestions, MemorySessions
from mcp_app.streams.open_session import OpenSession
from mcp_app.transports.client_messages import (
    CANCELLED,
    Together,
    cancelled_id,
    encode_array,
    log_cancellations,
)
from mcp_app.transports.http.bodies import is_large_body, read_json
from mcp_app.transports.stdio.channel import (
    Alone,
    Channel,
    Listening,
    RunningCall,
    SessionChanges,
    Write,
)

logger = logging.getLogger("mcp_app.transports")

NO_WAY_BACK: Final = NoWayBack()


class NotServed(InvalidRequest):
    """The server is missing, or not for this caller."""


class NotSignedIn(NotServed):
    """The server is not for callers without a user."""


class Forbidden(NotServed):
    """The caller's user may not use the server."""


class Connection(Channel):
    """The messages from and to one client; used on the loop only.

    A message is written with `write` once it is whole. The session of the stateful era
    lives in memory, and so do its questions.
    """

    sign_in: ClassVar[str] = "Name a user with --user or MCP_USER."
    """What a caller without a user reads at a server that is not public."""
    streams = True
    """Whether messages before an answer reach the client."""
    person = ""
    """Whose rates and limits hold; "" if there are none."""

    def __init__(
        self,
        current: Process,
        slug: str,
        principal: Principal,
        write: Write,
        adapters: Adapters | None = None,
    ) -> None:
        """Serve with the adapters of the process, if there are no others."""
        super().__init__(current, slug, principal, write)
        self.questions = MemoryQuestions()
        self.sessions = MemorySessions(
            current.announced_number, current.stream_opener.store_watched_uris
        )
        self._adapters = replace(
            adapters or current.adapters,
            handshakes=self.sessions,
            sessions=self.sessions,
            questions=self.questions,
        )
        self._request_id: str | int | None = None
        self._revision: Revision = LATEST_STATEFUL

    def find_catalog(self) -> Catalog | None:
        """Return what the server offers now, if it is there; raise 503 if stopped."""
        return self.current.catalogs.find_catalog(self.slug)

    async def catalog_and_rights(self) -> tuple[Catalog, Rights]:
        """Return the catalog and the caller's rights; raise `NotServed`, or 503."""
        catalog = self.find_catalog()
        if catalog is None:
            raise NotServed(f"There is no MCP server {self.slug!r} here.")
        principal, server = self.principal, f"MCP server {self.slug!r}"
        if principal.anonymous and not catalog.public:
            raise NotSignedIn(f"The {server} is not public. {self.sign_in}")
        rights = await self.current.rights.find(principal, self.slug, catalog.demands)
        user = f"The user {principal.user_name!r}"
        if rights.gone:
            raise Forbidden(f"{user} is no longer active.")
        # While the rights were read, something may have been published or stopped.
        catalog = self.find_catalog() or catalog
        if not rights.meets_demands(catalog.server.demands):
            raise Forbidden(f"{user} lacks the rights that the {server} requires.")
        return catalog, rights

    def cancel_subscriptions(self) -> None:
        """End the subscriptions of a client that has left, without a message."""
        for running in tuple(self.running.values()):
            if isinstance(running, Listening):
                running.cancel()

    async def take_line(self, line: bytes | Broken, arrived: float) -> None:
        """Take a line that arrived then (monotonic); requests run in tasks."""
        session = self.sessions.session
        self._request_id = None
        self._revision = LATEST_STATEFUL if session is None else session.revision
        try:
            await self._process_line(line, arrived)
        except ProtocolError as error:
            self.refuse_message(error)
        except Exception:
            logger.exception("A message failed.")
            self.refuse_message(InternalError("The server failed; its log says why."))

    def refuse_message(self, error: ProtocolError) -> None:
        """Answer with an error before anything runs."""
        request_id = error.request_id
        if request_id is None:
            request_id = self._request_id
        self.write(dispatch.encoded_refusal(self._revision, request_id, error)[1])

    async def _process_line(self, line: bytes | Broken, arrived: float) -> None:
        limits = self.current.limits
        if isinstance(line, Broken):
            raise InvalidRequest(f"The line is longer than {limits.body} bytes.")
        large = is_large_body(self.current, line)
        value = await read_json(self.current, line, STRANGER, large=large)
        if type(value) is list:
            await self._take_batch(value, arrived)
            return
        try:
            message = envelope.parse_message(value, lenient=self.current.lenient)
        except InvalidRequest as error:
            if not _wants_no_answer(value):
                raise
            words = "A message was ignored, because it is not valid: %s"
            logger.info(words, error.message)
            return
        if type(message) is Request:
            self._request_id = message.id
            await self._wait_until_fresh(arrived)
            await self._take_request(message)
        else:
            await self._take_others([message], arrived)

    async def _wait_until_fresh(self, arrived: float) -> None:
        gate = self.current.gate
        if not gate.fresh(arrived):
            await gate.wait_until_fresh(arrived)

    async def _take_request(self, request: Request) -> None:
        if negotiation.is_stateless(request.params, None):
            self._revision = LATEST
            self._revision, meta = negotiation.check_in_body(request)
            exchange = await self.make_exchange(request, self._revision, meta, None)
            self._check_admission(exchange)
            await self._stateless(exchange, request)
            return
        session = self.sessions.session
        conversation.check_turn(request.method, session.revision if session else None)
        meta = negotiation.meta_of(request.params) or {}
        exchange = await self.make_exchange(request, self._revision, meta, session)
        self._check_admission(exchange)
        if request.method != "initialize":
            self._run_request(exchange)
            return
        # Later messages wait for the session.
        _, body = await dispatch.answer_request(exchange)
        self.write(body)
        if exchange.opened_session is not None:
            self.announce_changes()

    async def make_exchange(
        self,
        request: Request,
        revision: Revision,
        meta: JsonObject,
        session: OpenSession | None,
    ) -> Exchange:
        catalog, rights = await self.catalog_and_rights()
        exchange = Exchange(
            adapters=self._adapters,
            catalog=catalog,
            revision=revision,
            principal=self.principal,
            rights=rights,
            request_id=request.id,
            method=request.method,
            params=request.params,
            meta=meta,
            outgoing=NO_WAY_BACK,
            session=session,
            person=self.person,
            streams=self.streams,
        )
        resolve_called_tool(exchange)
        return exchange

    def _check_admission(self, exchange: Exchange) -> None:
        """Raise if the id is taken, the process stops, or too much runs."""
        conversation.check_request_id(exchange.request_id, self.running)
        self.current.refuse_if_stopping()
        self.current.admit(self.principal, self.person, 1)

    async def _stateless(self, exchange: Exchange, request: Request) -> None:
        ready = dispatch.ready_list_page(
            exchange.catalog, exchange.revision, request, exchange.principal
        )
        if ready is not None and self._adapters.tracing is None:
            self.write(ready)
        elif exchange.method == subscriptions.METHOD:
            accepted = await subscriptions.accept_subscription(exchange)
            Listening(self, exchange).begin_listening(*accepted)
        elif exchange.method == STREAM and self.streams:
            opened = await events.open_stream(exchange)
            Listening(self, exchange).begin_pushing(*opened)
        else:
            self._run_request(exchange)

    def _run_request(self, exchange: Exchange) -> None:
        self._start_call(exchange, dispatch.answer_request(exchange), Alone(self.write))

    def _start_call(self, exchange: Exchange, work: Any, answers: Waiting) -> None:
        call = RunningCall(self, exchange, answers, streams=self.streams)
        exchange.outgoing = call
        self.running[exchange.request_id] = call
        self.current.running.start_call(exchange, work, call)

    def announce_changes(self) -> None:
        """Announce changes to the session."""
        session = self.sessions.session
        if session is None:
            return
        changes = SessionChanges(self, session)
        try:
            self.current.add_listener(changes)
        except Unavailable as error:
            logger.warning("A session cannot be told about changes: %s", error)
        else:
            changes.begin_writing(0)

    # -- batches of 2025-03-26 --------------------------------------------------------

    async def _take_batch(self, value: list[object], arrived: float) -> None:
        session, current = self.sessions.session, self.current
        batch = conversation.read_batch(
            value,
            session.revision if session else None,
            self.running,
            most=current.limits.batch,
            lenient=current.lenient,
        )
        if batch.requests:
            await self._wait_until_fresh(arrived)
        if batch.others:
            await self._take_others(batch.others, arrived)
        if batch.requests and session is not None:
            await self._call_requests(session, batch.requests)

    async def _call_requests(
        self, session: OpenSession, requests: list[Request]
    ) -> None:
        self.current.admit(self.principal, self.person, len(requests))
        exchanges, refused = [], []
        for each in requests:
            try:
                meta = negotiation.meta_of(each.params) or {}
            except InvalidParams as error:
                refusal = dispatch.encoded_refusal(session.revision, each.id, error)
                refused.append(refusal[1])
                continue
            exchange = await self.make_exchange(each, session.revision, meta, session)
            self._check_admission(exchange)
            exchanges.append(exchange)
        if not exchanges:
            self.write(encode_array(refused))
            return
        together = Together(Alone(self.write), len(exchanges), refused)
        for exchange in exchanges:
            self._start_call(exchange, together.answer_request(exchange), together)

    # -- what has no answer -----------------------------------------------------------

    async def _take_others(
        self, messages: Sequence[envelope.Message], arrived: float
    ) -> None:
        try:
            await self._wait_until_fresh(arrived)
        except Unavailable as error:
            words = "A message is accepted although the database is away: %s"
            logger.debug(words, error)
        log_cancellations(messages)
        for each in messages:
            if type(each) is Notification:
                self._take_notification(each)
        replies = [each for each in messages if type(each) is Reply]
        if replies:
            await self._take_replies(replies)

    async def _take_replies(self, replies: Sequence[Reply]) -> None:
        session = self.sessions.session
        try:
            await self.catalog_and_rights()
        except NotServed as error:
            logger.info("An answer was refused: %s", error.message)
            return
        except Unavailable as error:
            words = "An answer is accepted although the database is away: %s"
            logger.debug(words, error)
        unasked = [
            each.id
            for each in replies
            if session is None
            or not await self.questions.take(session, each.id, each.result, each.error)
        ]
        if unasked:
            logger.info(
                "No question waits for an answer with the id %r. Such answers: %d.",
                str(unasked[0])[:80],
                len(unasked),
            )

    def _take_notification(self, message: Notification) -> None:
        session = self.sessions.session
        if message.method == "notifications/initialized" and session is not None:
            self.sessions.complete_handshake(session)
        elif message.method == CANCELLED:
            request_id = cancelled_id(message.params)
            running = None if request_id is None else self.running.get(request_id)
            if running is not None:
                running.cancel()


def _wants_no_answer(value: object) -> bool:
    """Whether an invalid message looks like a notification or a reply."""
    if not isinstance(value, dict):
        return False
    if "method" in value:
        return "id" not in value
    return "result" in value or "error" in value
