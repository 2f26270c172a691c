"""The endpoint as a Django view: with streams under ASGI, without under WSGI.

It is the same endpoint: the request becomes an ASGI call, and its answer a response.
"""

from __future__ import annotations

from asyncio import events
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, cast

from asgiref.sync import markcoroutinefunction
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.log import log_response

from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.process.background import Unsuitable, background
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import error_message
from mcp_app.protocol.errors import InternalError, ProtocolError, RequestRefused
from mcp_app.transports.addresses import endpoint as served
from mcp_app.transports.http import thread_call
from mcp_app.transports.http.bridge import (
    ADDRESSES,
    Call,
    Whole,
    body_of,
    pieces,
    scope_of,
)

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
    """Authentication by cookie makes this check itself (`auth.sessions`)."""
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
            return self._streamed(request, slug, part)
        return self._whole(request, slug, part)

    async def _streamed(
        self, request: HttpRequest, slug: str, part: str
    ) -> HttpResponseBase:
        call = Call(pieces(request))
        scope = getattr(request, "scope", None) or _scope_of(request)
        _forget_secrets(request)
        work = self.endpoint(scope, call.receive, call.send, slug=slug, part=part)
        return await call.response(work)

    def _whole(self, request: HttpRequest, slug: str, part: str) -> HttpResponseBase:
        try:
            # The loop must not wait for a client that is slow.
            scope, body = _scope_of(request), body_of(request)
            _forget_secrets(request)
            if request.method == "POST" and not part:
                answered = thread_call.serve(scope, body, slug)
                if answered is not None:
                    return answered.response()
            whole = Whole(body)
            background.run(
                partial(
                    self.endpoint,
                    scope,
                    whole.receive,
                    whole.send,
                    slug=slug,
                    part=part,
                    streams=False,
                )
            )
        except Unsuitable as error:
            return _refused(503, InternalError(str(error)))
        except RequestRefused as error:
            return _refused(error.http_status, error)
        response = whole.response()
        if response.status_code == HTTPStatus.NOT_IMPLEMENTED:
            _log_quietly(request, response)
        return response


def _scope_of(request: HttpRequest) -> dict[str, Any]:
    return scope_of(request.META, request.method or "", request.path)


def _log_quietly(request: HttpRequest, response: HttpResponse) -> None:
    """Log a response as a warning; Django would log an error and send mail.

    A site without streams is no fault; Django does not log a response twice.
    """
    log_response(
        "%s: %s",
        response.reason_phrase,
        request.path,
        response=response,
        request=request,
        level="warning",
    )


for _name, _value in _COROUTINE.items():
    setattr(EndpointView, _name, _on_a_loop(_value))


def _forget_secrets(request: HttpRequest) -> None:
    """Remove session ids, tokens and arguments before Django logs or mails them.

    It shows all headers of a failed request, except those whose names it knows.
    """
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
    # It is cached at first use, as the headers are.
    vars(request).pop("GET", None)


def _refused(status: int, error: ProtocolError) -> HttpResponse:
    body = jsonrpc.write(error_message(None, error, null_id=False))
    return HttpResponse(body, status=status, content_type="application/json")


endpoint = cast("Callable[..., HttpResponseBase]", EndpointView())
