"""Whole answers: their headers, and clients that have left."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.transports.http.responses import send_empty, send_json, with_retry

OWN = (b"vary", b"origin")


class Client:
    """Takes what is sent."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    async def send(self, message: Any) -> None:
        self.messages.append(message)


async def test_json_says_its_length_in_bytes() -> None:
    client = Client()
    body = '{"a":"é"}'.encode()
    await send_json(client.send, 202, body, [OWN])
    start, whole = client.messages
    assert start["status"] == 202
    assert start["headers"] == [
        (b"content-type", b"application/json"),
        (b"content-length", b"10"),
        OWN,
    ]
    assert whole["body"] == body


async def test_an_answer_without_a_body() -> None:
    client = Client()
    await send_empty(client.send, 202, [OWN])
    start, whole = client.messages
    assert start["headers"] == [(b"content-length", b"0"), OWN]
    assert whole["body"] == b""


async def test_a_client_that_has_left_is_told_nothing() -> None:
    async def gone(_message: Any) -> None:
        raise OSError

    await send_json(gone, 200, b"{}", [])


@pytest.mark.parametrize(("status", "retry"), [(200, False), (503, True), (500, False)])
def test_whoever_is_to_come_back_is_told_when(status: int, retry: bool) -> None:
    headers = with_retry(status, [OWN])
    assert headers == ([(b"retry-after", b"2"), OWN] if retry else [OWN])
