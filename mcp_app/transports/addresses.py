"""The endpoint with all that is served below its address."""

from __future__ import annotations

import re
from collections.abc import Coroutine, Mapping
from typing import Any, Final

from mcp_app.interface.server import HEALTH_SLUG, MESSAGES_PART, METRICS_SLUG, SSE_PART
from mcp_app.protocol.headers import SESSION_HEADER
from mcp_app.transports.asgi_types import Receive, Scope, Send
from mcp_app.transports.http import cards, metrics, responses
from mcp_app.transports.http.handler import EndpointHandler
from mcp_app.transports.http.plain_call import PlainCall
from mcp_app.transports.http.probe import NAME as PROBE
from mcp_app.transports.http.request_handler import HttpRequestHandler
from mcp_app.transports.http.stateless_call import (
    ENCODED_METHOD,
    SessionCall,
    StatelessCall,
)
from mcp_app.transports.http_sse.sse_handler import MessagesHandler, StreamHandler

NEEDLESS: Final = re.compile(
    rb"%(?:2[DdEeFf]|3[0-9]|4[1-9A-Fa-f]|5[0-9AaFf]|6[1-9A-Fa-f]|7[0-9AaEe])"
)
"""A letter, a digit, `-`, `.`, `_`, `~` or a slash that is encoded in a path."""


class Endpoint:
    """Serves each server's endpoint, by its slug, and the health check and metrics.

    Without `streams` each answer is one JSON document.  `parts` says how the addresses
    below it are served, by their last part; "" is the endpoint itself.

    An address that encodes what needs no encoding (`/%6dcp`, `/mcp%2fteam`) is not
    served: a proxy may have rules for `/mcp/team` that do not match such an address.
    """

    def __init__(self, parts: Mapping[str, type[HttpRequestHandler]]) -> None:
        self._parts = parts

    def __call__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        slug: str,
        part: str = "",
        streams: bool = True,
    ) -> Coroutine[Any, Any, None]:
        raw_path = scope.get("raw_path")
        if raw_path and b"%" in raw_path and NEEDLESS.search(raw_path):
            # No server has this slug, so the answer is 404.
            slug, part = raw_path.decode("latin-1"), ""
        if slug == HEALTH_SLUG and not part:
            return responses.answer_health_check(scope, send)
        if slug == METRICS_SLUG and not part and metrics.may_read(scope):
            return metrics.answer_scrape(scope, send)
        if not part and streams and scope["method"] == "POST":
            plain = _plain_call(scope, receive, send, slug)
            if plain is not None:
                return plain.serve()
        request_handler = self._parts[part]
        return request_handler(
            scope, receive, send, slug, streams=streams
        ).answer_request()


def _plain_call(
    scope: Scope, receive: Receive, send: Send, slug: str
) -> PlainCall | None:
    """Return the plain call of a POST, None if its headers are not those of one."""
    pairs = scope["headers"]
    if type(pairs) is not list:
        # ASGI allows an iterator, which can be read only once.
        return None
    raw = dict(pairs)
    if PROBE in raw:
        return None
    if SESSION_HEADER in raw:
        call: PlainCall = SessionCall(scope, receive, send, slug)
    elif raw.get(b"mcp-method") == ENCODED_METHOD:
        call = StatelessCall(scope, receive, send, slug)
    else:
        return None
    return call if call.is_admitted(raw) else None


endpoint: Final = Endpoint(
    {"": EndpointHandler, SSE_PART: StreamHandler, MESSAGES_PART: MessagesHandler}
    | cards.HANDLERS
)
