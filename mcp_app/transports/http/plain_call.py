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

from mcp_app.catalog.plain_tool import PlainTool
from mcp_app.catalog.scalars import scalar_members
from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.process.current import process
from mcp_app.process.running import Answer
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc, negotiation
from mcp_app.protocol.errors import Unavailable
from mcp_app.protocol.headers import (
    MOST_HEADER_BYTES,
    MOST_HEADERS,
    SESSION_HEADER,
    Accepts,
    Headers,
)
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server import dispatch, recording
from mcp_app.server.context import AsyncFace, core_of, current_call
from mcp_app.server.exchange import Exchange
from mcp_app.server.handlers import tools
from mcp_app.transports.asgi_types import Message, RawHeaders, Receive, Scope, Send
from mcp_app.transports.http.bodies import is_more, too_slow
from mcp_app.transports.http.handler import EndpointHandler
from mcp_app.transports.http.plain_headers import (
    MOST_TOOLS,
    KnownTool,
    PlainHeaders,
    known_headers,
)
from mcp_app.transports.http.replies import Reply, was_ours
from mcp_app.transports.http.request_handler import AT_ONCE_S
from mcp_app.transports.http.responses import json_start

logger = logging.getLogger("mcp_app.transports")

METHOD: Final = "tools/call"
ENCODED_METHOD: Final = METHOD.encode()
_PARAMS: Final = 3


class PlainCall(Exchange):
    """The call, its connection, and what waits for its answer, in one object.

    The `Reply`, the `Headers` and the `Context` are made if something needs them.
    """

    method = METHOD
    started = True
    """Nothing else can be sent once it runs."""
    _reply: Reply | None = None

    entry: ToolEntry
    known: PlainHeaders
    process: Process
    _tool: KnownTool
    _plain: PlainTool
    _arguments: JsonObject
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
            scope = self.scope
            pairs = scope["headers"]
            if type(pairs) is not list or scope.get("query_string"):
                return False
            self.raw = raw = dict(pairs)
            if (
                raw.get(b"mcp-method") != ENCODED_METHOD
                or SESSION_HEADER in raw
                or len(raw) != len(pairs)
                or len(pairs) > MOST_HEADERS
                or len(b"".join(raw.values())) > MOST_HEADER_BYTES
            ):
                return False
            current = process()
            known = known_headers.of(raw, current)
            if (
                known is None
                or current.stopping
                or not current.gate.fresh(self.arrived)
            ):
                return False
            caller = current.callers.at(self.slug, raw, self.arrived)
            announced = raw.get(b"content-length")
            if caller is None or (
                announced is not None and is_more(announced, current.limits.body)
            ):
                return False
            self.known, self.caller, self.process = known, caller, current
            self.generation = current.generation
            self.adapters = current.adapters
            self.revision = known.revision
            self.catalog = caller.catalog
            self.principal = caller.principal
            self.rights = caller.rights
            return True
        except Exception:
            # It is raised again where there is an answer for it.
            return False

    # -- the body, the call and the answer ------------------------------------------

    async def serve(self) -> None:
        """Serve the request."""
        current = self.process
        task = current.uploads.begin(self.arrived)
        try:
            first = await self.receive()
        except (Exception, asyncio.CancelledError) as error:
            return await self._unread(task, error)
        finally:
            current.uploads.end(task)
        if not self._is_recognised(first):
            return await self._otherwise(first)
        current.running.begin(self, self, task)
        began, token = time.monotonic(), current_call.set(self)
        try:
            output: Any = await self._plain.run(**self._bound)
            if type(output) is not self._plain.scalar:
                output = self._plain.convert(output)
        except BaseException as error:
            current_call.reset(token)
            return await self._finish(error, began)
        current_call.reset(token)
        body = self._encoded(output)
        if body is None:
            return await self._finish(output, began)
        try:
            await self.send(self._over(body, began))
            await self.send({"type": "http.response.body", "body": body})
        except OSError:
            # The client has left.
            return None
        except Exception:
            logger.exception("A request failed.", extra={"path": self.path})
        return None

    async def _unread(
        self, task: asyncio.Task[Any] | None, error: Exception | asyncio.CancelledError
    ) -> None:
        """Answer a request whose body failed to come, or came too slowly."""
        if isinstance(error, asyncio.CancelledError):
            if not self.process.uploads.gave_up(task):
                raise error
            error = too_slow()
            try:
                self.process.refuse_if_stopping()
            except Unavailable as stopping:
                error = stopping
        await self._otherwise(error)

    async def _finish(self, output: Any, began: float) -> None:
        """Answer as any call does whose function has returned, or raised."""
        if type(output) is self._plain.scalar:
            output = self._plain.convert(output)
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
            # Else the call would hold itself, by its reply or its Context.
            reply, self._reply, self._bound = self.outgoing, None, {}
            reply.over()
        await reply.conclude(answer)

    def _encoded(self, output: Any) -> bytes | None:
        """Return the answer of a call that did nothing but return its output."""
        if self.core is not None or self.end is not None or self._reply is not None:
            return None
        try:
            if type(output) is self._plain.scalar:
                end = self.catalog.result_end(self.revision)
                result = scalar_members(output) + end
            else:
                result = tools.check_and_encode(self, self.entry, output)
        except Exception:
            # It is raised again where there is an answer for it.
            return None
        if len(result) > self.adapters.limits.tool_result:
            return None
        return dispatch.result_message(self.request_id, result)

    def _over(self, body: bytes, began: float) -> Message:
        """Take note that the call is answered; return what begins its response."""
        self.process.running.end(self)
        audit, tool = self.process.audit, self._tool
        if audit is not None and self.outcome is not Exchange.outcome:
            recording.record(audit, self, began, len(body))
        elif audit is not None:
            if tool.circumstances is None:
                tool.circumstances = recording.circumstances(self)
            recording.record_answer(
                audit, tool.circumstances, self._arguments, began, len(body)
            )
        return json_start(body, self.known.cors)

    def _is_recognised(self, message: Message) -> bool:
        """Whether the message is the whole body, and that of a plain call."""
        try:
            current, body = self.process, message.get("body", b"")
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
            value: Any = jsonrpc.read(body, current.read_limits)
            self.params = params = value["params"]
            self.meta = meta = params["_meta"]
            self._arguments = arguments = params["arguments"]
            self.request_id = value["id"]
            return (
                len(value) == negotiation.MEMBERS
                and value["jsonrpc"] == "2.0"
                and value["method"] == METHOD
                and len(params) == _PARAMS
                and type(params) is type(arguments) is dict
                and self.known.has_plain_meta(meta, len(body))
                and negotiation.is_plain_id(self.request_id)
                and self._is_callable(params["name"], arguments)
            )
        except Exception:
            # Whatever it is, it is raised again where there is an answer for it.
            return False

    def _is_callable(self, name: str, arguments: JsonObject) -> bool:
        """Whether the caller may call a plain tool of that name with these arguments.

        Raises what binding the arguments raises, and `Unavailable` if too many run.
        """
        tool = self.known.tools.get((self.caller, name)) or self._found(name)
        if tool is None or self.raw.get(b"mcp-name") != tool.plain.header:
            return False
        plain, bound = tool.plain, arguments
        if (
            tuple(arguments) != plain.names
            or tuple(map(type, arguments.values())) != plain.types
        ):
            if not plain.fits(arguments):
                return False
            bound = plain.bind(arguments)
        if not self.principal.anonymous:
            self.process.admit(self.principal, 1)
        self._tool, self._plain, self.entry = tool, plain, tool.entry
        self.seconds = plain.timeout or self.adapters.limits.tool_timeout
        if plain.context is not None:
            bound = {**bound, plain.context: AsyncFace(core_of(self))}
        self._bound = bound
        return True

    def _found(self, name: str) -> KnownTool | None:
        """Return a plain tool that the caller sees, None if there is none."""
        entry = self.catalog.tools.get(name)
        if (
            entry is None
            or self.catalog.server.demands.rules
            or not self.sees(entry.definition)
            or not self.adapters.user_code.nothing_around(entry.runnable)
            or (self.process.audit is not None and self.process.audit.strict)
        ):
            return None
        plain = entry.plain(self.revision)
        if plain is None:
            return None
        tools = self.known.tools
        if len(tools) >= MOST_TOOLS:
            tools.clear()
        tools[self.caller, name] = tool = KnownTool(entry, plain)
        return tool

    def _otherwise(self, first: Message | Exception) -> Awaitable[None]:
        """Serve the request as any other; `first` is what was read of the body."""
        receive = _again(first, self.receive)
        handler = EndpointHandler(self.scope, receive, self.send, self.slug)
        return handler.answer_admitted(self)

    # -- what others need of it -----------------------------------------------------

    @property
    def headers(self) -> Headers:  # type: ignore[override]
        return Headers(self.scope["headers"])

    @property
    def path(self) -> str:  # type: ignore[override]
        return str(self.scope["path"])

    @property
    def cors(self) -> RawHeaders:
        return self.known.cors

    @property
    def accepts(self) -> Accepts:
        return self.known.accepts

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


def _again(first: Message | Exception, receive: Receive) -> Receive:
    """Return what gives a message, or raises an error, and then what follows."""
    pending = [first]

    async def receive_again() -> Message:
        if not pending:
            return await receive()
        message = pending.pop()
        if isinstance(message, Exception):
            raise message
        return message

    return receive_again
