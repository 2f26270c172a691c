"""An ASGI application that answers the benchmark's call, and lies as LIE says.

It lies once in a hundred answers, so that only a check of every answer sees it.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

Event = dict[str, Any]

SUM = {"content": [{"type": "text", "text": "5"}], "structuredContent": {"result": 5}}
WRONG_SUM = {**SUM, "structuredContent": {"result": 6}}

_numbers = itertools.count(1)
_earlier: list[int] = []


async def application(
    scope: Event,
    receive: Callable[[], Awaitable[Event]],
    send: Callable[[Event], Awaitable[None]],
) -> None:
    """Answer any POST with the sum of 2 and 3."""
    assert scope["type"] == "http"
    event = await receive()
    identifier = json.loads(event["body"])["id"]
    lie = os.environ["LIE"] if next(_numbers) % 100 == 0 else ""
    if lie == "exception":
        raise ConnectionError
    body = json.dumps(_message(identifier, lie)).encode()
    _earlier[:] = [identifier]
    headers = [(b"content-length", b"%d" % len(body))]
    status = 500 if lie == "status" else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _message(identifier: int, lie: str) -> Event:
    if lie == "answered before":
        identifier = _earlier[0]
    return {
        "jsonrpc": "2.0",
        "id": identifier,
        "result": WRONG_SUM if lie == "sum" else SUM,
    }
