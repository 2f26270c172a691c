"""The floor: an ASGI callable that can only repeat one answer with another id.

It reads the whole body, parses it with orjson, and sends the bytes and headers
of the file that FLOOR_ANSWER names (written by `benchmarks.servers`). What a
server adds to this is what it costs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

Event = dict[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

_answer = json.loads(Path(os.environ["FLOOR_ANSWER"]).read_text())
BEFORE: bytes = _answer["before"].encode()
AFTER: bytes = _answer["after"].encode()
LOOPS = int(os.environ.get("FLOOR_LOOPS", "0"))
"""How often an empty loop runs for each request: the control of the benchmarks."""
HEADERS = [(name.encode(), value.encode()) for name, value in _answer["headers"]]


async def application(scope: Event, receive: Receive, send: Send) -> None:
    """Answer any HTTP request; servers take the assertion as "no lifespan"."""
    assert scope["type"] == "http"
    body = b""
    more = True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    for _ in range(LOOPS):
        pass
    answer = b"%b%d%b" % (BEFORE, orjson.loads(body)["id"], AFTER)
    headers = [*HEADERS, (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})
