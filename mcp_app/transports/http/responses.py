"""Answers that are sent whole, reasons of refusals, and the health check."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable
from functools import lru_cache
from typing import Final, Protocol

from mcp_app.audit.turned_away import Reason
from mcp_app.process.current import process
from mcp_app.process.heartbeat import FINE
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import (
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    ProtocolError,
    RequestRefused,
    UnsupportedProtocolVersion,
)
from mcp_app.protocol.headers import Accepts
from mcp_app.transports.asgi_types import Message, RawHeaders, Receive, Scope, Send

# -- refusals --------------------------------------------------------------------------
# Why a request was refused, in one word, so that staff can find the cause.

AGENT: Final = b"user-agent"
CHALLENGE: Final = "WWW-Authenticate"

_STATUSES: Final = {
    400: Reason.HEADERS,
    401: Reason.NOBODY,
    403: Reason.ORIGIN,
    404: Reason.SESSION,
    405: Reason.METHOD,
    406: Reason.ACCEPT,
    408: Reason.SLOW,
    413: Reason.BODY,
    415: Reason.CONTENT_TYPE,
    421: Reason.HOST,
    429: Reason.TOO_MANY,
    431: Reason.HEADERS_SIZE,
    500: Reason.FAILED,
    503: Reason.UNAVAILABLE,
}
_ERRORS: Final[tuple[tuple[type[ProtocolError], Reason], ...]] = (
    (ParseError, Reason.JSON),
    (HeaderMismatch, Reason.HEADERS),
    (UnsupportedProtocolVersion, Reason.VERSION),
    (InvalidRequest, Reason.MESSAGE),
    (MethodNotFound, Reason.MESSAGE),
    (InvalidParams, Reason.MESSAGE),
)


def reason_of(error: ProtocolError, *, at_server: bool) -> Reason:
    """Return why a request was refused; `at_server` says that its server exists."""
    status = error.http_status
    # Errors of JSON-RPC share the statuses 200 and 400: their class tells the reason.
    if isinstance(error, RequestRefused) or status not in (200, 400):
        # A challenge has an error only if there was a token (RFC 6750, 3.1).
        if "error=" in error.headers.get(CHALLENGE, ""):
            return Reason.CREDENTIALS
        if status == 404 and not at_server:  # noqa: PLR2004 - RFC 9110
            return Reason.SERVER
        return _STATUSES.get(status, Reason.OTHER)
    reasons = (reason for kind, reason in _ERRORS if isinstance(error, kind))
    return next(reasons, Reason.OTHER)


def client_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the client's name from its headers, "" if there is none."""
    agents = (value for name, value in headers if name == AGENT)
    return next(agents, b"").decode("latin-1")


_JSON_HEADER = (b"content-type", b"application/json")

PAGE_FOR_PEOPLE = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><title>MCP server</title>'
    b"<p>This is the address of a server for programs that speak the Model Context"
    b" Protocol (MCP), such as Claude or Cursor; a browser finds nothing here.</p>"
    b"<p>If you want to use it, add this address to such a program.</p>"
    b"<p>Whether it is for you, and how to sign in, the people who run this site can"
    b" say.</p></html>"
)
PAGE_HEADERS: RawHeaders = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-length", b"%d" % len(PAGE_FOR_PEOPLE)),
    (b"content-security-policy", b"default-src 'none'"),
]

OK = 200
UNAVAILABLE = 503
RETRY_AFTER = (b"retry-after", b"2")


def send_json(
    send: Send, status: int, body: bytes, headers: RawHeaders
) -> Awaitable[None]:
    all_headers = [_JSON_HEADER, _length_header(len(body)), *headers]
    return send_whole(send, status, body, all_headers)


def json_start(body: bytes, headers: RawHeaders) -> Message:
    """Return the message that begins a whole answer of status 200."""
    all_headers = [_JSON_HEADER, _length_header(len(body))]
    if headers:
        all_headers += headers
    return {"type": "http.response.start", "status": OK, "headers": all_headers}


@lru_cache(1_024)
def _length_header(size: int) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % size


async def send_whole(send: Send, status: int, body: bytes, headers: RawHeaders) -> None:
    """Send an answer with exactly these headers."""
    start = {"type": "http.response.start", "status": status, "headers": headers}
    try:
        await send(start)
        await send({"type": "http.response.body", "body": body})
    except OSError:
        # The client has left.
        return


def with_retry(status: int, headers: RawHeaders) -> RawHeaders:
    """Return the headers of an answer; with status 503 they have Retry-After."""
    return [RETRY_AFTER, *headers] if status == UNAVAILABLE else headers


def send_empty(send: Send, status: int, headers: RawHeaders) -> Awaitable[None]:
    return send_whole(send, status, b"", [(b"content-length", b"0"), *headers])


class Connection(Protocol):
    """The part of a request that a reply needs."""

    process: Process
    receive: Receive
    send: Send
    started: bool
    """Whether the answer has begun, so that nothing else can be sent."""

    @property
    def cors(self) -> RawHeaders: ...
    @property
    def accepts(self) -> Accepts: ...

    def error_headers(self, status: int) -> RawHeaders:
        """Return the headers of an error with this status."""


# -- health ----------------------------------------------------------------------------
# `/mcp/health`: whether a load balancer may send requests to this process.
#
# Anybody may ask, with any Host and Origin: the answer only says which part fails.  An
# HTTP/1.1 request must have a Host.

logger = logging.getLogger("mcp_app.transports")

ALLOW: RawHeaders = [(b"allow", b"GET, HEAD")]
UNCACHED: RawHeaders = [(b"cache-control", b"no-store")]
NOT_ALLOWED: Final = 405
BAD_REQUEST: Final = 400
WITHOUT_HOST: Final = ("1.0", "1")
"""HTTP/1.0 requires no Host (RFC 9112, section 3.2); granian calls it "1"."""
SETTINGS: Final = "settings"
"""The process could not be started."""


async def answer_health_check(scope: Scope, send: Send) -> None:
    """Answer 200 if this process can serve, else 503.

    Without a Host the answer is 400; to methods other than GET and HEAD it is 405.
    """
    method: str = scope["method"]
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if not any(hosts) and scope.get("http_version") not in WITHOUT_HOST:
        await send_empty(send, BAD_REQUEST, [])
        return
    if method not in ("GET", "HEAD"):
        await send_empty(send, NOT_ALLOWED, ALLOW)
        return
    try:
        failing = await process().failing_part()
    except Exception:
        logger.exception("This process could not be started.")
        failing = SETTINGS
    status = OK if failing == FINE else UNAVAILABLE
    report = {"status": "ok"} if status == OK else {"status": "unavailable"}
    body = jsonrpc.write({**report, "failing": failing} if failing else report)
    headers = with_retry(status, UNCACHED)
    if method == "GET":
        await send_json(send, status, body, headers)
        return
    all_headers = [_JSON_HEADER, _length_header(len(body)), *headers]
    await send_whole(send, status, b"", all_headers)
