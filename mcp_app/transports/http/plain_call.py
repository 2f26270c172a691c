"""The plain call: a `tools/call` with nothing unusual, from its headers to its answer.

It is served here if all of this holds:

- each header stands once, and the client takes JSON as the answer;
- the process is not stopping, its caches are fresh, and the principal is cached;
- the body comes in one piece and in time, and has nothing but a name, arguments and
  the `_meta` that is usual in its era;
- the tool is a function without rules and mirrored parameters, the principal may see
  it, and the arguments fit its schema.

All other requests go to `EndpointHandler`, with the part of the body that was read.
Both answer with the same bytes: tests/transports/http/test_plain_call.py compares them.

`StatelessCall` and `SessionCall` have the code of one era each.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import abstractmethod
from collections.abc import Awaitable, Coroutine, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Final

from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.catalog.type_hints import scalar_members
from mcp_app.interface.call_record import ANSWERED
from mcp_app.interface.principal import Principal
from mcp_app.pools.turns import GUESS
from mcp_app.process.current import process
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc, negotiation
from mcp_app.protocol.errors import ParseError, Unavailable
from mcp_app.protocol.headers import MOST_HEADER_BYTES, MOST_HEADERS, Accepts, Headers
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import Revision
from mcp_app.server import dispatch, recording
from mcp_app.server.context import context_face_of
from mcp_app.server.handlers import Handler, tools
from mcp_app.server.outcome import Response
from mcp_app.server.request import UNKNOWN_ADDRESS, Request, is_visible
from mcp_app.server.run import NO_WAY_BACK, Run
from mcp_app.streams.open_session import OpenSession
from mcp_app.transports.asgi_types import Message, RawHeaders, Receive, Scope, Send
from mcp_app.transports.http.bodies import exceeds_limit, is_large_body, too_slow
from mcp_app.transports.http.handler import EndpointHandler
from mcp_app.transports.http.plain_headers import (
    KnownTool,
    KnownTools,
    PlainHeaders,
    ToolKey,
    known_headers,
)
from mcp_app.transports.http.request_handler import (
    LATE_AFTER_S,
    UNREAD,
    connection_name,
    peer_address,
)
from mcp_app.transports.http.responses import with_retry

logger = logging.getLogger("mcp_app.transports")

METHOD: Final = "tools/call"


class PlainCall(Run):
    """The call, its connection, and what waits for its answer, in one object.

    The `Request`, the `Reply` and the `Context` are made if something needs them.
    """

    started = True
    """Once the call runs, no other answer can be sent."""
    streams = True
    """Whether the transport can keep streams open, for this or another request."""
    value: object = UNREAD
    """The JSON of the body, for `EndpointHandler`, if it was parsed here."""
    sign = b""
    """Bytes that the body must contain; empty if a header names the method."""
    _reply: Any
    """The `Reply`; `NO_WAY_BACK` after an answer that needed none."""
    _raised: list[BaseException] | None
    """The error from binding the arguments or encoding the output.  It is taken out
    later, because its traceback refers to this object (a reference cycle)."""
    _number: bytes | None
    """The id as text, if the body has the form of a template."""

    session: OpenSession | None = None
    principal = Principal.ANONYMOUS
    person = ""
    revision: Revision
    plain_headers: PlainHeaders
    process: Process
    _tool: KnownTool
    _bound: dict[str, object]
    _began: float
    """When it began, after its body was read (monotonic)."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, slug: str) -> None:
        self.arrived = time.monotonic()
        self.scope = scope
        self.receive = receive
        self.send = send
        self.slug = slug
        # Reading a default from the class takes several times as long.
        self.core = self.end = self.session = None
        self._reply = self._raised = self._number = None

    # -- before the body ------------------------------------------------------------

    def is_admitted(
        self, raw: Mapping[bytes, bytes], current: Process | None = None
    ) -> bool:
        """Whether its headers, in `raw`, may be those of a plain call.

        `current` is the process; if None, that of the running loop.  Nothing is
        refused here: `EndpointHandler` finds the fault again and refuses it.
        """
        try:
            pairs = self.scope["headers"]
            if (
                self.scope.get("query_string")
                or len(raw) != len(pairs)  # a header is repeated
                or len(pairs) > MOST_HEADERS
                or sum(map(len, raw.values())) > MOST_HEADER_BYTES
            ):
                return False
            current = current or process()
            headers = known_headers.of(raw, current)
            if (
                headers is None
                or current.stopping
                or not current.gate.fresh(self.arrived)
            ):
                return False
            caller = current.callers.at(self.slug, raw, self.arrived)
            announced = raw.get(b"content-length", b"")
            if caller is None or (
                len(announced) > known_headers.digits
                and exceeds_limit(announced, current.limits.body)
            ):
                return False
            self.raw = raw
            self.plain_headers, self.caller, self.process = headers, caller, current
            self.generation = current.generation
            self.principal = principal = caller.principal
            tracing = current.tracing
            if tracing is not None and tracing.wants_headers(
                raw, principal, self.scope
            ):
                return False
            self.person = principal.person or (
                current.addresses.address_key(
                    peer_address(self.scope), raw[b"x-forwarded-for"].decode("latin-1")
                )
                if b"x-forwarded-for" in raw
                else current.addresses.direct(peer_address(self.scope))
            )
            return True
        except Exception:
            # `EndpointHandler` meets the same error again, and answers it.
            return False

    # -- the body -------------------------------------------------------------------

    @abstractmethod
    async def serve(self) -> None:
        """Serve the request."""

    async def _answer_unread(
        self, task: asyncio.Task[Any] | None, error: Exception | asyncio.CancelledError
    ) -> None:
        """Answer a request whose body did not come: late, stopped, or broken off."""
        if isinstance(error, asyncio.CancelledError):
            if not self.process.uploads.was_cancelled_here(task):
                raise error
            error = too_slow()
            try:
                self.process.refuse_if_stopping()
            except Unavailable as stopping:
                error = stopping
        await self._otherwise(error)

    def _is_recognised(self, message: Message) -> bool:
        """Whether the message is the whole body of a plain call."""
        try:
            current, body = self.process, message.get("body", b"")
            self._began = now = time.monotonic()
            if (
                message["type"] != "http.request"
                or message.get("more_body", False)
                or len(body) > current.limits.body
                or (len(body) > current.inline_bytes and is_large_body(current, body))
                or current.generation != self.generation
                or current.stopping
                or now - self.arrived > LATE_AFTER_S
            ):
                return False
            if (tool := self._expected_tool()) is not None:
                call = tool.template.read(body) if tool.template is not None else None
                # So few bytes cannot hold more values than are allowed.
                if call is not None and len(body) <= current.read_limits.nodes:
                    return self._is_usual_call(tool, call[0], call[1], body)
            if self.sign and self.sign not in body:
                return False
            value: Any = jsonrpc.read_any_depth(body, current.read_limits)
        except Exception:
            # `EndpointHandler` meets the same error again, and answers it.
            return False
        if self._is_plain(value, body):
            return True
        with suppress(ParseError):
            self._check_depth(body)
            self.value = value
        return False

    @abstractmethod
    def _expected_tool(self) -> KnownTool | None:
        """Return the tool that the client probably calls, if any; set `revision`."""

    def _is_usual_call(
        self, tool: KnownTool, number: bytes, arguments: JsonObject, body: bytes
    ) -> bool:
        """Whether a call whose body matches the template is a plain call."""
        if self.session is not None:
            # A session needs the id; a `cached_property` would cost 6 % of a call.
            self.request_id = int(number)
            if not self._is_in_turn():
                return False
        self._number = number
        self.params = {"name": tool.entry.definition.name, "arguments": arguments}
        return self._is_callable(tool, arguments, body)

    def _is_in_turn(self) -> bool:
        """Whether no running call of the session has the same id."""
        return True

    def _is_plain(self, value: Any, body: bytes) -> bool:
        try:
            self.params = params = value["params"]
            self.request_id = request_id = value["id"]
            if not (
                len(value) == negotiation.MEMBERS
                and value["jsonrpc"] == "2.0"
                and value["method"] == METHOD
                and type(params) is type(params["arguments"]) is dict
                and negotiation.is_plain_id(request_id)
                and self._is_in_turn()
                and self._is_of_its_era(params, body)
                and not self._is_recorded()
            ):
                return False
            tool = self._known_tool(params["name"])
            if tool is None:
                return False
            if tool.template is None:
                tool.learn_template(value)
            return self._is_callable(tool, params["arguments"], body)
        except Exception:
            # `EndpointHandler` meets the same error again, and answers it.
            return False

    def _is_recorded(self) -> bool:
        """Whether its `_meta` gives the call a span; a plain call has none."""
        tracing = self.process.tracing
        return tracing is not None and tracing.wants_meta(self.meta, self.principal)

    def _check_depth(self, body: bytes) -> None:
        jsonrpc.check_depth(body, self.process.read_limits)

    @abstractmethod
    def _is_of_its_era(self, params: JsonObject, body: bytes) -> bool:
        """Whether all but the tool fits a plain call; set `meta`, may raise."""

    @abstractmethod
    def _known_tool(self, name: str) -> KnownTool | None:
        """Return a plain tool that the caller sees, None if there is none."""

    def _is_callable(self, tool: KnownTool, arguments: JsonObject, body: bytes) -> bool:
        """Whether the tool may be called now; raise `Unavailable` if too many run."""
        limited = self.process.limits.rates
        if limited:
            self.process.check_share(self.principal, self.person, 1)
        plain, bound = tool.plain, arguments
        if (
            tuple(arguments) != plain.names
            or tuple(map(type, arguments.values())) != plain.types
        ):
            # Scalars are surely shallow; other values may be nested too deeply.
            self._check_depth(body)
            if not plain.fits(arguments):
                return False
            try:
                bound = plain.bind(arguments)
            except (Exception, asyncio.CancelledError) as error:
                # It is kept, because the code of the types must not run twice.
                self._raised = [error]
        self._tool = tool
        self.seconds = plain.timeout or self.process.limits.tool_timeout
        if plain.context is not None:
            bound = {**bound, plain.context: context_face_of(self, tool.entry.runnable)}
        self._bound = bound
        # This is last, because a call that is served elsewhere is charged there.
        return not limited or self._is_within_rates(tool)

    def _is_within_rates(self, tool: KnownTool) -> bool:
        """Charge the caller for the call; return False if that exceeds the rate."""
        rates, now = self.process.rates, self._began
        charge = tool.charge
        if charge is None or not rates.is_current(charge, now):
            charge = rates.charge_of(self.person or UNKNOWN_ADDRESS, tool.entry)
            if charge is None:
                return True
            if not self.principal.anonymous:
                tool.charge = charge
        return rates.admits(charge, now)

    def _find_tool(
        self, known_tools: KnownTools, key: ToolKey, name: str
    ) -> KnownTool | None:
        """Return the tool if plain calls may run it, and keep it; None if not."""
        entry = self.caller.catalog.tools.get(name)
        if (
            entry is None
            or not self._may_serve(entry)
            or self.caller.catalog.server.demands.rules
            or not is_visible(entry.definition, self.principal, self.caller.rights)
            or (self.process.audit is not None and self.process.audit.strict)
        ):
            return None
        plain = entry.as_plain_tool(self.revision)
        if plain is None:
            return None
        direct = self.process.adapters.user_code.nothing_around(entry.runnable)
        end = self.caller.catalog.result_end(self.revision)
        tool = KnownTool(entry, plain, end, direct)
        known_tools.keep_tool(key, tool)
        return tool

    def _may_serve(self, entry: ToolEntry) -> bool:
        return True

    def _otherwise(self, first: Message | Exception) -> Awaitable[None]:
        """Serve it by `EndpointHandler`; `first` is what `receive` gave or raised."""
        receive = _receiving_again(first, self.receive)
        handler = EndpointHandler(self.scope, receive, self.send, self.slug)
        return handler.answer_admitted(self)

    # -- the answer -----------------------------------------------------------------

    def _run_elsewhere(self) -> Coroutine[Any, Any, object]:
        """Run a function that is not awaited directly; convert its output."""
        tool = self._tool
        return self.process.adapters.user_code.run(
            self, tool.entry.runnable, self._bound, tool.plain.convert_other
        )

    def _encode_answer(self, output: Any) -> bytes | None:
        """Return the encoded answer; None if `_answer_of` must make it."""
        if self.end is not None or self._reply is not None:
            return None
        if self.core is not None:
            if not self.core.is_idle:
                return None
            self.core.close()
        tool = self._tool
        try:
            if type(output) is tool.plain.scalar:
                result = scalar_members(output) + tool.end
            else:
                result = self._encode_checked(output)
        except (Exception, asyncio.CancelledError) as error:
            # It is kept, because the code of the output must not run twice.
            self._raised = [error]
            return None
        if len(result) > self.process.limits.tool_result:
            return None
        if self._number is None:
            return dispatch.result_message(self.request_id, result)
        return dispatch.result_envelope(self._number, result)

    def _encode_checked(self, output: Any) -> bytes:
        result, ending = tools.check_and_encode(
            self.caller.catalog,
            self.revision,
            self.process.limits.tool_result,
            self.entry,
            output,
        )
        if ending is not ANSWERED:
            self.ending = ending
        return result

    def _record(self, body: bytes) -> None:
        audit, tool = self.process.audit, self._tool
        if audit is None:
            return
        if self.ending is not ANSWERED:
            recording.record_call(audit, self, self._began, len(body))
            return
        if tool.circumstances is None:
            tool.circumstances = recording.circumstances(self)
        # The function may have changed what is in its arguments.
        arguments = self.params["arguments"]
        same = self._bound is arguments
        written = jsonrpc.canonical_of_read if same else jsonrpc.canonical
        recording.record_answer(
            audit, tool.circumstances, written(arguments), self._began, len(body)
        )

    def _answer_of(self, output: Any) -> Coroutine[Any, Any, Response]:
        """Return the answer of any call whose function has returned, or raised."""
        handler: Handler
        if self._raised is not None:
            handler = partial(tools.refuse_tool_call, errors=self._raised)
        else:
            if type(output) is self._tool.plain.scalar:
                output = self._tool.plain.convert(output)
            handler = partial(
                tools.finish_tool_call, entry=self.entry, outputs=[output]
            )
        return dispatch.answer_request(self, handler, self._began)

    def _log_unsent(self, error: Exception) -> None:
        """Log that an answer could not be sent, unless its client has left."""
        if not isinstance(error, OSError):
            self._log_failure(error)

    def _log_failure(self, error: Exception) -> None:
        logger.error(
            "A request failed.", extra={"path": self.scope["path"]}, exc_info=error
        )

    def _forget_reply(self) -> None:
        """Break the reference cycles of the call with its reply and its Context."""
        self._reply, self._bound = NO_WAY_BACK, {}

    # -- what others need of it -----------------------------------------------------

    @cached_property
    def request(self) -> Request:  # type: ignore[override]
        return Request(
            self.process.adapters,
            self.caller.catalog,
            self.principal,
            self.caller.rights,
            self.revision,
            self.request_id,
            METHOD,
            self.params,
            self.meta,
            session=self.session,
            headers=Headers(self.scope["headers"]),
            path=str(self.scope["path"]),
            person=self.person,
            connection=connection_name(self.scope),
            streams=self.streams,
            is_drawn=False,
        )

    @cached_property
    def request_id(self) -> str | int:
        """The id; made here if the body has the form of a template."""
        return int(self._number or 0)

    @cached_property
    def meta(self) -> JsonObject:
        """The `_meta`; made here if the body has the form of a template."""
        template = self._tool.template
        return {} if template is None else dict(template.copy_of_meta())

    # These are properties, because CPython shares the names of at most 30 attributes
    # between the objects of a class: with more, each call takes 4 % longer.

    @property
    def entry(self) -> ToolEntry:  # type: ignore[override]
        return self._tool.entry

    @property
    def turn(self) -> str:
        # Most calls need neither an object for their headers nor a session.
        names = [name for name, _value in self.scope["headers"]]
        if self.person or self.session is not None or b"x-forwarded-for" in names:
            return super().turn
        return GUESS + connection_name(self.scope)

    @property
    def cors(self) -> RawHeaders:
        return self.plain_headers.cors

    @property
    def accepts(self) -> Accepts:
        return self.plain_headers.accepts

    @property
    @abstractmethod
    def reply(self) -> Any:
        """The way back for messages before the answer; made at first use."""

    def error_headers(self, status: int) -> RawHeaders:
        """Return the headers of an error; a plain call never lacks a scope."""
        return with_retry(status, self.plain_headers.cors)

    def lasting(self) -> None:
        """Watch for the client to leave, because the call takes long."""
        self.reply.lasting()

    def beat(self) -> None:
        self.reply.beat()


def _receiving_again(first: Message | Exception, receive: Receive) -> Receive:
    """Return a `receive` that begins with what was received, or raised, before."""
    pending = [first]

    async def receive_again() -> Message:
        if not pending:
            return await receive()
        message = pending.pop()
        if isinstance(message, Exception):
            raise message
        return message

    return receive_again
