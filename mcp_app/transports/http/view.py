"""The endpoint as a Django view: with streams under ASGI, without under WSGI.

It is the same endpoint: the request becomes an ASGI call, and its answer a response.
"""

from __future__ import annotations

import contextvars
import time
from asyncio import events
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, Final, cast

from asgiref.sync import markcoroutinefunction
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.log import log_response

from mcp_app.interface.errors import CallCancelled
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.pools.connections import own_connections
from mcp_app.pools.loop_thread import outcome_of
from mcp_app.process.background import Unsuitable, background
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import error_message
from mcp_app.protocol.errors import InternalError, ProtocolError, RequestRefused
from mcp_app.protocol.headers import Accepts
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.context import current_call
from mcp_app.server.invocation import InvocationPlaces
from mcp_app.server.run import NO_WAY_BACK, End
from mcp_app.transports.addresses import endpoint as served
from mcp_app.transports.asgi_types import Scope
from mcp_app.transports.http.bridge import (
    ADDRESSES,
    Call,
    Whole,
    asgi_scope_of,
    read_pieces,
    read_wsgi_body,
)
from mcp_app.transports.http.handler import WHOLE
from mcp_app.transports.http.plain_headers import KnownTool
from mcp_app.transports.http.probe import NAME as PROBE
from mcp_app.transports.http.responses import json_start
from mcp_app.transports.http.stateless_call import ENCODED_METHOD, StatelessCall

_LATE: Final = "The call ended before its function returned."


class ThreadCall(StatelessCall):
    """A plain call of a sync tool under WSGI, which the thread of its request runs.

    The loop's thread is needed only if the call is not plain after all: the function
    raised, its output is too large, or staff or the drain ended the call.

    While the function runs, nothing can be answered, not even a timeout.  So a tool
    runs here only if its last calls were quick (`Pace`); the others run in the threads
    for user code, while the request's thread waits.
    """

    streams = False

    @property
    def accepts(self) -> Accepts:
        """JSON alone: WSGI keeps no stream open."""
        return WHOLE

    def _is_callable(self, tool: KnownTool, arguments: JsonObject, body: bytes) -> bool:
        runnable = tool.entry.runnable
        return (
            runnable.style == "sync"
            and runnable.gate is None
            and runnable.context is None
            and runnable.pace.is_quick
            and super()._is_callable(tool, arguments, body)
        )

    def begin_if_plain(
        self, raw: Mapping[bytes, bytes], body: bytes, current: Process
    ) -> bool:
        """Register the call if it is plain; return whether this thread may run it."""
        thread_calls = current.running.in_threads
        # This reads and changes shared state: one thread at a time may do it.
        with thread_calls.recognition:
            thread_calls.doubt_slow()
            self.arrived = time.monotonic()
            if not self.is_admitted(raw, current):
                return False
            # The body is here: only threads that are busy can make it late.
            self.arrived = time.monotonic()
            if not self._is_recognised({"type": "http.request", "body": body}):
                return False
            thread_calls.begin_call(self)
        return True

    def run(self, whole: Whole) -> None:
        """Run the function, and put the answer into `whole`."""
        output: Any = None
        if self._raised is None:
            # In a new context the function does not see what views left in this one.
            run = partial(contextvars.Context().run, self._run_function)
            output, error = outcome_of(run)
            if self.end is not None or self._is_too_late():
                error = CallCancelled(_LATE)
            body = self._encode_answer(output) if error is None else None
            if body is not None:
                self._unregister_call()
                self._reply = NO_WAY_BACK
                try:
                    self._record(body)
                except Exception as unwritten:
                    self._log_unsent(unwritten)
                whole.take_answer(json_start(body, self.plain_headers.cors), body)
                return
            output = output if error is None else error
            # The error's traceback refers to this frame: avoid a reference cycle.
            del error
        background.run_on_loop(partial(self._finish_call, output))

    def _run_function(self) -> object:
        current_call.set(self)
        # Only a dry run has another `user_code`, and it never runs here.
        places = cast("InvocationPlaces", self.process.adapters.user_code)
        runnable = self.entry.runnable
        return places.run_in_this_thread(
            self, runnable, self._bound, self._convert_in_time
        )

    def _convert_in_time(self, output: object) -> object:
        # This ends a call that is too late, so that its transactions are rolled back.
        self._is_too_late()
        return self._tool.plain.convert_other(output)

    def _is_too_late(self) -> bool:
        """Whether the time limit has passed; ends the call if so."""
        if time.monotonic() - self._began <= (self.seconds or 0):
            return False
        self.stop(End.TIMED_OUT)
        return True

    def _unregister_call(self) -> None:
        self.process.running.in_threads.end_call(self)


def serve(scope: Scope, body: bytes, slug: str) -> Whole | None:
    """Serve a plain call in this thread; return None if it cannot run here.

    The call has a context and connections of its own, as in the threads for user code.
    """
    raw = dict(scope["headers"])
    if raw.get(b"mcp-method") != ENCODED_METHOD or PROBE in raw:
        return None
    current = background.loop_process()
    # The endpoint checks addresses that are encoded.
    if current is None or b"%" in (scope["raw_path"] or b""):
        return None
    whole = Whole(body)
    call = ThreadCall(scope, whole.receive, whole.send, slug)
    with own_connections():
        if not call.begin_if_plain(raw, body, current):
            return None
        call.run(whole)
    return whole


SECRET_HEADERS = ("HTTP_AUTHORIZATION", "HTTP_MCP_SESSION_ID", "HTTP_MCP_PARAM_")
_COROUTINE: dict[str, Any] = vars(markcoroutinefunction(cast("Any", SimpleNamespace())))
"""The mark of a coroutine function: its name depends on Python."""


def _on_a_loop(value: object) -> property:
    """Return an attribute that exists only if a loop runs in the current thread."""

    def get(_: object) -> object:
        if events._get_running_loop() is None:
            raise AttributeError
        return value

    return property(get)


class EndpointView:
    """One view for ASGI and WSGI, exempt from CSRF, login and transactions.

    Django asks for each request whether its view is a coroutine function: it is one
    if a loop runs in the current thread.
    """

    csrf_exempt = True
    """Authentication by cookie makes this check itself (`auth.authenticators`)."""
    login_required = False
    """Servers have access rules of their own."""
    endpoint = served

    @property
    def _non_atomic_requests(self) -> frozenset[str]:
        """Exempts the view from `ATOMIC_REQUESTS`; user code still follows it."""
        return frozenset(connections)

    def __call__(
        self, request: HttpRequest, slug: str = DEFAULT_SLUG, part: str = ""
    ) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if events._get_running_loop() is not None:
            return self._streaming_response(request, slug, part)
        return self._whole_response(request, slug, part)

    async def _streaming_response(
        self, request: HttpRequest, slug: str, part: str
    ) -> HttpResponseBase:
        call = Call(read_pieces(request))
        scope = getattr(request, "scope", None) or _request_scope(request)
        _forget_secrets(request)
        work = self.endpoint(scope, call.receive, call.send, slug=slug, part=part)
        return await call.await_response(work)

    def _whole_response(
        self, request: HttpRequest, slug: str, part: str
    ) -> HttpResponseBase:
        try:
            # The loop must not wait for a client that is slow.
            scope, body = _request_scope(request), read_wsgi_body(request)
            _forget_secrets(request)
            if request.method == "POST" and not part:
                plain_answer = serve(scope, body, slug)
                if plain_answer is not None:
                    return plain_answer.django_response()
            whole = Whole(body)
            work = partial(self.endpoint, scope, whole.receive, whole.send, slug=slug)
            background.run_on_loop(partial(work, part=part, streams=False))
        except Unsuitable as error:
            return _refusal_response(503, InternalError(str(error)))
        except RequestRefused as error:
            return _refusal_response(error.http_status, error)
        response = whole.django_response()
        if response.status_code == HTTPStatus.NOT_IMPLEMENTED:
            # A site without streams is no fault, but Django would log an error and
            # send mail.  After this warning it does not log the response again.
            log_response(
                "%s: %s",
                response.reason_phrase,
                request.path,
                response=response,
                request=request,
                level="warning",
            )
        return response


def _request_scope(request: HttpRequest) -> dict[str, Any]:
    return asgi_scope_of(request.META, request.method or "", request.path)


for _name, _value in _COROUTINE.items():
    setattr(EndpointView, _name, _on_a_loop(_value))


def _forget_secrets(request: HttpRequest) -> None:
    """Remove session ids, tokens and arguments before Django logs or mails them."""
    forget_query(request)
    meta = request.META
    for name in [each for each in meta if each.startswith(SECRET_HEADERS)]:
        del meta[name]
    vars(request).pop("headers", None)


def forget_query(request: HttpRequest) -> None:
    """Remove the query of a request wherever Django would log or show it."""
    meta = request.META
    meta["QUERY_STRING"] = ""
    for name in meta.keys() & ADDRESSES:
        meta[name] = meta[name].partition("?")[0]
    # Django caches the parsed query at first use, as it does the headers.
    vars(request).pop("GET", None)


def _refusal_response(status: int, error: ProtocolError) -> HttpResponse:
    body = jsonrpc.write(error_message(None, error, null_id=False))
    return HttpResponse(body, status=status, content_type="application/json")


endpoint = cast("Callable[..., HttpResponseBase]", EndpointView())
