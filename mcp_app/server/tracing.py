"""Spans of requests, by OpenTelemetry's conventions for MCP.

The names and attributes are those of semantic-conventions-genai (`gen-ai/mcp.md`, in
development); only this file depends on them.  This module needs the extra `otel`, and
is imported only if `MCP["TRACING"]` is set.

A recorded call takes some five times the instructions of another one.  So it is decided
before a request is served whether to record it: by its parent trace, else by a draw.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from random import random
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from opentelemetry import context, trace
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.trace.status import StatusCode
from pydantic import BaseModel, ConfigDict, Field

from mcp_app.interface.call_record import FINE
from mcp_app.interface.server import VERSION
from mcp_app.pools.loop_thread import run_apart
from mcp_app.server import recording
from mcp_app.server.request import IS_DRAWN

if TYPE_CHECKING:
    from mcp_app.egress.requests import SiteRequest
    from mcp_app.egress.sites import Site
    from mcp_app.interface.principal import Principal
    from mcp_app.server.request import Request
    from mcp_app.server.run import Run

logger = logging.getLogger("mcp_app.server")

OTHER_METHOD: Final = "_OTHER"
"""The name for all unknown methods, as in the conventions for HTTP."""
MAX_ID_LENGTH: Final = 64
"""Characters of a request's id in its span."""
TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
_FLAGS: Final = 54
"""Index of the last digit of the flags in a `traceparent` (W3C Trace Context, 3.2)."""
_SAMPLED: Final = frozenset("13579bdf")
"""The digits with the lowest bit: the flag "sampled"."""
SEND_S: Final = 2.0
"""Seconds that an ending process waits until its last spans are sent."""
MAX_CONTEXT: Final = 512
"""Characters of a `traceparent`, and of a `tracestate` (W3C Trace Context, 3.3.1.5)."""
_KEY: Final = "[a-z][a-z0-9_*/-]{0,240}(?:@[a-z][a-z0-9_*/-]{0,13})?"
_MEMBER: Final = f"{_KEY}=[!-+.-<>-~-]{{1,256}}"
_STATE: Final = re.compile(f"{_MEMBER}(?:, ?{_MEMBER}){{0,31}}")
_TARGETS: Final = {
    "tools/call": "gen_ai.tool.name",
    "prompts/get": "gen_ai.prompt.name",
    "resources/read": "mcp.resource.uri",
}
"""The attribute for the target of a method; the name of a span never has a URI."""
_HTTP: Final = {"network.transport": "tcp", "network.protocol.name": "http"}
_PIPE: Final = {"network.transport": "pipe"}

Attributes: TypeAlias = dict[str, str | int]
Note: TypeAlias = Callable[[int], None]
"""Takes the HTTP status of another site's answer."""

_propagator: Final = TraceContextTextMapPropagator()


class TracingOptions(BaseModel):
    """`MCP["TRACING"]`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sample: float = Field(0.01, ge=0, le=1)
    parents: Literal["signed-in", "all", "none"] = "signed-in"
    user: bool = False


class Tracing:
    """Decides what is recorded, and records it; used from any thread."""

    def __init__(self, options: TracingOptions) -> None:
        self._sample = options.sample
        self._parents = options.parents
        self._user = options.user
        self._tracer = trace.get_tracer("mcp_app", VERSION)
        self._has_ambient = False
        """Whether the site records requests, too; looking each time would cost 1 %."""

    # -- before a request is read ----------------------------------------------------

    def wants_headers(
        self,
        raw: Mapping[bytes, bytes],
        principal: Principal,
        scope: MutableMapping[str, Any],
    ) -> bool:
        """Whether to record a request, as far as this is known before its body.

        The result of a draw is kept in the connection's `scope`, so there is one draw.
        """
        if b"traceparent" in raw and self._trusts(principal, remote=True):
            return _may_be_sampled(raw[b"traceparent"].decode("latin-1"))
        if self._has_ambient:
            ambient = trace.get_current_span().get_span_context()
            if ambient.is_valid:
                return ambient.trace_flags.sampled
        scope[IS_DRAWN] = is_drawn = self._draw()
        return is_drawn

    def _draw(self) -> bool:
        return random() < self._sample  # noqa: S311 - no secret

    def wants_meta(self, meta: Mapping[str, Any], principal: Principal) -> bool:
        """Whether the `_meta` of a request lets it be recorded."""
        parent = meta.get(TRACEPARENT)
        return (
            type(parent) is str
            and _may_be_sampled(parent)
            and self._trusts(principal, remote=True)
        )

    def _trusts(self, principal: Principal, *, remote: bool) -> bool:
        """Whether to continue a caller's trace; a stranger could have all recorded."""
        if self._parents == "signed-in":
            # A caller that starts a process and writes into its pipe is no stranger.
            return not (remote and principal.anonymous)
        return self._parents == "all"

    # -- requests --------------------------------------------------------------------

    def start_request(self, run: Run) -> Span | None:
        """Start the span of a request, None if it is not recorded.

        Its parent is the context in its `_meta` (SEP-414), else in its header, else the
        span that is current.  The others are links.
        """
        request = run.request
        remote = self._remote_contexts(request)
        ambient = trace.get_current_span().get_span_context()
        ambients = [ambient] if ambient.is_valid else []
        # The first request of a client comes here, whatever is drawn.
        self._has_ambient = self._has_ambient or ambient.is_valid
        trusted = self._trusts(request.principal, remote=request.headers is not None)
        parents = [*(remote if trusted else ()), *ambients]
        if parents:
            is_sampled = parents[0].trace_flags.sampled
        elif request.is_drawn is None:
            is_sampled = self._draw()
        else:
            is_sampled = request.is_drawn
        if not is_sampled:
            return None
        parent = context.Context()
        if parents:
            parent = trace.set_span_in_context(NonRecordingSpan(parents[0]), parent)
        # The first of `parents`, if there is one, is the parent.
        links = [each for each in (*remote, *ambients) if each not in parents[:1]]
        # An unknown method is text of the caller, so it is left out.
        is_known = request.method in request.revision.methods
        method = request.method if is_known else OTHER_METHOD
        try:
            return self._tracer.start_span(
                method,
                parent,
                SpanKind.SERVER,
                self._request_attributes(request, method),
                [Link(_without_state(each)) for each in links],
                record_exception=False,
                set_status_on_exception=False,
            )
        except Exception as error:
            _log_fault(error)
            return None

    def _remote_contexts(self, request: Request) -> list[SpanContext]:
        meta, headers = request.meta, request.headers
        pairs = [(meta.get(TRACEPARENT), meta.get(TRACESTATE))]
        if headers is not None:
            pairs.append((headers.get(b"traceparent"), headers.get(b"tracestate")))
        contexts = (_read_context(*pair) for pair in pairs)
        return [each for each in contexts if each is not None]

    def _request_attributes(self, request: Request, method: str) -> Attributes:
        principal, session = request.principal, request.session
        attributes: Attributes = {
            "mcp.method.name": method,
            "mcp.protocol.version": request.revision.version,
            "jsonrpc.request.id": str(request.id)[:MAX_ID_LENGTH],
            "mcp_app.server": request.catalog.server.slug,
            "mcp_app.principal": principal.kind,
        }
        if request.task is None:
            attributes.update(_PIPE if request.headers is None else _HTTP)
        if session is not None:
            attributes["mcp.session.id"] = session.digest[: recording.SESSION_HANDLE]
        if method == "tools/call":
            attributes["gen_ai.operation.name"] = "execute_tool"
        if self._user and principal.user_id:
            attributes["user.id"] = principal.user_id
        return attributes

    @contextmanager
    def record_request(self, run: Run, span: Span) -> Iterator[None]:
        """Make a span the current one, and end it with the outcome of the request."""
        run.span = span
        token = context.attach(trace.set_span_in_context(span))
        try:
            yield
        finally:
            context.detach(token)
            try:
                _describe_end(span, run)
                span.end()
            except Exception as error:
                _log_fault(error)

    # -- what a request waits for ----------------------------------------------------

    @contextmanager
    def record_questions(self, request: Span, methods: Sequence[str]) -> Iterator[None]:
        """Record questions to the client, from their sending to their answers."""
        parent = trace.set_span_in_context(request)
        with ExitStack() as spans:
            for method in methods:
                spans.enter_context(
                    self._record_client(method, {"mcp.method.name": method}, parent)
                )
            yield

    @contextmanager
    def record_site_call(
        self, site: Site, request: SiteRequest, *, is_delivery: bool
    ) -> Iterator[Note | None]:
        """Record a call of another site; yield a function for the answer's status.

        The call's span is a child of the current span.  If a delivery of events has no
        current span, it has its own draw.  Yield None if nothing is recorded.
        """
        current = trace.get_current_span()
        if not current.is_recording() and not (
            is_delivery and not current.get_span_context().is_valid and self._draw()
        ):
            yield None
            return
        attributes: Attributes = {
            "http.request.method": request.method,
            "server.address": site.host,
            "server.port": site.port,
            "url.template": request.log_path,
        }
        name = f"{request.method} {site.key}"
        with self._record_client(name, attributes, None) as span:

            def note_status(status: int) -> None:
                span.set_attribute("http.response.status_code", status)
                if status >= 400:  # noqa: PLR2004 - the first error of HTTP
                    _set_error(span, str(status))

            yield note_status

    def outgoing_headers(self) -> list[tuple[str, str]]:
        """Return the headers that carry the current trace to another site."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return [*carrier.items()]

    async def send_spans(self) -> None:
        """Have the SDK send its spans: it does not if a signal ends the process."""
        flush = getattr(trace.get_tracer_provider(), "force_flush", None)
        if flush is None:
            return
        sending = run_apart(partial(flush, int(SEND_S * 1_000)), "mcp-spans")
        # Exporters may raise anything, and at exit no thread can start (Python 3.12).
        with suppress(Exception):
            await asyncio.wait_for(sending, SEND_S)

    @contextmanager
    def _record_client(
        self, name: str, attributes: Attributes, parent: context.Context | None
    ) -> Iterator[Span]:
        """Record what this process asks of a client or a site, as the current span."""
        span = self._tracer.start_span(name, parent, SpanKind.CLIENT, attributes)
        token = context.attach(trace.set_span_in_context(span))
        try:
            yield span
        except BaseException as error:
            _set_error(span, type(error).__name__)
            raise
        finally:
            context.detach(token)
            span.end()


def _log_fault(error: Exception) -> None:
    """Log an error of the site's sampler or processor; the request is served."""
    logger.error("A span could not be recorded: %r", error)


def _may_be_sampled(parent: str) -> bool:
    """Whether a text, if it is a `traceparent`, says that its trace is recorded."""
    return parent[_FLAGS : _FLAGS + 1] in _SAMPLED


def _read_context(parent: Any, state: Any) -> SpanContext | None:
    """Return the context of `_meta` or of headers, None if it is missing or bad.

    Baggage is not read: it is text of the caller, which libraries of the site would
    send on.
    """
    if type(parent) is not str or len(parent) > MAX_CONTEXT:
        return None
    texts = {TRACEPARENT: parent}
    # The propagator logs a text that it cannot read, and is slow with a long one.
    if type(state) is str and len(state) <= MAX_CONTEXT and _STATE.fullmatch(state):
        texts[TRACESTATE] = state
    extracted = _propagator.extract(texts, context.Context())
    span_context = trace.get_current_span(extracted).get_span_context()
    return span_context if span_context.is_valid else None


def _without_state(link: SpanContext) -> SpanContext:
    return SpanContext(link.trace_id, link.span_id, link.is_remote, link.trace_flags)


def _describe_end(span: Span, run: Run) -> None:
    request = run.request
    if not span.is_recording():
        return
    entry, target = run.entry, _TARGETS.get(request.method)
    # Without an entry, the name is text of the caller, so it is left out.
    if entry is not None and target is not None:
        span.set_attribute(target, entry.identity)
        span.set_attribute("mcp_app.version", entry.version)
        if request.method != "resources/read":
            span.update_name(f"{request.method} {entry.identity}")
    outcome, _error, failure, code = run.ending
    if failure:
        span.set_attribute("mcp_app.failure", failure)
    if code:
        span.set_attribute("rpc.response.status_code", str(code))
    if outcome not in FINE:
        _set_error(span, outcome.value)


def _set_error(span: Span, kind: str) -> None:
    # No description is set: messages have values of callers and texts of tools.
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
