"""One conversation on each transport: the same messages, and answers in one shape."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final, Protocol

from django.http.response import HttpResponseBase
from django.test import Client as Browser

from mcp_app.interface.principal import Principal
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.transports.stdio.connection import Connection
from tests.asgi_client import CLIENT, EVERYTHING, Client, Visit, outcome
from tests.old_client import OldClient
from tests.serving import PATIENCE_S
from tests.wire.middleware import WireCheck
from tests.wire.validation import wire_validator

Message = dict[str, Any]
Answers = dict[Any, str]
"""By id (None: of no request), "result" or the text of the error."""

TRANSPORTS: Final = ("http", "sse", "stdio", "wsgi")


def initialize(version: str, number: Any = 1) -> Message:
    params = {
        "protocolVersion": version,
        "capabilities": EVERYTHING,
        "clientInfo": CLIENT,
    }
    return request("initialize", number, params)


def request(method: str, number: Any = 1, params: Message | None = None) -> Message:
    message: Message = {"jsonrpc": "2.0", "id": number, "method": method}
    return message if params is None else {**message, "params": params}


def notification(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def reply(number: Any) -> Message:
    return {"jsonrpc": "2.0", "id": number, "result": {}}


def stateless(method: str, number: Any = 1) -> Message:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return request(method, number, {"_meta": meta})


class Peer(Protocol):
    """A client that has connected, and has not said anything."""

    version: str

    async def says(self, value: Any, expected: int = 0) -> Answers:
        """Send a message or a batch; return the answers once so many are there.

        Where none is expected, none came before the answer to what was sent next.
        """

    async def begins(self, message: Message) -> None:
        """Send a request whose answer is not waited for."""

    async def leaves(self) -> None:
        """End all that is open."""


def answers_of(messages: list[Message]) -> Answers:
    answers: Answers = {}
    for each in messages:
        if "method" not in each:
            assert each.get("id") not in answers, messages
            failed = each.get("error")
            answers[each.get("id")] = failed["message"] if failed else "result"
    return answers


class HttpPeer:
    """Streamable HTTP: what a POST is answered with is the answer."""

    def __init__(self, application: WireCheck, version: str) -> None:
        self.version = version
        self._client = Client(application, version)
        self._running: list[Visit] = []

    async def says(self, value: Any, expected: int = 0) -> Answers:
        came = await self._client.sent(value, _headers(value))
        session = came.headers.get("mcp-session-id")
        self._client.session = session or self._client.session
        if not came.raw:
            assert came.status == 202
        return answers_of(came.messages)

    async def begins(self, message: Message) -> None:
        self._running.append(self._client.post(message))

    async def leaves(self) -> None:
        for each in self._running:
            await outcome(each)


def _headers(value: Any) -> dict[str, str]:
    """Return what a client of the stateless era says of a message."""
    if isinstance(value, dict) and "_meta" in value.get("params", {}):
        return {"mcp-protocol-version": "2026-07-28", "mcp-method": value["method"]}
    return {}


class SsePeer:
    """HTTP+SSE: a POST is accepted or refused; answers come on the stream."""

    def __init__(self, application: WireCheck, version: str) -> None:
        self.version = version
        self._client = OldClient(application, version)

    async def says(self, value: Any, expected: int = 0) -> Answers:
        await self._connected()
        accepted = await self._client.sent(value)
        assert (accepted.status == 202) is (accepted.raw == b"")
        messages = accepted.messages
        while len(messages) < expected:
            messages.append(await self._next_answer())
        return answers_of(messages)

    async def _next_answer(self) -> Message:
        while True:
            message = await self._client.stream.message()
            assert message is not None
            if "method" not in message:
                return message

    async def _connected(self) -> None:
        if not hasattr(self._client, "stream"):
            await self._client.connect()

    async def begins(self, message: Message) -> None:
        await self._connected()
        assert (await self._client.sent(message)).status == 202

    async def leaves(self) -> None:
        await self._client.leave()


class StdioPeer:
    """stdio: a line in, lines out; a batch of answers is one line."""

    def __init__(self, process: Process, version: str) -> None:
        self.version = version
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._connection = Connection(
            process, "default", Principal.ANONYMOUS, self._lines.put_nowait
        )
        self._process = process
        self._revision = "2025-11-25"
        """What an error is written in until `initialize` has agreed on another."""

    async def says(self, value: Any, expected: int = 0) -> Answers:
        await self._send(value)
        messages: list[Message] = []
        while len(answers_of(messages)) < expected:
            messages += await self._next()
        if not expected:
            # Had anything been answered, it would stand before this.
            await self._send(request("ping", "probe"))
            messages = await self._next()
            assert messages.pop()["id"] == "probe"
        return answers_of(messages)

    async def _send(self, value: Any) -> None:
        arrived = asyncio.get_running_loop().time()
        await self._connection.take(json.dumps(value).encode(), arrived)
        if isinstance(value, dict) and value.get("method") == "initialize":
            self._revision = self.version

    async def _next(self) -> list[Message]:
        async with asyncio.timeout(PATIENCE_S):
            value = json.loads(await self._lines.get())
        messages = value if isinstance(value, list) else [value]
        for each in messages:
            assert wire_validator(self._revision).check(each, method=None) == []
        return messages

    async def begins(self, message: Message) -> None:
        await self._send(message)

    async def leaves(self) -> None:
        for listener in self._process.listeners:
            listener.end()


class WsgiPeer:
    """Streamable HTTP under WSGI: each answer is one document."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._session: str | None = None
        self._running: list[asyncio.Task[HttpResponseBase]] = []

    async def says(self, value: Any, expected: int = 0) -> Answers:
        response = await self._post(value, _headers(value))
        self._session = response.headers.get("Mcp-Session-Id", self._session)
        content = getattr(response, "content", b"")
        if not content:
            assert response.status_code == 202
            return {}
        found = json.loads(content)
        return answers_of(found if isinstance(found, list) else [found])

    def _post(self, value: Any, headers: dict[str, str]) -> Any:
        headers = {
            "host": "localhost",
            "accept": "application/json, text/event-stream",
            **headers,
        }
        if self._session is not None:
            headers["mcp-session-id"] = self._session
            if REVISIONS[self.version].version_header:
                headers.setdefault("mcp-protocol-version", self.version)
        return asyncio.to_thread(
            Browser().post,
            "/mcp",
            json.dumps(value),
            content_type="application/json",
            headers=headers,
        )

    async def begins(self, message: Message) -> None:
        self._running.append(asyncio.create_task(self._post(message, {})))

    async def leaves(self) -> None:
        await asyncio.gather(*self._running)
