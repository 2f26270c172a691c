"""`/mcp/health`: whether a load balancer may send requests to this process.

Anybody may ask, with any Host and Origin: the answer only says which part fails.  Who
speaks HTTP/1.1 names some Host.
"""

from __future__ import annotations

import logging
from typing import Final

from mcp_app.process.current import process
from mcp_app.process.health import FINE
from mcp_app.protocol import jsonrpc
from mcp_app.transports.asgi_types import RawHeaders, Scope, Send
from mcp_app.transports.http.responses import (
    JSON_HEADERS,
    OK,
    UNAVAILABLE,
    send_empty,
    send_json,
    send_whole,
    with_retry,
)

logger = logging.getLogger("mcp_app.transports")

ALLOW: RawHeaders = [(b"allow", b"GET, HEAD")]
UNCACHED: RawHeaders = [(b"cache-control", b"no-store")]
NOT_ALLOWED: Final = 405
BAD_REQUEST: Final = 400
WITHOUT_HOST: Final = ("1.0", "1")
"""The version of HTTP that knows of no Host (RFC 9112, section 3.2), and its name in
granian."""
SETTINGS: Final = "settings"
"""The process could not be started."""


async def answer(scope: Scope, send: Send) -> None:
    """Answer 200 if this process can serve, else 503.

    Without a Host the answer is 400, to other methods 405.
    """
    method: str = scope["method"]
    if not _has_host(scope):
        await send_empty(send, BAD_REQUEST, [])
        return
    if method not in ("GET", "HEAD"):
        await send_empty(send, NOT_ALLOWED, ALLOW)
        return
    failing = await _failing()
    status = OK if failing == FINE else UNAVAILABLE
    found = {"status": "ok"} if status == OK else {"status": "unavailable"}
    body = jsonrpc.write({**found, "failing": failing} if failing else found)
    headers = with_retry(status, UNCACHED)
    if method == "GET":
        await send_json(send, status, body, headers)
        return
    length = (b"content-length", b"%d" % len(body))
    await send_whole(send, status, b"", [*JSON_HEADERS, length, *headers])


def _has_host(scope: Scope) -> bool:
    """Whether the request has a Host, or needs none."""
    if scope.get("http_version") in WITHOUT_HOST:
        return True
    return any(name == b"host" and value for name, value in scope["headers"])


async def _failing() -> str:
    try:
        return await process().failing()
    except Exception:
        logger.exception("This process could not be started.")
        return SETTINGS
