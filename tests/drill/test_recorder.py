"""What is recorded of the calls of clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.drill.recorder import Recorder

CALL = (
    '{"id": %d, "method":"tools/call",'
    '"params":{"name":"drill_add","_meta":{"progressToken":%d}}}'
)


async def application(scope: Any, receive: Any, send: Any) -> None:
    body = b""
    while (message := await receive()).get("more_body"):
        body += message["body"]
    await send(body + message["body"])


async def test_each_way_to_write_a_call_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    recorder = Recorder(application, str(path))

    async def sent(body: str, session: str, **more: str) -> None:
        named = {"mcp-session-id": session} if session else {}
        headers = {"host": "127.0.0.1:81", **named, **more}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        pieces = iter(
            [
                {"body": body[:9].encode(), "more_body": True},
                {"body": body[9:].encode()},
            ]
        )

        async def receive() -> Any:
            return next(pieces)

        async def send(received: Any) -> None:
            assert received == body.encode()

        await recorder({"type": "http", "headers": pairs}, receive, send)

    for number in range(3):
        await sent(CALL % (number, number), f"session {number}")
    await sent(CALL.replace("%d", '"%d"', 1) % (1, 1), "x", authorization="Bearer y")
    await sent('{"id":1,"method":"tools/list"}', "x")
    await sent(CALL.replace("add", "odd") % (1, 1), "x")
    await sent(CALL % (1, 1), "")
    lines = [json.loads(each) for each in path.read_text().splitlines()]
    usual = [["host", "localhost"], ["mcp-session-id", "SESSION"]]
    assert lines == [
        {"headers": usual, "body": CALL % (7, 7)},
        {
            "headers": [*usual, ["authorization", "Bearer TOKEN"]],
            "body": CALL.replace("%d", '"seven"', 1) % 7,
        },
    ]
