"""The plain call: a stateless `tools/call` with nothing unusual, in one coroutine.

It is served here from its headers to its answer if all of this holds:

- the headers are those of a stateless request, each stands once, and the client takes
  JSON as the answer;
- the process is not stopping, its caches are fresh, and the principal is cached;
- the body comes in one piece and in time, and has nothing but a name, arguments and
  the usual `_meta`;
- the tool is an async function without rules and mirrored parameters, the principal
  may see it, and the arguments fit its schema.

Everything else goes to `EndpointHandler`, with what was read of the body.  Both answer
with the same bytes: tests/transports/http/test_plain_call.py compares them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from functools import partial
from typing import Any, Final

from mcp_app.auth import principals
from mcp_app.catalog.plain_tool import PlainTool
from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.interface.principal import Principal
from mcp_app.interface.results import ToolOutput
from mcp_app.interface.rights import NOTHING
from mcp_app.process.current import process
from mcp_app.process.running import Answer
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc, negotiation
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.headers import SESSION_HEADER, Headers, accepted_content
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server import dispatch, recording
from mcp_app.server.context import AsyncFace, core_of, current_call
from mcp_app.server.exchange import Exchange
from mcp_app.server.handlers import tools
from mcp_app.transports.asgi_types import Message, RawHeaders, Receive, Scope, Send
from mcp_app.transports.http.bodies import is_more, too_slow
from mcp_app.transports.http.handler import EndpointHandler
from mcp_app.transports.http.replies import Reply, was_ours
from mcp_app.transports.http.request_handler import AT_ONCE_S, policy
from mcp_app.transports.http.responses import OK, send_json

logger = logging.getLogger("mcp_app.transports")

METHOD: Final = "tools/call"
ENCODED_METHOD: Final = METHOD.encode()
_PARAMS: Final = 3


class PlainCall(Exchange):
    """The call, its connection, and what waits for its answer, in one object.

    The `Reply` is made if something must be sent before the answer.
    """

    method = METHOD
    session = None
    started = True
    """Nothing else can be sent once it runs."""
    _reply: Reply | None = None

    headers: Headers
    entry: ToolEntry
    _plain: PlainTool
    _bound: dict[str, object]

    def __init__(self, scope: Scope, receive: Receive, send: Send, slug: str) -> None:
        self.arrived = time.monotonic()
        self.scope = scope
        self.receive = receive
        self.send = send
        self.slug = slug

    # -- before the body ------------------------------------------------------------

    def is_admitted(self) -> bool:
        """Whether its headers may be those of a plain call.

        Nothing is refused here: what is wrong is found again by `EndpointHandler`.
        """
        try:
            self.headers = headers = Headers(self.scope["headers"])
            self.cors: RawHeaders = policy.check(headers)
            raw = headers.raw
            self.accepts = accepted_content(
                raw.get(b"content-type"),
                raw.get(b"content-encoding"),
                raw.get(b"accept"),
            )
        except ProtocolError:
            return False
        revision = negotiation.STATELESS_BY_HEADER.get(
            raw.get(negotiation.VERSION_HEADER, b"")
        )
        if (
            revision is None
            or raw.get(b"mcp-method") != ENCODED_METHOD
            or SESSION_HEADER in raw
            or headers.repeated
            or not self.accepts.json
        ):
            return False
        self.revision = revision
        return self._is_served(process(), raw.get(b"content-length"))

    def _is_served(self, current: Process, announced: bytes | None) -> bool:
        """Whether the process can serve it at once, to a principal that it knows."""
        catalog = current.catalogs.by_slug.get(self.slug)
        if (
            catalog is None
            or catalog.server.demands.rules
            or current.stopping
            or not current.gate.fresh(self.arrived)
            or (announced is not None and is_more(announced, current.limits.body))
            or (current.audit is not None and current.audit.strict)
        ):
            return False
        self.process = current
        self.adapters = current.adapters
        self.generation = current.generation
        self.catalog = catalog
        self.principal, self.rights = Principal.ANONYMOUS, NOTHING
        return catalog.open or self._is_identified()

    def _is_identified(self) -> bool:
        """Whether the principal is cached, with its rights if anything needs them."""
        catalog = self.catalog
        if not catalog.public:
            found = principals.cached_principal(catalog.server, self.headers)
            if found is None:
                return False
            self.principal = found
        if catalog.restricted:
            key = self.principal, self.slug, catalog.demands
            rights = self.process.rights.cached(*key)
            if rights is None or not rights.meet(catalog.server.demands):
                return False
            self.rights = rights
        return True

    # -- the body, the call and the answer ------------------------------------------

    async def serve(self) -> None:
        """Serve the request."""
        current, send = self.process, self.send
        task = current.uploads.begin(self.arrived)
        try:
            first = await self.receive()
        except asyncio.CancelledError:
            await self._given_up(task)
            return
        finally:
            current.uploads.end(task)
        if not self._is_recognised(first):
            await self._otherwise(first)
            return
        current.running.begin(self, self, task)
        began, token = time.monotonic(), current_call.set(self)
        try:
            output = self._plain.convert(await self._plain.run(**self._bound))
        except BaseException as error:
            current_call.reset(token)
            await self._finish(error, began)
            return
        current_call.reset(token)
        body = self._encoded(output)
        if body is None:
            await self._finish(output, began)
            return
        current.running.end(self)
        if self.adapters.audit is not None:
            recording.record(self.adapters.audit, self, began, len(body))
        await send_json(send, OK, body, self.cors)

    async def _given_up(self, task: asyncio.Task[Any] | None) -> None:
        """Refuse a request whose body came too slowly; raise any other cancellation."""
        if not self.process.uploads.gave_up(task):
            raise asyncio.CancelledError
        await self._otherwise(too_slow())

    async def _finish(self, output: ToolOutput | BaseException, began: float) -> None:
        """Answer as any call does whose function has returned, or raised."""
        finish = partial(tools.finish, entry=self.entry, output=output)
        answer: Answer | None
        try:
            answer = await dispatch.answer(self, finish, began)
        except asyncio.CancelledError:
            if not was_ours(self):
                raise
            answer = None
        finally:
            self.process.running.end(self)
            if self._reply is not None:
                self._reply.over()
        await self.outgoing.conclude(answer)

    def _encoded(self, output: ToolOutput) -> bytes | None:
        """Return the answer of a call that did nothing but return its output."""
        if self.core is not None or self.end is not None or self._reply is not None:
            return None
        try:
            result = tools.checked(self, self.entry, output)
        except Exception:
            # It is raised again where there is an answer for it.
            return None
        return dispatch.answered(self.request_id, result)

    def _is_recognised(self, message: Message) -> bool:
        """Whether the message is the whole body, and that of a plain call."""
        body = message.get("body", b"")
        current = self.process
        if (
            message["type"] != "http.request"
            or message.get("more_body", False)
            or len(body) > current.limits.body
            or len(body) > current.limits.parse_in_thread
            or current.generation != self.generation
            or current.stopping
            or time.monotonic() - self.arrived > AT_ONCE_S
        ):
            return False
        try:
            value: Any = jsonrpc.read(body, current.read_limits)
            params = value["params"]
            arguments: JsonObject = params["arguments"]
            usual = (
                len(value) == negotiation.MEMBERS
                and value["jsonrpc"] == "2.0"
                and value["method"] == METHOD
                and type(params) is dict
                and len(params) == _PARAMS
                and type(arguments) is dict
                and negotiation.is_plain_meta(params["_meta"], self.revision)
                and negotiation.is_plain_id(value["id"])
            )
            self.request_id = value["id"]
            return usual and self._is_callable(params, arguments)
        except Exception:
            # Whatever it is, it is raised again where there is an answer for it.
            return False

    def _is_callable(self, params: JsonObject, arguments: JsonObject) -> bool:
        """Whether the principal sees a plain tool of that name, and may call it now."""
        entry = self.catalog.tools.get(params["name"])
        if entry is None or not self.sees(entry.definition):
            return False
        plain = entry.plain(self.revision)
        if (
            plain is None
            or self.headers.raw.get(b"mcp-name") != plain.header
            or not self.adapters.user_code.nothing_around(entry.runnable)
            or not plain.fits(arguments)
        ):
            return False
        if not self.principal.anonymous:
            self.process.admit(self.principal, 1)
        self.entry, self._plain = entry, plain
        self.params, self.meta = params, params["_meta"]
        self._bound = plain.bind(arguments)
        self.seconds = plain.timeout or self.adapters.limits.tool_timeout
        if plain.context is not None:
            self._bound[plain.context] = AsyncFace(core_of(self))
        return True

    def _otherwise(
        self, first: Message | ProtocolError | None = None
    ) -> Awaitable[None]:
        """Serve the request as any other; `first` is what was read of the body."""
        receive = self.receive if first is None else _again(first, self.receive)
        handler = EndpointHandler(self.scope, receive, self.send, self.slug)
        return handler.answer_admitted(self)

    # -- what a reply needs ---------------------------------------------------------

    @property
    def path(self) -> str:  # type: ignore[override]
        return str(self.scope["path"])

    @property
    def outgoing(self) -> Reply:  # type: ignore[override]
        """The way back for messages before the answer; made when it is asked for."""
        if self._reply is None:
            self._reply = Reply(self, self)
        return self._reply

    def watch(self) -> None:
        """Beat and look for changes as long as the reply is open."""
        self.process.watch()

    def dropped(self) -> None:
        """Count a message that is dropped: this client takes only JSON."""
        self.process.dropped += 1

    def lasting(self) -> None:
        """Watch for the client to leave: the call takes its time."""
        self.outgoing.lasting()

    def beat(self) -> None:
        """Keep a stream that is silent open."""
        self.outgoing.beat()

    def finished(self, task: asyncio.Task[Answer]) -> None:
        """Do nothing: the call has no task of its own."""


def _again(first: Message | ProtocolError, receive: Receive) -> Receive:
    """Return what gives a message, or raises an error, and then what follows."""
    pending = [first]

    async def receive_again() -> Message:
        if not pending:
            return await receive()
        message = pending.pop()
        if isinstance(message, ProtocolError):
            raise message
        return message

    return receive_again
