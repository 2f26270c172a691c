"""Reading a body: its limit holds before the rest is read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from mcp_app.protocol.errors import Refused
from mcp_app.transports.asgi_types import Message
from mcp_app.transports.bodies import ClientGone, read_body

LIMIT: Final = 10


def receiving(
    *pieces: bytes | None,
) -> tuple[Callable[[], Awaitable[Message]], list[Message]]:
    """Return a `receive` and what is left of its messages; None is a disconnect."""
    messages: list[Message] = [
        {"type": "http.disconnect"}
        if piece is None
        else {"type": "http.request", "body": piece, "more_body": True}
        for piece in pieces
    ]
    if pieces and pieces[-1] is not None:
        del messages[-1]["more_body"]

    async def receive() -> Message:
        return messages.pop(0)

    return receive, messages


WHOLE: Final[list[tuple[list[bytes], bytes]]] = [
    ([b""], b""),
    ([b"1234567890"], b"1234567890"),
    ([b"12345", b"67890"], b"1234567890"),
    ([b"", b"1", b"", b"2", b""], b"12"),
]


@pytest.mark.parametrize(("pieces", "body"), WHOLE)
@pytest.mark.parametrize("announced", [None, b"10", b"000010", b"x", b"-1", b""])
async def test_read(pieces: list[bytes], body: bytes, announced: bytes | None) -> None:
    receive, left = receiving(*pieces)
    assert await read_body(receive, LIMIT, announced) == body
    assert left == []


TOO_LARGE: Final[list[tuple[list[bytes], bytes | None, int]]] = [
    # pieces, Content-Length, how many pieces are not read
    ([b"12345678901"], None, 0),
    ([b"12345678901"], b"3", 0),
    ([b"12345", b"678901"], None, 0),
    ([b"12345678901", b"1", b"2"], None, 2),
    ([b"123456", b"123456", b"1", b"2"], None, 2),
    ([b"1"], b"11", 1),
    ([b"1"], b"9" * 30, 1),
    ([b"1"], b"9" * 5000, 1),
]


@pytest.mark.parametrize(("pieces", "announced", "unread"), TOO_LARGE)
async def test_too_large(
    pieces: list[bytes], announced: bytes | None, unread: int
) -> None:
    receive, left = receiving(*pieces)
    with pytest.raises(Refused, match="10 bytes") as caught:
        await read_body(receive, LIMIT, announced)
    assert caught.value.http_status == 413
    assert len(left) == unread


@pytest.mark.parametrize("pieces", [[None], [b"12", None], [b"12", b"34", None]])
async def test_a_client_that_leaves(pieces: list[bytes | None]) -> None:
    receive, _ = receiving(*pieces)
    with pytest.raises(ClientGone):
        await read_body(receive, LIMIT, b"10")
