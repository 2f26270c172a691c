"""Checks every JSON-RPC message that an ASGI application sends.

application = WireCheck(application)
...
assert not application.violations
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests.wire.events import Event, EventReader
from tests.wire.validation import VERSIONS, wire_validator

Scope: TypeAlias = MutableMapping[str, Any]
AsgiMessage: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
Send: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
JsonObject: TypeAlias = dict[str, Any]

STATELESS: Final = VERSIONS[-1]
STATEFUL: Final = VERSIONS[:-1]
ENDPOINT: Final = "/mcp"
CLOSED: Final = 204
"""The status of the answer to a DELETE that has closed a session."""


@dataclass(slots=True)
class Session:
    version: str | None = None
    methods: dict[str, str] = field(default_factory=dict)


class WireCheck:
    """ASGI middleware; each violation is a sentence in `violations`.

    JSON bodies and server-sent events of the endpoints are checked, by the revision
    of the request, of its session, or, where neither is known, by any of the
    stateful ones.  `report` gets each sentence at once.
    """

    def __init__(
        self, application: Application, report: Callable[[str], object] | None = None
    ) -> None:
        self.violations: list[str] = []
        self.checked = 0
        self._application = application
        self._report = report
        self._sessions: dict[str, Session] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _is_endpoint(scope["path"]):
            exchange = _Exchange(self, scope, receive, send)
            await self._application(scope, exchange.receive, exchange.send)
        else:
            await self._application(scope, receive, send)

    def session(self, key: str) -> Session:
        return self._sessions.setdefault(key, Session())

    def forget(self, key: str) -> None:
        self._sessions.pop(key, None)

    def judge(self, sentences: list[str], where: str, what: object) -> None:
        self.checked += 1
        for sentence in sentences:
            violation = f"{where}: {sentence} {what!r}"[:500]
            self.violations.append(violation)
            if self._report is not None:
                self._report(violation)


def _is_endpoint(path: str) -> bool:
    inside = path == ENDPOINT or path.startswith(f"{ENDPOINT}/")
    return inside and not path.rstrip("/").endswith("/health")


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Names in lower case; the last of several values."""
    return {
        bytes(name).decode("latin-1").lower(): bytes(value).decode("latin-1")
        for name, value in pairs
    }


def _messages(text: str | bytes) -> list[Any]:
    """Return the members of a batch, or the one message; raise where it is no JSON."""
    value = json.loads(text)
    return value if isinstance(value, list) else [value]


class _Exchange:
    def __init__(
        self, check: WireCheck, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._check = check
        self._receive = receive
        self._send = send
        self._where = f"{scope['method']} {scope['path']}"
        self._closing = scope["method"] == "DELETE"
        self._request_headers = _headers(scope["headers"])
        self._body = b""
        self._answer = b""
        self._events = EventReader()
        self._content_type = ""
        query = scope["query_string"].decode("latin-1")
        key = self._request_headers.get("mcp-session-id", query)
        self._session = check.session(key) if key else Session()
        self._requests: list[JsonObject] | None = None

    async def receive(self) -> AsgiMessage:
        message = await self._receive()
        self._body += message.get("body", b"")
        return message

    async def send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self._start(_headers(message.get("headers", ())))
            if self._closing and message["status"] == CLOSED:
                self._check.forget(self._request_headers.get("mcp-session-id", ""))
        elif message["type"] == "http.response.body":
            self._piece(message.get("body", b""), message.get("more_body", False))
        await self._send(message)

    def _start(self, headers: dict[str, str]) -> None:
        self._content_type = headers.get("content-type", "").partition(";")[0].strip()
        if "mcp-probe" in headers:
            # What a probe is told is no message.
            self._content_type = ""
        if (session_id := headers.get("mcp-session-id")) is not None:
            self._session = self._check.session(session_id)
        self._requests = self._read_requests()
        for request in self._requests:
            if "id" in request:
                key = json.dumps(request["id"])
                self._session.methods[key] = str(request["method"])

    def _read_requests(self) -> list[JsonObject]:
        """Return what the client asked; nothing where the body was refused."""
        try:
            messages = _messages(self._body)
        except (ValueError, RecursionError):
            return []
        return [one for one in messages if isinstance(one, dict) and "method" in one]

    def _piece(self, piece: bytes, more: bool) -> None:
        if self._content_type == "application/json":
            self._answer += piece
            if not more and self._answer:
                self._check_text(self._answer)
        elif self._content_type == "text/event-stream":
            for event in self._events.feed(piece):
                self._check_event(event)

    def _check_event(self, event: Event) -> None:
        if event.name == "endpoint":
            self._session = self._check.session(event.data[0].partition("?")[2])
        elif len(event.data) > 1:
            sentence = "A message takes more than one data line."
            self._check.judge([sentence], self._where, event.data)
        elif event.data[0]:
            self._check_text(event.data[0])

    def _check_text(self, text: str | bytes) -> None:
        try:
            messages = _messages(text)
        except ValueError as error:
            self._check.judge([f"No JSON ({error})."], self._where, text)
            return
        for message in messages:
            self._check_message(message)

    def _check_message(self, message: Any) -> None:
        if not isinstance(message, dict):
            self._check.judge(["The message is no object."], self._where, message)
            return
        method = self._session.methods.get(json.dumps(message.get("id")))
        if "method" in message:
            method = None
        # The answer to `initialize` settles the session's revision.
        if method == "initialize" and isinstance(message.get("result"), dict):
            version = message["result"].get("protocolVersion")
            if version in VERSIONS:
                self._session.version = version
        allowed = self._versions(method)
        found = [wire_validator(each).check(message, method=method) for each in allowed]
        place = f"{self._where} ({'|'.join(allowed)}, {method})"
        self._check.judge(min(found, key=len), place, message)

    def _versions(self, method: str | None) -> tuple[str, ...]:
        """Return the revisions of which one must allow the message."""
        if self._stateless():
            return (STATELESS,)
        if self._session.version is not None:
            return (self._session.version,)
        named = self._request_headers.get("mcp-protocol-version", "")
        return (named,) if named in STATEFUL and method != "initialize" else STATEFUL

    def _stateless(self) -> bool:
        """Follow the rule by which a server tells the eras apart."""
        named = self._request_headers.get("mcp-protocol-version")
        if named is not None and named not in STATEFUL:
            return True
        return any(names_version(request) for request in self._requests or ())


def names_version(request: JsonObject) -> bool:
    """Whether it is a request of the stateless era."""
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and "io.modelcontextprotocol/protocolVersion" in meta
