"""Whole answers, and the part of a request that a reply needs."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import lru_cache
from typing import Protocol

from mcp_app.process.queues import Queues
from mcp_app.protocol.headers import Accepts
from mcp_app.transports.asgi_types import Message, RawHeaders, Receive, Send

_JSON_HEADER = (b"content-type", b"application/json")
JSON_HEADERS: RawHeaders = [_JSON_HEADER]

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
    """Send a whole answer."""
    own = [_JSON_HEADER, _length(len(body)), *headers]
    return send_whole(send, status, body, own)


def json_start(body: bytes, headers: RawHeaders) -> Message:
    """Return the message that begins a whole answer of status 200."""
    own = [_JSON_HEADER, _length(len(body))]
    if headers:
        own += headers
    return {"type": "http.response.start", "status": OK, "headers": own}


@lru_cache(1_024)
def _length(size: int) -> tuple[bytes, bytes]:
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
    """Return the headers of an answer: 503 says when to come back."""
    return [RETRY_AFTER, *headers] if status == UNAVAILABLE else headers


def send_empty(send: Send, status: int, headers: RawHeaders) -> Awaitable[None]:
    """Send an answer without a body."""
    return send_whole(send, status, b"", [(b"content-length", b"0"), *headers])


class Connection(Protocol):
    """The part of a request that a reply needs."""

    receive: Receive
    send: Send
    started: bool
    """Whether the answer has begun, so that nothing else can be sent."""

    @property
    def cors(self) -> RawHeaders: ...
    @property
    def accepts(self) -> Accepts: ...
    @property
    def queues(self) -> Queues: ...

    def error_headers(self, status: int) -> RawHeaders:
        """Return the headers of an error with this status."""

    def watch(self) -> None:
        """Look after the reply for as long as it is open."""

    def dropped(self) -> None:
        """Count a message that cannot be sent to this client."""
