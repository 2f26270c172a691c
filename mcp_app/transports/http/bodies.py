"""Reads a request's body and its JSON, and stops as soon as it is too large."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final, TypeAlias

from mcp_app.pools.large_work import large_work
from mcp_app.pools.turns import Owner
from mcp_app.process.quotas import NoRoom, Uploads
from mcp_app.process.runtime import Process
from mcp_app.protocol import envelope, jsonrpc
from mcp_app.protocol.envelope import Request, RequestId
from mcp_app.protocol.errors import ProtocolError, RequestRefused
from mcp_app.protocol.headers import is_json_type
from mcp_app.protocol.jsonrpc import ReadLimits
from mcp_app.transports.asgi_types import Receive


async def read_json(
    process: Process, body: bytes, owner: Owner, *, large: bool
) -> object:
    """Return the JSON value of a body; a thread reads it if it is `large`.

    Raises `ParseError`.
    """
    if large:
        return await large_work.run(owner, jsonrpc.read, body, process.read_limits)
    return jsonrpc.read(body, process.read_limits)


def is_large_body(process: Process, body: bytes) -> bool:
    """Whether a body has so many bytes or values that the loop must not read it.

    Commas and brackets in strings count, too: `server.coercion` may read strings.
    """
    size, limits = len(body), process.limits
    if size <= process.inline_bytes:
        # So few bytes cannot hold too many values: each has a byte and a separator.
        return False
    return size > limits.parse_in_thread or (
        sum(map(body.count, (b",", b"[", b"{"))) > limits.nodes_in_thread
    )


_DIGITS = 18
"""A longer number is beyond every limit, and `int` refuses thousands of digits."""

SMALL: Final = 16 * 1024
"""Bytes of a body that is read for its id alone."""
ID_S: Final = 1.0
"""Seconds that such a body may take to arrive."""

Hold: TypeAlias = Callable[[int], None]
"""Takes note of how many bytes of a body are held."""


class ClientGone(Exception):
    """The client left before its request was complete."""


async def read_body(
    receive: Receive, limit: int, announced: bytes | None, hold: Hold
) -> bytes:
    """Return the whole body; raise 413 as soon as it is known to be too large.

    `hold` is told how many bytes of a body in pieces have come, and 0 at its end.
    """
    if announced is not None and exceeds_limit(announced, limit):
        raise too_large(limit)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        return await _read_rest(receive, limit, body, hold)
    if len(body) > limit:
        raise too_large(limit)
    return body


@lru_cache(maxsize=128)
def exceeds_limit(announced: bytes, limit: int) -> bool:
    """Whether a Content-Length is beyond the limit, however many digits it has."""
    digits = announced.lstrip(b"0")
    return announced.isdigit() and (
        len(digits) > _DIGITS or int(digits or b"0") > limit
    )


async def read_request_id(
    receive: Receive,
    headers: Mapping[bytes, bytes],
    limits: ReadLimits,
    uploads: Uploads,
) -> RequestId | None:
    """Return the id of a request that is refused anyway; None if it cannot be read.

    Only a small JSON body of an announced length is read, only for a moment, and only
    while there is room for it.
    """
    length = headers.get(b"content-length", b"")
    media = headers.get(b"content-type", b"").decode("latin-1")
    if not length.isdigit() or exceeds_limit(length, SMALL) or not is_json_type(media):
        return None
    task = uploads.begin_upload(time.monotonic())
    try:
        with suppress(ProtocolError, ClientGone, TimeoutError, NoRoom):
            async with asyncio.timeout(ID_S):
                body = await read_body(receive, SMALL, length, uploads.hold_in_room)
            message = envelope.parse_message(jsonrpc.read(body, limits), lenient=True)
            return message.id if isinstance(message, Request) else None
    except asyncio.CancelledError:
        if not uploads.was_cancelled_here(task):
            raise
    finally:
        uploads.end_upload(task)
    return None


async def _read_rest(receive: Receive, limit: int, first: bytes, hold: Hold) -> bytes:
    # A list of pieces would take more memory than their bytes.
    body, has_more = bytearray(first), True
    try:
        while len(body) <= limit:
            if not has_more:
                return bytes(body)
            hold(len(body))
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message.get("body", b"")
            has_more = message.get("more_body", False)
        raise too_large(limit)
    finally:
        hold(0)
        # The traceback of an error keeps this frame, and its body, until the answer.
        body.clear()


def too_slow() -> RequestRefused:
    return RequestRefused(
        408,
        "The body did not arrive in time, or others needed its room.",
        {"Connection": "close"},
    )


def too_large(limit: int) -> RequestRefused:
    return RequestRefused(413, f"The body is larger than {limit} bytes.")
