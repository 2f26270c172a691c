"""The client over a socket: both eras, each answer read in a thread as it comes."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from tests.secrecy import look_at_answer
from tests.wire.events import EventReader

JsonObject: TypeAlias = dict[str, Any]

STATEFUL: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"
META: Final = "io.modelcontextprotocol/"
CLIENT: Final = {"name": "drill-client", "version": "1"}
CAPABILITIES: Final[JsonObject] = {"elicitation": {}, "sampling": {}, "roots": {}}
PATIENCE_S: Final = 60
INITIALIZED: Final = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'
EVENTS: Final = "text/event-stream"
JSON: Final = {
    "Content-Type": "application/json",
    "Accept": f"application/json, {EVENTS}",
}


class Answer(threading.Thread):
    """One request, and what has come of its answer so far."""

    def __init__(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes | Iterable[bytes] = b"",
    ) -> None:
        super().__init__(daemon=True)
        where = urlsplit(url)
        self._path = f"{where.path}?{where.query}" if where.query else where.path
        self._connection = http.client.HTTPConnection(
            where.hostname or "", where.port, timeout=PATIENCE_S
        )
        self._request = (method, dict(headers), body)
        self._changed = threading.Condition()
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.raw = b""
        self.error: Exception | None = None
        """Why the connection broke before the answer was complete."""
        self.ended = False
        self.over = 0.0
        """When it ended (monotonic)."""
        self._socket: socket.socket | None = None
        self.start()

    def run(self) -> None:
        try:
            self._read()
        except (OSError, http.client.HTTPException) as error:
            self.error = error
        finally:
            self._connection.close()
            look_at_answer(self.status, self.headers, self.raw)
            self._note(self._end)

    def _read(self) -> None:
        method, headers, body = self._request
        self._connection.request(method, self._path, body, headers)
        self._note(lambda: setattr(self, "_socket", self._connection.sock))
        response = self._connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}

        def begin() -> None:
            self.status, self.headers = response.status, found

        self._note(begin)
        while piece := response.read1():
            self._note(partial(self._take, piece))
        # It takes the end of the connection for that of the body (http.client).
        due = 0 if method == "HEAD" else int(found.get("content-length", 0))
        if len(self.raw) < due:
            raise http.client.IncompleteRead(self.raw)

    def _end(self) -> None:
        self.ended, self.over = True, time.monotonic()

    def _take(self, piece: bytes) -> None:
        self.raw += piece

    def _note(self, change: Callable[[], None]) -> None:
        with self._changed:
            change()
            self._changed.notify_all()

    def wait(
        self,
        enough: Callable[[Answer], object] = lambda _: False,
        within: float = PATIENCE_S,
    ) -> None:
        """Wait until there is enough, until it ends, or as long as patience lasts."""
        with self._changed:
            self._changed.wait_for(lambda: self.ended or enough(self), within)

    def until(self, true: Callable[[Answer], object]) -> Answer:
        self.wait(true)
        with self._changed:
            assert true(self), (self.ended, self.status, self.raw, self.error)
        return self

    def whole(self) -> Answer:
        self.until(lambda answer: answer.ended)
        assert self.error is None, (self.error, self.raw)
        return self

    def leave(self) -> Answer:
        self.wait(lambda each: each._socket)
        # It may have ended in this moment.
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        return self.until(lambda answer: answer.ended)

    @property
    def messages(self) -> list[JsonObject]:
        if self.headers.get("content-type") != EVENTS:
            return [json.loads(self.raw)] if self.raw else []
        events = EventReader().feed(self.raw)
        said = (each.data[0] for each in events if each.name == "message")
        return [json.loads(each) for each in said if each]

    @property
    def ids(self) -> list[str]:
        events = EventReader().feed(self.raw)
        return [each.id for each in events if each.id is not None]

    def field(self, name: str) -> list[str]:
        """The values of a field of the event stream, such as "retry"."""
        start = f"{name}:"
        lines = self.raw.decode().splitlines()
        return [line[len(start) :].strip() for line in lines if line.startswith(start)]


# -- what is sent --------------------------------------------------------------------

_ids = count(1)


def encoded(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def hello(version: str = STATEFUL) -> JsonObject:
    return {
        "protocolVersion": version,
        "capabilities": CAPABILITIES,
        "clientInfo": CLIENT,
    }


def stateless_request(method: str, **params: Any) -> tuple[dict[str, str], bytes]:
    meta = {
        f"{META}protocolVersion": STATELESS,
        f"{META}clientInfo": CLIENT,
        f"{META}clientCapabilities": CAPABILITIES,
        **params.get("_meta", {}),
    }
    own = {**JSON, "MCP-Protocol-Version": STATELESS, "Mcp-Method": method}
    if "name" in params:
        own["Mcp-Name"] = params["name"]
    return own, _request(method, {**params, "_meta": meta})


def _request(method: str, params: JsonObject) -> bytes:
    return encoded(id=next(_ids), method=method, params=params)


# -- the stateless era ---------------------------------------------------------------


def stateless(
    url: str, method: str, headers: Mapping[str, str] | None = None, **params: Any
) -> Answer:
    own, body = stateless_request(method, **params)
    return Answer(url, "POST", {**own, **(headers or {})}, body)


def called(url: str, tool: str, **arguments: Any) -> Answer:
    return stateless(url, "tools/call", name=tool, arguments=arguments)


def listening(
    url: str, headers: Mapping[str, str] | None = None, **notifications: Any
) -> Answer:
    """Open a listen stream, and wait until it is acknowledged."""
    answer = stateless(
        url, "subscriptions/listen", headers, notifications=notifications
    )
    return answer.until(lambda each: each.messages)


# -- clients -------------------------------------------------------------------------


class Caller(ABC):
    @abstractmethod
    def request(self, method: str, **params: Any) -> Answer:
        """Begin a request."""

    def called(self, tool: str, **arguments: Any) -> Answer:
        return self.request("tools/call", name=tool, arguments=arguments)

    def messages(
        self, tool: str, arguments: JsonObject, meta: JsonObject, **more: object
    ) -> list[JsonObject]:
        params = {"name": tool, "arguments": arguments, "_meta": meta, **more}
        return self.request("tools/call", **params).whole().messages

    def call(self, tool: str, **arguments: Any) -> JsonObject:
        result: JsonObject = self.messages(tool, arguments, {})[-1]["result"]
        return result


class Stateless(Caller):
    def __init__(self, url: str, capabilities: JsonObject = CAPABILITIES) -> None:
        self._url = url
        self._meta = {f"{META}clientCapabilities": capabilities}

    def request(self, method: str, **params: Any) -> Answer:
        meta = {**self._meta, **params.get("_meta", {})}
        return stateless(self._url, method, **{**params, "_meta": meta})


class SessionRefused(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status, answer.raw)
        self.status = answer.status


class Session(Caller):
    """A session of the stateful era; raises `SessionRefused` where it is none.

    What is `shown` comes with each request, as a token does.
    """

    def __init__(
        self,
        url: str,
        shown: Mapping[str, str] | None = None,
        *,
        version: str = STATEFUL,
    ) -> None:
        self._url = url
        headers = {**JSON, **(shown or {})}
        body = _request("initialize", hello(version))
        opened = Answer(url, "POST", headers, body).whole()
        if opened.status != 200:
            raise SessionRefused(opened)
        self.headers = {
            **(shown or {}),
            "MCP-Protocol-Version": version,
            "Mcp-Session-Id": opened.headers["mcp-session-id"],
        }

    def at(self, url: str) -> Session:
        elsewhere = copy(self)
        elsewhere._url = url
        return elsewhere

    def close(self) -> Answer:
        return Answer(self._url, "DELETE", self.headers)

    def request(self, method: str, **params: Any) -> Answer:
        return self.send(_request(method, params))

    def send(self, body: bytes) -> Answer:
        return Answer(self._url, "POST", {**JSON, **self.headers}, body)

    def stream(self, last: str | None = None) -> Answer:
        """Begin a GET for what follows an event, or for what belongs to no call."""
        headers = {"Accept": EVENTS, **self.headers}
        if last is not None:
            headers["Last-Event-ID"] = last
        return Answer(self._url, "GET", headers)

    def standing(self, last: str | None = None) -> Answer:
        """Open the GET stream after an event's id, and wait for its first byte."""
        return self.stream(last).until(lambda each: each.raw)
