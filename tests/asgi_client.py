"""A client inside the process: it drives the ASGI application, request by request.

Bodies go in pieces, answers come in pieces, and the client may leave at any moment.
The application that it drives is a `WireCheck`: no test can skip the validation of
what the server sends.  The exceptions are where the messages are judged, in
`tests/wire/validation.py`.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeAlias

from mcp_app.protocol.revisions import LATEST, REVISIONS, Revision
from tests.secrecy import look_at_answer
from tests.wire.events import EventReader
from tests.wire.middleware import AsgiMessage, WireCheck

JsonObject: TypeAlias = dict[str, Any]
Params: TypeAlias = JsonObject | None
HeaderChanges: TypeAlias = Mapping[str, str | Sequence[str] | None]
"""None takes a header away, a list sends it several times."""

PATIENCE_S: Final = 60.0
PREFIX: Final = "io.modelcontextprotocol/"
CLIENT: Final[JsonObject] = {"name": "drill-client", "version": "1.0"}
EVERYTHING: Final[JsonObject] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}
BASE_HEADERS: Final[Mapping[str, str]] = {
    "host": "localhost",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}
NAMED_BY: Final = {
    **{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"},
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
    **dict.fromkeys(("events/poll", "events/stream"), "name"),
}


class Visit:
    """One HTTP request with its response, which is read as it comes."""

    def __init__(
        self,
        application: WireCheck,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]],
        pieces: Sequence[bytes] = (b"",),
        *,
        complete: bool = True,
    ) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.raw = b""
        self.comments = 0
        """How many heartbeats came."""
        self.endpoint = ""
        """What the first event of HTTP+SSE said."""
        self.ids: list[str] = []
        """The ids of the events that came, of one without a message, too."""
        self.ended = False
        self._check = application
        self._pieces = deque(pieces)
        self._complete = complete
        self._gone = asyncio.Event()
        self._went_on = asyncio.Event()
        self._sent: asyncio.Queue[AsgiMessage | None] = asyncio.Queue()
        self._events = EventReader()
        self._messages: deque[JsonObject] = deque()
        self.stalled = asyncio.Event()
        """While it is set, the reader takes what is sent to it."""
        self.stalled.set()
        where, _, query = path.partition("?")
        self.scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": where,
            "raw_path": where.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "scheme": "http",
            "headers": [(n.encode("latin-1"), v.encode("latin-1")) for n, v in headers],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 80),
        }
        self.task = asyncio.create_task(self._served())

    async def _served(self) -> None:
        try:
            await self._check(self.scope, self._receive, self._send)
        finally:
            self._sent.put_nowait(None)

    def goes_on(self, body: bytes) -> None:
        self._pieces.append(body)
        self._complete = True
        self._went_on.set()

    async def _receive(self) -> AsgiMessage:
        if not self._pieces and not self._complete:
            await self._went_on.wait()
        if self._pieces:
            body = self._pieces.popleft()
            more = bool(self._pieces) or not self._complete
            return {"type": "http.request", "body": body, "more_body": more}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        await self.stalled.wait()
        if self._gone.is_set():
            raise OSError("The client has left.")
        self._sent.put_nowait(message)

    @property
    def unread(self) -> int:
        """How many pieces of the body the server has not taken."""
        return len(self._pieces)

    async def leave(self) -> None:
        """Close the connection, and wait until the server is done with it."""
        self._gone.set()
        self._went_on.set()
        await self.done()

    async def done(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait([self.task])
        if not self.task.cancelled():
            await self.task

    async def begun(self) -> Visit:
        while not self.status:
            await self._next()
        return self

    async def body(self) -> bytes:
        await self.begun()
        # Heartbeats come for ever.
        async with asyncio.timeout(PATIENCE_S):
            while not self.ended:
                await self._next()
        await self.done()
        return self.raw

    async def json(self) -> Any:
        body = await self.body()
        assert self.headers["content-type"] == "application/json", self.headers
        return json.loads(body)

    async def message(self) -> JsonObject | None:
        async with asyncio.timeout(PATIENCE_S):
            while not self._messages and not self.ended:
                await self._next()
        return self._messages.popleft() if self._messages else None

    async def messages(self) -> list[JsonObject]:
        await self.body()
        if self.headers.get("content-type") == "application/json":
            value = json.loads(self.raw)
            return value if isinstance(value, list) else [value]
        found, self._messages = list(self._messages), deque()
        return found

    async def opened(self) -> Visit:
        while not self.raw:
            await self._next()
        return self

    async def comment(self) -> None:
        before = self.comments
        while self.comments == before and not self.ended:
            await self._next()
        assert self.comments > before, "The stream ended without a heartbeat."

    async def quiet(self) -> None:
        """Let the server work off what it has to say at once; nothing must come."""
        for _ in range(20):
            await asyncio.sleep(0.001)
        while not self._sent.empty():
            await self._next()
        assert not self._messages, list(self._messages)

    async def _next(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            part = await self._sent.get()
        assert not self._check.violations, self._check.violations
        if part is None:
            self.ended = True
            await self.done()
            assert self.status, "The application returned without a response."
        elif part["type"] == "http.response.start":
            self.status, pairs = part["status"], part["headers"]
            self.headers = {n.decode("latin-1"): v.decode("latin-1") for n, v in pairs}
            assert len(self.headers) == len(pairs), pairs
        else:
            self._take(part.get("body", b""))
            self.ended = not part.get("more_body", False)
            if self.ended:
                look_at_answer(self.status, self.headers, self.raw)

    def _take(self, piece: bytes) -> None:
        self.raw += piece
        if self.headers.get("content-type") != "text/event-stream":
            return
        self.comments += sum(line.startswith(b":") for line in piece.split(b"\n"))
        for event in self._events.feed(piece):
            if event.id is not None:
                self.ids.append(event.id)
            if event.data == [""]:
                continue
            if event.name == "endpoint":
                assert not self.endpoint, "There were two endpoint events."
                (self.endpoint,) = event.data
                continue
            value = json.loads(event.data[0])
            self._messages.extend(value if isinstance(value, list) else [value])


@dataclass(slots=True)
class Outcome:
    status: int
    headers: Mapping[str, str]
    messages: list[JsonObject]
    raw: bytes
    questions: list[JsonObject] = field(default_factory=list)
    """What the client was asked on the way, as `{"method": …, "params": …}`."""

    @property
    def answer(self) -> JsonObject:
        (found,) = (each for each in self.messages if "method" not in each)
        return found

    @property
    def result(self) -> JsonObject:
        assert "result" in self.answer, self.answer
        result: JsonObject = self.answer["result"]
        return result

    @property
    def error(self) -> JsonObject:
        assert "error" in self.answer, self.answer
        error: JsonObject = self.answer["error"]
        return error

    @property
    def text(self) -> str:
        (block,) = self.result["content"]
        text: str = block["text"]
        return text

    def notifications(self, method: str) -> list[JsonObject]:
        return [one["params"] for one in self.messages if one.get("method") == method]


Answer: TypeAlias = Callable[[str, JsonObject], JsonObject]
"""Takes method and params of a question; returns a result, or `{"error": {…}}`."""


class Speaker(ABC):
    """What a client says, whatever carries it."""

    def __init__(self, version: str, capabilities: JsonObject | None) -> None:
        self.version = version
        self.capabilities = EVERYTHING if capabilities is None else capabilities
        self._ids = count(1)

    @abstractmethod
    async def sent(self, message: object) -> Outcome:
        """Send any JSON; return what that is answered with at once."""

    @abstractmethod
    async def request(self, method: str, params: Params = None, **more: Any) -> Outcome:
        """Make a request and wait for its answer."""

    def message(self, method: str, params: Params = None, **more: Any) -> JsonObject:
        """Return a request with an id of its own."""
        message: JsonObject = {"jsonrpc": "2.0", "id": next(self._ids)}
        message["method"] = method
        if params:
            message["params"] = params
        return {**message, **more}

    def hello(self, version: str | None = None) -> JsonObject:
        return {
            "protocolVersion": version or self.version,
            "capabilities": self.capabilities,
            "clientInfo": CLIENT,
        }

    async def call(self, tool: str, /, **arguments: Any) -> Outcome:
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def notify(self, method: str, params: Params = None) -> Outcome:
        message: JsonObject = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        return await self.sent(message)

    async def reply(self, request_id: object, answer: JsonObject) -> Outcome:
        """Answer a question of the server: with a result, or `{"error": {…}}`."""
        member = answer if answer.keys() == {"error"} else {"result": answer}
        return await self.sent({"jsonrpc": "2.0", "id": request_id, **member})


class Client(Speaker):
    def __init__(
        self,
        application: WireCheck,
        version: str = LATEST.version,
        *,
        path: str = "/mcp",
        headers: HeaderChanges | None = None,
        capabilities: JsonObject | None = None,
    ) -> None:
        super().__init__(version, capabilities)
        self.application = application
        self.revision: Revision = REVISIONS[version]
        self.path = path
        self.session: str | None = None
        self._headers = dict(headers or {})

    def __repr__(self) -> str:
        return f"<Client {self.revision.version}>"

    def visit(
        self,
        method: str,
        body: bytes | Sequence[bytes] = b"",
        *,
        headers: HeaderChanges | None = None,
        complete: bool = True,
    ) -> Visit:
        named = {**BASE_HEADERS, **self._era_headers(), **self._headers}
        named.update({name.lower(): value for name, value in (headers or {}).items()})
        pairs = [
            (name, each)
            for name, value in named.items()
            for each in ([value] if isinstance(value, str) else value or ())
        ]
        pieces = [body] if isinstance(body, bytes) else body
        return Visit(
            self.application, method, self.path, pairs, pieces, complete=complete
        )

    def _era_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        if self.session is not None:
            headers["mcp-session-id"] = self.session
        if self.revision.stateless or (
            self.session is not None and self.revision.version_header
        ):
            headers["mcp-protocol-version"] = self.revision.version
        return headers

    def post(
        self,
        message: object,
        headers: HeaderChanges | None = None,
        *,
        routed: bool = True,
    ) -> Visit:
        routing: dict[str, str | Sequence[str] | None] = {}
        if routed and self.revision.routing_headers:
            routing.update(routing_headers(message))
        return self.visit(
            "POST", json.dumps(message).encode(), headers={**routing, **(headers or {})}
        )

    async def sent(
        self, message: object, headers: HeaderChanges | None = None
    ) -> Outcome:
        return await outcome(self.post(message, headers))

    def message(self, method: str, params: Params = None, **more: Any) -> JsonObject:
        if self.revision.stateless:
            given = params or {}
            meta = {**self.meta(), **given.get("_meta", {})}
            params = {**given, "_meta": meta}
        return super().message(method, params, **more)

    def meta(self) -> JsonObject:
        return {
            f"{PREFIX}protocolVersion": self.revision.version,
            f"{PREFIX}clientInfo": CLIENT,
            f"{PREFIX}clientCapabilities": self.capabilities,
        }

    def begin(
        self,
        method: str,
        params: Params = None,
        *,
        headers: HeaderChanges | None = None,
        **more: Any,
    ) -> Visit:
        return self.post(self.message(method, params, **more), headers)

    async def request(
        self,
        method: str,
        params: Params = None,
        *,
        headers: HeaderChanges | None = None,
        **more: Any,
    ) -> Outcome:
        return await outcome(self.begin(method, params, headers=headers, **more))

    def initialize(self, **changes: Any) -> JsonObject:
        params = {**self.hello(), **changes}
        return super().message("initialize", params)

    async def open(self) -> Client:
        """Open a session where the revision has them."""
        if self.revision.sessions:
            opened = await self.sent(self.initialize())
            assert opened.result["protocolVersion"] == self.revision.version
            self.session = opened.headers["mcp-session-id"]
            assert (await self.notify("notifications/initialized")).status == 202
        return self

    async def standing(self, last: str | None = None) -> Visit:
        return await self.visit("GET", headers={"last-event-id": last}).begun()

    async def talk(self, method: str, params: JsonObject, answer: Answer) -> Outcome:
        """Make a request and answer what the server asks, in the way of the era."""
        if self.revision.stateless:
            return await self._retried(method, params, answer)
        visit = self.begin(method, params)
        asked, messages = [], []
        while (message := await _next_message(visit)) is not None:
            if "method" not in message or "id" not in message:
                messages.append(message)
                continue
            name, given = message["method"], message.get("params", {})
            asked.append({"method": name, "params": given})
            replied = await self.reply(message["id"], answer(name, given))
            assert replied.status == 202
        await visit.body()
        return Outcome(visit.status, visit.headers, messages, visit.raw, asked)

    async def _retried(
        self, method: str, params: JsonObject, answer: Answer
    ) -> Outcome:
        asked: list[JsonObject] = []
        retried = await self.request(method, params)
        while "result" in retried.answer and "inputRequests" in retried.result:
            questions = retried.result["inputRequests"]
            asked += questions.values()
            brought = {
                "inputResponses": {
                    key: answer(each["method"], each.get("params", {}))
                    for key, each in questions.items()
                },
                "requestState": retried.result["requestState"],
            }
            retried = await self.request(method, {**params, **brought})
        retried.questions = asked
        return retried


async def outcome(visit: Visit) -> Outcome:
    await visit.body()
    messages = await visit.messages() if visit.raw else []
    return Outcome(visit.status, visit.headers, messages, visit.raw)


async def _next_message(visit: Visit) -> JsonObject | None:
    await visit.begun()
    if visit.headers.get("content-type") == "text/event-stream":
        return await visit.message()
    if visit.ended:
        return None
    (message,) = await visit.messages()
    return message


def routing_headers(message: object) -> dict[str, str]:
    """Return what a client of 2026-07-28 says of a message in its headers."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return {}
    method: str = message["method"]
    headers = {"mcp-method": method}
    params = message.get("params")
    name = params.get(NAMED_BY.get(method, "")) if isinstance(params, dict) else None
    if isinstance(name, str):
        headers["mcp-name"] = name
    return headers
