"""What the middleware would overlook without anybody's notice."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any, Final

import pytest

from tests.drill.ports import free_port
from tests.drill.programs import Program
from tests.drill.running import START_S
from tests.drill.serve import WIRE_VIOLATED
from tests.wire.middleware import AsgiMessage, Receive, Scope, Send, WireCheck

JSON = b"application/json"
SSE = b"text/event-stream; charset=utf-8"

TOOLS: dict[str, Any] = {"tools": []}


def asked(method: str, request_id: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def answer(result: object, request_id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def event(message: object) -> bytes:
    return b"data: " + json.dumps(message).encode() + b"\n\n"


def initialized(version: str) -> dict[str, Any]:
    info = {"name": "drill", "version": "1"}
    return answer({"protocolVersion": version, "capabilities": {}, "serverInfo": info})


STATELESS_LIST = asked(
    "tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
)
PROGRESS = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": 1, "progress": 1},
}


class Answering:
    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        start = {"type": "http.response.start", "status": 200}
        await send({**start, "headers": self.headers})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


class Client:
    def __init__(self) -> None:
        self.application = Answering()
        self.reported: list[str] = []
        self.check = WireCheck(self.application, self.reported.append)

    async def post(
        self,
        body: object,
        content_type: bytes,
        *pieces: bytes,
        session: str = "",
        opens: str = "",
        path: str = "/mcp",
        query: bytes = b"",
    ) -> list[str]:
        self.application.headers = [(b"content-type", content_type)]
        if opens:
            self.application.headers.append((b"mcp-session-id", opens.encode()))
        self.application.pieces = list(pieces)
        scope: Scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": query,
            "headers": [(b"mcp-session-id", session.encode())] if session else [],
        }
        before = len(self.check.violations)
        await self.check(scope, self._receiver(body), _sent)
        assert self.reported == self.check.violations
        return self.check.violations[before:]

    def _receiver(self, body: object) -> Receive:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        rest: list[AsgiMessage] = [
            {"type": "http.request", "body": text[:5], "more_body": True},
            {"type": "http.request", "body": text[5:], "more_body": False},
        ]

        async def receive() -> AsgiMessage:
            return rest.pop(0)

        return receive


async def _sent(message: AsgiMessage) -> None:
    """Take the message as a server would."""


@pytest.fixture
def client() -> Client:
    return Client()


def body(message: object) -> bytes:
    return json.dumps(message).encode()


@pytest.mark.parametrize(
    ("content_type", "pieces"),
    [
        (JSON, [body(answer(TOOLS))]),
        (JSON, [b"{", b"}"]),
        (JSON, [b"no JSON"]),
        (JSON, [b"[1]"]),
        (SSE, [event(answer(TOOLS))]),
        (SSE, [event(PROGRESS), event(answer(TOOLS))]),
        (SSE, [event(asked("roots/list"))]),
        (SSE, [b"data: {\ndata: }\n\n"]),
    ],
)
async def test_wrong_answers(
    client: Client, content_type: bytes, pieces: list[bytes]
) -> None:
    assert await client.post(STATELESS_LIST, content_type, *pieces) != []


@pytest.mark.parametrize("path", ["/mcp/", "/mcp/shop"])
async def test_all_endpoints(client: Client, path: str) -> None:
    assert await client.post(STATELESS_LIST, JSON, b"{}", path=path) != []


async def test_session_keeps_its_revision(client: Client) -> None:
    hello = asked("initialize")
    old = body(initialized("2024-11-05"))
    assert await client.post(hello, JSON, old, opens="old") == []
    new = body(initialized("2025-11-25"))
    assert await client.post(hello, JSON, new, opens="new") == []
    audio = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
    call, called = asked("tools/call"), body(answer({"content": [audio]}))
    assert await client.post(call, JSON, called, session="new") == []
    assert await client.post(call, JSON, called, session="old") != []


async def test_answer_may_come_on_another_stream_of_the_session(client: Client) -> None:
    hello = body(initialized("2025-11-25"))
    await client.post(asked("initialize"), JSON, hello, opens="s")
    assert await client.post(asked("tools/list", 7), SSE, session="s") == []
    late = event(answer({"tools": 0}, 7))
    assert await client.post(b"", SSE, late, session="s") != []


async def test_legacy_stream_is_known_by_its_endpoint(client: Client) -> None:
    await client.post(
        asked("initialize"), b"", path="/mcp/messages", query=b"session=1"
    )
    wrong = [
        b"event: endpoint\ndata: /mcp/messages?session=1\n\n",
        event(answer({"protocolVersion": "2024-11-05"})),
    ]
    assert await client.post(b"", SSE, *wrong, path="/mcp/sse") != []


# A server whose application answers everything with no message at all.
FAULTY: Final = """
import sys
from tests.drill import serve

async def application(scope, receive, send):
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})

serve._application = lambda *_: application
sys.exit(serve.main())
"""


def test_a_server_of_the_drill_ends_with_what_it_sent_wrongly() -> None:
    port = free_port()
    environment = {"PORT": str(port), "SERVER": "uvicorn", "WIRE": "check"}
    with Program(
        [sys.executable, "-c", FAULTY], env={**os.environ, **environment}
    ) as server:
        server.wait_until(lambda: "Serving" in server.output, START_S)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/mcp", timeout=60):
            assert server.stop() == WIRE_VIOLATED
        assert "WIRE: GET /mcp" in server.output
