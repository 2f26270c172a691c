"""Reads a request's body, and stops as soon as it is too large."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final

from mcp_app.protocol import envelope, jsonrpc
from mcp_app.protocol.envelope import Request, RequestId
from mcp_app.protocol.errors import ProtocolError, RequestRefused
from mcp_app.protocol.headers import is_json
from mcp_app.protocol.jsonrpc import ReadLimits
from mcp_app.transports.asgi_types import Receive

_DIGITS = 18

SMALL: Final = 16 * 1024
"""Bytes of a body that is read for its id alone."""
ID_S: Final = 1.0
"""Seconds that such a body may take to arrive."""


class ClientGone(Exception):
    """The client left before its request was complete."""


async def read_body(receive: Receive, limit: int, announced: bytes | None) -> bytes:
    """Return the whole body; raise 413 as soon as it is known to be too large."""
    if announced is not None and is_more(announced, limit):
        raise too_large(limit)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        return await _read_rest(receive, limit, body)
    if len(body) > limit:
        raise too_large(limit)
    return body


@lru_cache(maxsize=128)
def is_more(announced: bytes, limit: int) -> bool:
    """Whether a Content-Length is beyond the limit, however many digits it has."""
    digits = announced.lstrip(b"0")
    return announced.isdigit() and (
        len(digits) > _DIGITS or int(digits or b"0") > limit
    )


async def read_id(
    receive: Receive, headers: Mapping[bytes, bytes], limits: ReadLimits
) -> RequestId | None:
    """Return the id of a request that is refused anyway; None if it cannot be read.

    Only a small JSON body of an announced length is read, and only for a moment.
    """
    length = headers.get(b"content-length", b"")
    media = headers.get(b"content-type", b"").decode("latin-1")
    if not length.isdigit() or is_more(length, SMALL) or not is_json(media):
        return None
    with suppress(ProtocolError, ClientGone, TimeoutError):
        async with asyncio.timeout(ID_S):
            body = await read_body(receive, SMALL, length)
        message = envelope.parse(jsonrpc.read(body, limits), lenient=True)
        return message.id if isinstance(message, Request) else None
    return None


async def _read_rest(receive: Receive, limit: int, first: bytes) -> bytes:
    parts, size, more = [first], len(first), True
    while more:
        if size > limit:
            raise too_large(limit)
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = message.get("more_body", False)
    if size > limit:
        raise too_large(limit)
    return b"".join(parts)


def too_slow() -> RequestRefused:
    return RequestRefused(
        408, "The body did not arrive in time.", {"Connection": "close"}
    )


def too_large(limit: int) -> RequestRefused:
    return RequestRefused(413, f"The body is larger than {limit} bytes.")
