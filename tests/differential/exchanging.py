"""Sends requests to an ASGI application; reduces its answers to what is compared."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests.differential.generating import SESSION, Exchange, Step
from tests.wire.events import EventReader
from tests.wire.middleware import Application, AsgiMessage

JsonObject: TypeAlias = dict[str, Any]

PATIENCE_S: Final = 60.0
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
CACHE: Final = ("ttlMs", "cacheScope")
FREE: Final = ("serverInfo", "instructions", "capabilities", "supportedVersions")
"""What a server says of itself, which each may say as it likes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is compared of a response.

    `messages` are normalised. The kind of the body is not compared: each side may
    answer with JSON or with a stream, and theirs does as it was told.
    """

    status: int
    messages: list[Any] = field(default_factory=list)

    def without_notifications(self) -> Answer:
        """Return the answer alone."""
        return Answer(self.status, [m for m in self.messages if not _is_told(m)])

    @property
    def code(self) -> int | None:
        """The code of the error, where the answer is one."""
        last = self.last
        return last["error"].get("code") if "error" in last else None

    @property
    def result(self) -> JsonObject | None:
        """The result, where the answer is one."""
        last = self.last
        return last.get("result")

    @property
    def last(self) -> JsonObject:
        """The last message; {} where there is none, or a batch."""
        found = self.messages[-1] if self.messages else {}
        return found if isinstance(found, dict) else {}


def _is_told(message: Any) -> bool:
    return isinstance(message, dict) and "method" in message


class Side:
    """One of the two servers, with the session of the exchange."""

    def __init__(self, application: Application, path: str) -> None:
        self._application = application
        self._path = path
        self._session: str | None = None

    def begin(self) -> None:
        """Forget the session of the exchange before."""
        self._session = None

    async def answer(self, step: Step) -> Answer:
        """Send the request, and wait for all of the answer."""
        headers = {
            name: (self._session or "") if value == SESSION else value
            for name, value in step.headers.items()
            if value != SESSION or self._session is not None
        }
        status, answered, body = await self._send(step.method, headers, step.body)
        self._session = answered.get("mcp-session-id", self._session)
        messages = _messages(answered.get("content-type", ""), body)
        return Answer(int(status), [normalised(each) for each in messages])

    async def _send(
        self, method: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        sent: list[AsgiMessage] = []
        left = asyncio.Event()
        pieces = [body]

        async def receive() -> AsgiMessage:
            if pieces:
                return {
                    "type": "http.request",
                    "body": pieces.pop(),
                    "more_body": False,
                }
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: AsgiMessage) -> None:
            sent.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                left.set()

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1"))
                for name, value in headers.items()
            ],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 80),
        }
        async with asyncio.timeout(PATIENCE_S):
            await self._application(scope, receive, send)
        start, *parts = sent
        named = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in start["headers"]
        }
        return start["status"], named, b"".join(part["body"] for part in parts)


async def answers(exchange: Exchange, *sides: Side) -> list[list[Answer]]:
    """Return the answers of each side to each step.

    An answer of JSON has no room for notifications: where the official SDK is told to
    give such answers, they are not compared.
    """
    for side in sides:
        side.begin()
    found = [[await side.answer(step) for side in sides] for step in exchange.steps]
    if exchange.streams:
        return found
    return [[each.without_notifications() for each in step] for step in found]


def _messages(content_type: str, body: bytes) -> list[Any]:
    kind = content_type.partition(";")[0].strip()
    if kind == "text/event-stream":
        events = EventReader().feed(body)
        return [json.loads(each.data[0]) for each in events if each.data[0]]
    if kind == "application/json" and body:
        return [json.loads(body)]
    return []


def normalised(message: Any) -> Any:
    """Return a message without what each side may say as it likes.

    These are the words of errors, what is said beside a code, the words in which a
    tool's failure is told, what a server says of itself, how long what it says may be
    kept, and the titles that a schema is given.
    """
    if isinstance(message, list):
        return [normalised(each) for each in message]
    if "error" in message:
        return {"id": message.get("id"), "error": {"code": message["error"]["code"]}}
    if "result" in message:
        return {"id": message["id"], "result": _result(message["result"])}
    return {name: value for name, value in message.items() if name != "jsonrpc"}


def _result(result: JsonObject) -> JsonObject:
    found: JsonObject = {
        name: "said" if name in (*FREE, *CACHE) else value
        for name, value in result.items()
        if name not in ("instructions", "_meta")
    }
    meta = {k: v for k, v in result.get("_meta", {}).items() if k != SERVER_INFO}
    if meta:
        found["_meta"] = meta
    if "content" in found:
        found.update(_called(found))
    if "tools" in found:
        found["tools"] = [_tool(each) for each in found["tools"]]
    if "prompts" in found:
        found["prompts"] = [_prompt(each) for each in found["prompts"]]
    return {k: v for k, v in found.items() if (k, v) != ("isError", False)}


def _called(result: JsonObject) -> JsonObject:
    if result.get("isError"):
        return {"content": [block["type"] for block in result["content"]]}
    return {"content": [_block(block) for block in result["content"]]}


def _block(block: JsonObject) -> JsonObject:
    """JSON in a text may be written with or without spaces."""
    if block.get("text", "").startswith("{"):
        return {**block, "text": json.loads(block["text"])}
    return block


def _tool(tool: JsonObject) -> JsonObject:
    return {
        name: _schema(value) if name.endswith("Schema") else value
        for name, value in tool.items()
    }


def _prompt(prompt: JsonObject) -> JsonObject:
    """No arguments may be said or left out."""
    return {k: v for k, v in prompt.items() if (k, v) != ("arguments", [])}


def _schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: (
            {key: _schema(each) for key, each in value.items()}
            if name == "properties"
            else _schema(value)
        )
        for name, value in schema.items()
        if name not in ("title", "$schema", "description", "additionalProperties")
    }
