"""A client of HTTP+SSE (2024-11-05) inside the process: one stream, and POSTs."""

from __future__ import annotations

import json
from typing import Any

from tests.asgi_client import (
    Answer,
    JsonObject,
    Outcome,
    Params,
    Speaker,
    Visit,
    outcome,
)
from tests.wire.middleware import WireCheck


class OldClient(Speaker):
    """One session; `version` is what `initialize` asks for."""

    stream: Visit
    messages: str
    """Where messages are POSTed, as the first event said."""

    def __init__(
        self,
        application: WireCheck,
        version: str = "2024-11-05",
        *,
        path: str = "/mcp/sse",
        headers: JsonObject | None = None,
        capabilities: JsonObject | None = None,
    ) -> None:
        super().__init__(version, capabilities)
        self.application = application
        self._path = path
        self._headers = {"host": "localhost", **(headers or {})}
        self._answers: dict[str, JsonObject] = {}
        self.said: list[JsonObject] = []
        self._unheard: list[JsonObject] = []
        """The notifications that came, and the questions."""

    def visit(self, method: str, path: str, body: bytes = b"", **headers: str) -> Visit:
        named = {**self._headers, **headers}
        return Visit(self.application, method, path, list(named.items()), [body])

    async def connect(self) -> OldClient:
        self.stream = self.visit("GET", self._path, accept="text/event-stream")
        await self.stream.begun()
        assert self.stream.status == 200
        while not self.stream.endpoint:
            await self.stream._next()
        self.messages = self.stream.endpoint
        return self

    async def open(self) -> OldClient:
        await self.connect()
        await self.initialize()
        assert (await self.notify("notifications/initialized")).status == 202
        return self

    async def initialize(self, version: str | None = None) -> JsonObject:
        return (await self.request("initialize", self.hello(version))).result

    def post(self, message: object, **headers: str) -> Visit:
        body = json.dumps(message).encode()
        own = {"content-type": "application/json", "content-length": str(len(body))}
        return self.visit("POST", self.messages, body, **{**own, **headers})

    async def sent(self, message: object, **headers: str) -> Outcome:
        return await outcome(self.post(message, **headers))

    async def begin(self, method: str, params: Params = None, **more: Any) -> Any:
        message = self.message(method, params, **more)
        found = await self.sent(message)
        assert (found.status, found.raw) == (202, b""), (found.status, found.raw)
        return message["id"]

    async def request(self, method: str, params: Params = None, **more: Any) -> Outcome:
        return await self.answered(await self.begin(method, params, **more))

    async def begin_call(self, tool: str, /, **arguments: Any) -> Any:
        return await self.begin("tools/call", {"name": tool, "arguments": arguments})

    async def next(self) -> JsonObject | None:
        message = await self.stream.message()
        if message is not None and "method" in message:
            self.said.append(message)
            self._unheard.append(message)
        elif message is not None:
            key = json.dumps(message.get("id"))
            assert key not in self._answers, f"{key} was answered twice."
            self._answers[key] = message
        return message

    async def answered(
        self, request_id: object, answer: Answer | None = None
    ) -> Outcome:
        key = json.dumps(request_id)
        asked: list[JsonObject] = []
        while key not in self._answers:
            message = await self.next()
            assert message is not None, f"The stream ended before {key} was answered."
            if answer is not None and "method" in message and "id" in message:
                asked.append(message)
                found = answer(message["method"], message.get("params", {}))
                assert (await self.reply(message["id"], found)).status == 202
        messages = [self._answers[key]]
        return Outcome(200, self.stream.headers, messages, b"", asked)

    async def told(self, method: str) -> JsonObject:
        """Wait for a notification, or a question, of this method.

        It may have come before the answer to what made it come.
        """
        while True:
            for each in self._unheard:
                if each["method"] == method:
                    self._unheard.remove(each)
                    return each
            message = await self.next()
            assert message is not None, f"The stream ended before {method} came."

    async def ended(self) -> None:
        while await self.next() is not None:
            continue

    async def leave(self) -> None:
        await self.stream.leave()
