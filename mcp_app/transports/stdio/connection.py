"""One client on a two-way channel such as stdio: its messages, in both eras."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.principal import Principal
from mcp_app.pools.turns import STRANGER
from mcp_app.process.admission import Caller, NoAccess, Reason, admit, find_caller
from mcp_app.process.running import Waiting
from mcp_app.process.runtime import Process
from mcp_app.protocol import envelope, negotiation
from mcp_app.protocol.envelope import Notification, Reply
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
from mcp_app.server.handlers import events
from mcp_app.server.ports import Adapters
from mcp_app.server.request import Request
from mcp_app.server.run import Run
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
        """Serve with `adapters`, or with those of the process."""
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
        """The id of the request that was read last, for its refusal."""
        self._revision: Revision = LATEST_STATEFUL
        """The revision of the message that was read last, for its refusal."""

    def find_catalog(self, slug: str) -> Catalog | None:
        """Return the server's catalog, None if there is none; raise 503 if stopped."""
        return self.current.catalogs.find_catalog(slug)

    async def find_caller(self) -> Caller:
        """Return the caller with its rights; raise `NotServed`, or 503 if stopped."""
        try:
            return await find_caller(
                self.current, self.slug, self.principal, self.find_catalog
            )
        except NoAccess as error:
            raise self._refusal_for(error.reason) from None

    def _refusal_for(self, reason: Reason) -> NotServed:
        server = f"MCP server {self.slug!r}"
        user = f"The user {self.principal.user_name!r}"
        match reason:
            case Reason.NO_SERVER:
                return NotServed(f"There is no {server} here.")
            case Reason.NOT_SIGNED_IN:
                return NotSignedIn(f"The {server} is not public. {self.sign_in}")
            case Reason.USER_GONE:
                return Forbidden(f"{user} is no longer active.")
        return Forbidden(f"{user} lacks the rights that the {server} requires.")

    def cancel_subscriptions(self) -> None:
        """End the subscriptions of a client that has left, without a message."""
        for running in tuple(self.running.values()):
            if isinstance(running, Listening):
                running.cancel()

    async def take_line(self, line: bytes | Broken, arrived: float) -> None:
        """Take a line; `arrived` is its time (monotonic). Requests run in tasks."""
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
        self.write(dispatch.encoded_refusal(self._revision, request_id, error).body)

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
        if type(message) is envelope.Request:
            self._request_id = message.id
            await self._wait_until_fresh(arrived)
            await self._take_request(message)
        else:
            await self._take_others([message], arrived)

    async def _wait_until_fresh(self, arrived: float) -> None:
        gate = self.current.gate
        if not gate.fresh(arrived):
            await gate.wait_until_fresh(arrived)

    async def _take_request(self, message: envelope.Request) -> None:
        if negotiation.is_stateless(message.params, None):
            self._revision = LATEST
            self._revision, meta = negotiation.check_in_body(message)
            run = await self.admit(message, self._revision, meta, None)
            await self._stateless(run, message)
            return
        session = self.sessions.session
        conversation.check_turn(message.method, session.revision if session else None)
        meta = negotiation.meta_of(message.params) or {}
        run = await self.admit(message, self._revision, meta, session)
        if message.method != "initialize":
            self._run_request(run)
            return
        # Later messages wait for the session.
        _, body = await dispatch.answer_request(run)
        self.write(body)
        if run.session_id:
            self.announce_changes()

    async def admit(
        self,
        message: envelope.Request,
        revision: Revision,
        meta: JsonObject,
        session: OpenSession | None,
    ) -> Run:
        """Return the run of a request; raise if it may not begin."""
        request = Request(
            self._adapters,
            *await self.find_caller(),
            revision,
            message.id,
            message.method,
            message.params,
            meta,
            session=session,
            person=self.person,
            streams=self.streams,
        )
        return admit(self.current, resolve_called_tool(request), self.running)

    async def _stateless(self, run: Run, message: envelope.Request) -> None:
        request = run.request
        ready = dispatch.ready_list_page(
            request.catalog, request.revision, message, request.principal
        )
        if ready is not None and self._adapters.tracing is None:
            self.write(ready)
        elif request.method == subscriptions.METHOD:
            accepted = await subscriptions.accept_subscription(run)
            Listening(self, request).begin_listening(*accepted)
        elif request.method == STREAM and self.streams:
            opened = await events.open_stream(run)
            Listening(self, request).begin_pushing(*opened)
        else:
            self._run_request(run)

    def _run_request(self, run: Run) -> None:
        self._start_call(run, dispatch.answer_request(run), Alone(self.write))

    def _start_call(self, run: Run, work: Any, answers: Waiting) -> None:
        call = RunningCall(self, run, answers, streams=self.streams)
        run.answer_through(call)
        self.running[run.request.id] = call
        self.current.running.start_call(run, work, call)

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
            limit=current.limits.batch,
            lenient=current.lenient,
        )
        if batch.requests:
            await self._wait_until_fresh(arrived)
        if batch.others:
            await self._take_others(batch.others, arrived)
        if batch.requests and session is not None:
            await self._call_requests(session, batch.requests)

    async def _call_requests(
        self, session: OpenSession, requests: list[envelope.Request]
    ) -> None:
        self.current.check_share(self.principal, self.person, len(requests))
        runs, refused = [], []
        for request in requests:
            try:
                meta = negotiation.meta_of(request.params) or {}
            except InvalidParams as error:
                refusal = dispatch.encoded_refusal(session.revision, request.id, error)
                refused.append(refusal.body)
                continue
            runs.append(await self.admit(request, session.revision, meta, session))
        if not runs:
            self.write(encode_array(refused))
            return
        together = Together(Alone(self.write), len(runs), refused)
        for run in runs:
            self._start_call(run, together.answer_request(run), together)

    # -- messages without an answer ---------------------------------------------------

    async def _take_others(
        self, messages: Sequence[envelope.Message], arrived: float
    ) -> None:
        try:
            await self._wait_until_fresh(arrived)
        except Unavailable as error:
            words = "A message is accepted although the database is away: %s"
            logger.debug(words, error)
        log_cancellations(messages)
        for message in messages:
            if type(message) is Notification:
                self._take_notification(message)
        replies = [message for message in messages if type(message) is Reply]
        if replies:
            await self._take_replies(replies)

    async def _take_replies(self, replies: Sequence[Reply]) -> None:
        session = self.sessions.session
        try:
            await self.find_caller()
        except NotServed as error:
            logger.info("An answer was refused: %s", error.message)
            return
        except Unavailable as error:
            words = "An answer is accepted although the database is away: %s"
            logger.debug(words, error)
        unasked_ids = [
            each.id
            for each in replies
            if session is None
            or not await self.questions.take(session, each.id, each.result, each.error)
        ]
        if unasked_ids:
            logger.info(
                "No question waits for an answer with the id %r. Such answers: %d.",
                str(unasked_ids[0])[:80],
                len(unasked_ids),
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
