"""A client in this process: it calls a server as a stdio client does, without a pipe.

The client sends the messages of its revision. The server reads, checks and answers them
as any others.  *Try it* and `mcp_call` call tools in this way.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any, ClassVar, Final, TypeAlias

from mcp_app.auth.principals import lets_anyone_in
from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.principal import Principal
from mcp_app.process.admission import Caller as AdmittedCaller
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import (
    Request,
    notification_message,
    request_message,
    result_message,
)
from mcp_app.protocol.errors import ProtocolError, RequestRefused
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROTOCOL_VERSION,
)
from mcp_app.protocol.revisions import Revision
from mcp_app.protocol.schemas import compile_schema
from mcp_app.protocol.tasks import Decision
from mcp_app.server.ports import Adapters
from mcp_app.server.run import Run
from mcp_app.streams.open_session import OpenSession
from mcp_app.transports.stdio.connection import Connection, NotSignedIn

MAX_ROUNDS: Final = 100
"""Rounds of questions that one call may ask."""
REJECTED: Final = -1
"""The error code if a person rejects a sampling request (client/sampling)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls, in which revision, and what the client says of itself.

    `person` names whose rates and limits apply (`Principal.person`).  If `approved` is
    true, nobody else must agree to its calls.
    """

    principal: Principal
    person: str
    revision: Revision
    name: str
    version: str = "1"
    capabilities: JsonObject
    approved: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it is on the wire; `from_client` says that the client sent it."""

    from_client: bool
    text: bytes


class Failure(Exception):
    """Answers a question of the server with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


Respond: TypeAlias = Callable[[str, "JsonObject"], "JsonObject | Awaitable[JsonObject]"]
"""Takes method and params of a question; returns its result, perhaps as an awaitable,
or raises `Failure`."""


Observe: TypeAlias = Callable[[Message], object]
"""Takes each message, in the order of the wire; called on the loop."""


def decline_question(method: str, params: JsonObject) -> JsonObject:
    """Answer a question as a client whose user dismisses it."""
    if method == "elicitation/create":
        return {"action": "cancel"}
    if method == "roots/list":
        return {"roots": []}
    raise Failure(REJECTED, "The user rejected the request.")


def check_form(params: JsonObject, content: Mapping[str, object]) -> None:
    """Raise ValueError if the content of a form breaks the schema of its question."""
    schema = params.get("requestedSchema")
    if schema is None:
        return
    broken = compile_schema(schema).violations(json.loads(json.dumps(content)))
    if broken:
        faults = "; ".join(f"{each.path}: {each.message}" for each in broken)
        raise ValueError(
            f"The answer to {params['message']!r} does not fit the form: {faults}"
        )


class InProcessClient:
    """One client, used on the loop of its process only.

    `overlay` returns the catalog that replaces the server's; `adapters` replace those
    of the process.  Without `streams` nothing reaches the client before an answer, as
    on a site that runs under WSGI.
    """

    def __init__(
        self,
        current: Process,
        slug: str,
        caller: Caller,
        *,
        overlay: Callable[[Catalog], Catalog] | None = None,
        adapters: Adapters | None = None,
        streams: bool = True,
        respond: Respond = decline_question,
        observe: Observe = lambda _: None,
    ) -> None:
        self._caller = caller
        self._respond = respond
        self._observe = observe
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._replies: set[asyncio.Task[None]] = set()
        self._opened = not caller.revision.sessions
        """Whether a session is open, or none is needed."""
        # The caller waits for each result, so nothing runs in the background.
        adapters = adapters or replace(current.adapters, tasks=None, webhooks=None)
        self._connection = _Connection(
            current, slug, caller.principal, self._receive_message, adapters
        )
        self._connection.overlay = overlay
        self._connection.approved = caller.approved
        self._connection.streams = streams
        self._connection.person = caller.person

    async def check_served(self) -> None:
        """Wait for fresh caches; raise `NotServed`, or 503 if the server is stopped."""
        await self._connection.current.gate.wait_until_fresh(time.monotonic())
        await self._connection.find_caller()

    @property
    def refusal(self) -> ProtocolError | None:
        """Why the last message was refused before anything ran; None if none was."""
        return self._connection.refusal

    @property
    def run(self) -> Run | None:
        """The run of the last request, ended or not; None if there was none."""
        return self._connection.run

    async def send_request(self, method: str, params: JsonObject) -> bytes:
        """Return the message that answers a request: a result or an error.

        In a revision with sessions the first request opens the session.  If this
        coroutine is cancelled, so is the request.
        """
        if not self._opened:
            await self._open_session()
        if self._caller.revision.stateless:
            meta = {**params.get("_meta", {}), **self._stateless_meta()}
            params = {**params, "_meta": meta}
        return await self._call_method(method, params)

    async def converse(self, method: str, params: JsonObject) -> JsonObject:
        """Return the message that answers a request, once its questions are answered.

        Raises `Failure` if `respond` does, if answers do not fit, or after many rounds.
        """
        questions: JsonObject = {}
        for _ in range(MAX_ROUNDS):
            text = await self.send_request(method, params)
            # Unlike orjson, `json` reads integers of more than 64 bits.
            message: JsonObject = json.loads(text)
            result = message.get("result", {})
            if "inputRequests" not in result:
                return message
            # A server that asks the same again has not accepted the answers.
            if result["inputRequests"] == questions:
                raise Failure(REJECTED, f"The answers do not fit: {questions!r:.500}")
            questions = result["inputRequests"]
            responses = {
                key: await self._respond_to(each)
                for key, each in result["inputRequests"].items()
            }
            params = {**params, "inputResponses": responses}
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise Failure(REJECTED, f"The call asked {MAX_ROUNDS} times in turn.")

    async def _respond_to(self, question: JsonObject) -> JsonObject:
        result = self._respond(question["method"], question.get("params", {}))
        return await result if isawaitable(result) else result

    async def _open_session(self) -> None:
        caller = self._caller
        params = {
            "protocolVersion": caller.revision.version,
            "capabilities": caller.capabilities,
            "clientInfo": {"name": caller.name, "version": caller.version},
        }
        answer = await self._call_method("initialize", params)
        if self._connection.sessions.session is None:
            raise SessionRefused(answer)
        self._opened = True
        initialized = notification_message("notifications/initialized", None)
        await self._send_message(initialized)

    def _stateless_meta(self) -> JsonObject:
        caller = self._caller
        return {
            PROTOCOL_VERSION: caller.revision.version,
            CLIENT_CAPABILITIES: caller.capabilities,
            CLIENT_INFO: {"name": caller.name, "version": caller.version},
            LOG_LEVEL: "debug",
        }

    async def _call_method(self, method: str, params: JsonObject) -> bytes:
        number = next(self._numbers)
        answer: asyncio.Future[bytes] = self._connection.current.loop.create_future()
        self._waiting[number] = answer
        try:
            if method != "initialize":
                meta = {"progressToken": number, **params.get("_meta", {})}
                params = {**params, "_meta": meta}
            await self._send_message(request_message(number, method, params))
            return await answer
        except asyncio.CancelledError:
            self._connection.cancel_request(number)
            raise
        finally:
            del self._waiting[number]
            # The call is over: nobody waits for answers to its questions.
            for reply in self._replies:
                reply.cancel()

    async def _send_message(self, message: JsonObject) -> None:
        text = jsonrpc.write(message)
        self._observe(Message(True, text))
        limit = self._connection.current.limits.body
        if len(text) > limit:
            error = RequestRefused(413, f"The body is larger than {limit} bytes.")
            # If an answer to a question is too large, the last request fails.
            last_id = next(reversed(self._waiting), None)
            error.request_id = message["id"] if "method" in message else last_id
            self._connection.refuse_message(error)
            return
        await self._connection.take_line(text, time.monotonic())

    def _receive_message(self, text: bytes) -> None:
        self._observe(Message(False, text))
        # Unlike orjson, `json` reads integers of more than 64 bits.
        message: dict[str, Any] = json.loads(text)
        if "method" not in message:
            identifier = message.get("id")
            if isinstance(identifier, int):
                answer = self._waiting.get(identifier)
            else:
                # An answer without an id is for the last request.
                answer = next(reversed(self._waiting.values()), None)
            if answer is not None and not answer.done():
                answer.set_result(text)
        elif "id" in message:
            reply = asyncio.create_task(self._answer_question(message))
            self._replies.add(reply)
            reply.add_done_callback(self._replies.discard)

    async def _answer_question(self, question: dict[str, Any]) -> None:
        identifier = question["id"]
        try:
            answer = result_message(identifier, await self._respond_to(question))
        except Failure as failure:
            error = {"code": failure.code, "message": failure.message}
            answer = {"jsonrpc": "2.0", "id": identifier, "error": error}
        await self._send_message(answer)


class SessionRefused(Exception):
    """The server did not open a session; `answer` is its error."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("The server opened no session.")
        self.answer = answer


class _Connection(Connection):
    """The server's end of the connection, with the options of `InProcessClient`."""

    run: Run | None = None
    """The run of the last request."""
    refusal: ProtocolError | None = None

    sign_in: ClassVar[str] = "Sign in first."
    overlay: Callable[[Catalog], Catalog] | None = None
    approved = False

    def find_catalog(self, slug: str) -> Catalog | None:
        catalog = super().find_catalog(slug)
        return self.overlay(catalog) if catalog and self.overlay else catalog

    async def find_caller(self) -> AdmittedCaller:
        catalog = super().find_catalog(self.slug)
        if catalog is not None and not lets_anyone_in(catalog.server):
            raise NotSignedIn(f"The MCP server {self.slug!r} lets nobody in.")
        return await super().find_caller()

    async def admit(
        self,
        message: Request,
        revision: Revision,
        meta: JsonObject,
        session: OpenSession | None,
    ) -> Run:
        self.run = await super().admit(message, revision, meta, session)
        if self.approved:
            self.run.decision = Decision()
        return self.run

    def refuse_message(self, error: ProtocolError) -> None:
        self.refusal = error
        super().refuse_message(error)

    def cancel_request(self, request_id: int) -> None:
        """Cancel a request, if it still runs."""
        running = self.running.get(request_id)
        if running is not None:
            running.cancel()

    def announce_changes(self) -> None:
        """Do nothing: changes are no part of a call."""
