"""A session of HTTP+SSE with processes, its stream read in a thread."""

from __future__ import annotations

from copy import copy
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from tests.process.streaming import (
    EVENTS,
    INITIALIZED,
    JSON,
    STATEFUL,
    Answer,
    JsonObject,
    encoded,
    hello,
)
from tests.wire.events import EventReader


class OldSession:
    """Its stream is at one process; what it POSTs goes `at` any."""

    def __init__(self, url: str, version: str = STATEFUL) -> None:
        self._url = url
        self._ids = count(1)
        self.stream = Answer(f"{url}/sse", "GET", {"Accept": EVENTS})
        self.stream.until(lambda each: b"\n\n" in each.raw)
        first, *_ = EventReader().feed(self.stream.raw)
        assert first.name == "endpoint"
        self._query = urlsplit(first.data[0]).query
        answer = self.answer(self.request("initialize", **hello(version)))
        assert answer["result"]["protocolVersion"] == version
        assert self.send(INITIALIZED).status == 202

    def at(self, url: str) -> OldSession:
        elsewhere = copy(self)
        elsewhere._url = url
        return elsewhere

    def send(self, body: bytes) -> Answer:
        url = f"{self._url}/messages?{self._query}"
        return Answer(url, "POST", JSON, body).whole()

    def say(self, message: JsonObject) -> None:
        sent = self.send(encoded(**message))
        assert (sent.status, sent.raw) == (202, b""), (sent.status, sent.raw)

    def request(self, method: str, **params: Any) -> int:
        number = next(self._ids)
        self.say({"id": number, "method": method, "params": params})
        return number

    def called(self, tool: str, **arguments: Any) -> int:
        return self.request("tools/call", name=tool, arguments=arguments)

    def told(self, method: str, times: int = 1) -> JsonObject:
        """Wait for a notification or a question, the last one of so many."""

        def found(answer: Answer) -> list[JsonObject]:
            return [each for each in answer.messages if each.get("method") == method]

        self.stream.until(lambda answer: len(found(answer)) >= times)
        return found(self.stream)[times - 1]

    def answers(self, request_id: int) -> list[JsonObject]:
        return [
            each
            for each in self.stream.messages
            if each.get("id") == request_id and "method" not in each
        ]

    def answer(self, request_id: int) -> JsonObject:
        self.stream.until(lambda _: self.answers(request_id))
        (answer,) = self.answers(request_id)
        return answer

    def text(self, request_id: int) -> str:
        text: str = self.answer(request_id)["result"]["content"][0]["text"]
        return text

    def close(self) -> None:
        self.stream.leave()
