"""Reading a request's body, with a limit that holds before the rest is read."""

from __future__ import annotations

from functools import lru_cache

from mcp_app.protocol.errors import Refused
from mcp_app.transports.asgi_types import Receive

_DIGITS = 18


class ClientGone(Exception):
    """The client left before its request was complete."""


async def read_body(receive: Receive, limit: int, announced: bytes | None) -> bytes:
    """Return the whole body; raise 413 as soon as it is known to be too large."""
    if announced is not None and _is_more(announced, limit):
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
def _is_more(announced: bytes, limit: int) -> bool:
    """Whether a Content-Length is beyond the limit, however many digits it has."""
    digits = announced.lstrip(b"0")
    return announced.isdigit() and (
        len(digits) > _DIGITS or int(digits or b"0") > limit
    )


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


def too_slow() -> Refused:
    return Refused(408, "The body did not come in time.", {"Connection": "close"})


def too_large(limit: int) -> Refused:
    return Refused(413, f"The body is larger than {limit} bytes.")
