"""Which messages the middleware checks, and by which revision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.middleware import AsgiMessage, Receive, Scope, Send, WireCheck

JSON = b"application/json"
SSE = b"text/event-stream; charset=utf-8"

TOOLS: dict[str, Any] = {"tools": []}
CACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def asked(method: str, request_id: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def answer(result: object, request_id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def event(message: object) -> bytes:
    return b"data: " + json.dumps(message).encode() + b"\n\n"


def initialized(version: str) -> dict[str, Any]:
    info = {"name": "drill", "version": "1"}
    return answer({"protocolVersion": version, "capabilities": {}, "serverInfo": info})


STATELESS_META: dict[str, Any] = {
    "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
}
LIST = asked("tools/list")
STATELESS_LIST = asked("tools/list", **STATELESS_META)
PROGRESS = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": 1, "progress": 1},
}


class Answering:
    """An ASGI application that reads the body and sends one prepared response."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        start = {"type": "http.response.start", "status": self.status}
        await send({**start, "headers": self.headers})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


class Client:
    """Posts to an endpoint behind the middleware."""

    def __init__(self) -> None:
        self.application = Answering()
        self.check = WireCheck(self.application)

    async def post(
        self,
        body: object,
        content_type: bytes,
        *pieces: bytes,
        session: str = "",
        opens: str = "",
        version: str = "",
        path: str = "/mcp",
        query: bytes = b"",
        method: str = "POST",
    ) -> list[str]:
        """Return the violations of the prepared answer."""
        self.application.headers = [(b"content-type", content_type)]
        if opens:
            self.application.headers.append((b"mcp-session-id", opens.encode()))
        self.application.pieces = list(pieces)
        headers = {"mcp-session-id": session, "mcp-protocol-version": version}
        scope: Scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query,
            "headers": [(k.encode(), v.encode()) for k, v in headers.items() if v],
        }
        before = len(self.check.violations)
        await self.check(scope, self._receiver(body), _sent)
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


# (request, content type, pieces of the answer, whether it is right)
STATELESS_ANSWERS: list[tuple[object, bytes, list[bytes], bool]] = [
    (STATELESS_LIST, JSON, [body(answer({**TOOLS, **CACHED}))], True),
    (STATELESS_LIST, JSON, [body(answer(TOOLS))], False),
    (STATELESS_LIST, SSE, [event(answer({**TOOLS, **CACHED}))], True),
    (STATELESS_LIST, SSE, [event(answer(TOOLS))], False),
    (STATELESS_LIST, SSE, [event(PROGRESS), event(answer(TOOLS))], False),
    (STATELESS_LIST, SSE, [event(asked("roots/list"))], False),
    (STATELESS_LIST, SSE, [b"data: {\ndata: }\n\n"], False),
    (STATELESS_LIST, SSE, [b"id: 1\ndata:\n\n", b": still here\n\n"], True),
    (STATELESS_LIST, JSON, [b"{", b"}"], False),
    (STATELESS_LIST, JSON, [b"no JSON"], False),
    (STATELESS_LIST, JSON, [b"[1]"], False),
    (STATELESS_LIST, b"text/plain", [b"no JSON"], True),
    (STATELESS_LIST, JSON, [], True),
]


@pytest.mark.parametrize(
    ("request_body", "content_type", "pieces", "right"), STATELESS_ANSWERS
)
async def test_stateless(
    client: Client,
    request_body: object,
    content_type: bytes,
    pieces: list[bytes],
    right: bool,
) -> None:
    violations = await client.post(request_body, content_type, *pieces)
    assert (violations == []) is right


async def test_unknown_version_header_is_stateless(client: Client) -> None:
    refused = {"code": -32022, "message": "No.", "data": {"requested": "v9"}}
    message = {"jsonrpc": "2.0", "id": 1, "error": refused}
    assert await client.post(LIST, JSON, body(message), version="v9")


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


async def test_a_session_that_was_closed_is_nobodys(client: Client) -> None:
    hello = body(initialized("2024-11-05"))
    await client.post(asked("initialize"), JSON, hello, opens="s")
    error = body({"jsonrpc": "2.0", "error": {"code": -32600, "message": "No."}})
    assert await client.post(b"", JSON, error, session="s", method="DELETE") != []
    client.application.status = 204
    assert await client.post(b"", JSON, session="s", method="DELETE") == []
    client.application.status = 404
    assert await client.post(b"", JSON, error, session="s", method="DELETE") == []


async def test_answer_may_come_on_another_stream_of_the_session(
    client: Client,
) -> None:
    hello = body(initialized("2025-11-25"))
    await client.post(asked("initialize"), JSON, hello, opens="s")
    assert await client.post(asked("tools/list", 7), SSE, session="s") == []
    late = event(answer({"tools": 0}, 7))
    assert await client.post(b"", SSE, late, session="s") != []


async def test_legacy_stream_is_known_by_its_endpoint(client: Client) -> None:
    await client.post(
        asked("initialize"), b"", path="/mcp/messages", query=b"session=1"
    )
    stream = [
        b"event: endpoint\ndata: /mcp/messages?session=1\n\n",
        event(initialized("2024-11-05")),
    ]
    assert await client.post(b"", SSE, *stream, path="/mcp/sse") == []
    wrong = [stream[0], event(answer({"protocolVersion": "2024-11-05"}))]
    assert await client.post(b"", SSE, *wrong, path="/mcp/sse") != []


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
async def test_unknown_session_allows_what_any_stateful_revision_allows(
    client: Client, version: str
) -> None:
    error = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "No."}}
    assert await client.post(b"{", JSON, body(error)) == []
    assert await client.post(b"{", JSON, body({**error, "id": None})) == []
    nameless = {"jsonrpc": "2.0", "error": {"code": -32700}}
    assert await client.post(b"{", JSON, body(nameless)) != []


@pytest.mark.parametrize("path", ["/mcp/health", "/admin/", "/mcpx", "/"])
async def test_other_paths_are_not_checked(client: Client, path: str) -> None:
    assert await client.post(LIST, JSON, b"{}", path=path) == []
    assert client.check.checked == 0


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/shop"])
async def test_endpoints_are_checked(client: Client, path: str) -> None:
    assert await client.post(LIST, JSON, b"{}", path=path) != []
    assert client.check.checked == 1


async def test_violations_are_reported_at_once() -> None:
    reported: list[str] = []
    client = Client()
    client.check = WireCheck(client.application, reported.append)
    await client.post(LIST, JSON, b"{}")
    assert reported == client.check.violations != []
