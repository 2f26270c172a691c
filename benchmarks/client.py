"""One request at a time, and streams that stay open: what `wrk` cannot do."""

from __future__ import annotations

import http.client
import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.messages import (
    FIRST_ID,
    IsRight,
    JsonObject,
    Request,
    initialize,
    stateful,
)

TIMEOUT = 30.0
"""Seconds after which a server that says nothing has failed."""

Headers = Sequence[tuple[str, str]]
"""In the order of the wire; a name may come twice."""

_EVENT_STREAM = "text/event-stream"
_identifiers = itertools.count(FIRST_ID)


class WrongAnswerError(Exception):
    """A server did not answer what the request asks for: the figure is void."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An HTTP response that has ended; names of headers are in lower case."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        """Return the header's value, or an empty string."""
        return dict(self.headers).get(name, "")

    def message(self) -> JsonObject:
        """Return the JSON-RPC message: the body, or the stream's last event."""
        if not self.header("content-type").startswith(_EVENT_STREAM):
            return _object(self.body)
        lines = [line for line in self.body.splitlines() if _has_data(line)]
        return _object(lines[-1][len(b"data:") :])


def post(port: int, body: bytes, headers: Headers) -> Reply:
    """Send these bytes with exactly these headers and read the whole response."""
    connection = _posted(port, body, headers)
    try:
        response = connection.getresponse()
        names = [(name.lower(), value) for name, value in response.getheaders()]
        return Reply(status=response.status, headers=names, body=response.read())
    finally:
        connection.close()


def send(port: int, request: Request, identifier: int | None = None) -> Reply:
    """Send the request with that id, by default with one never used before."""
    chosen = next(_identifiers) if identifier is None else identifier
    return post(port, request.body(chosen), request.lines(port))


def result_of(reply: Reply) -> JsonObject:
    """Return the reply's result, or raise `WrongAnswerError` where it has none."""
    if reply.status == 200:
        result = reply.message().get("result")
        if isinstance(result, dict):
            return result
    raise WrongAnswerError(f"No result: HTTP {reply.status}, {reply.body[:500]!r}.")


def checked(port: int, request: Request, is_right: IsRight) -> JsonObject:
    """Send the request and return its result, which must be right."""
    result = result_of(send(port, request))
    if not is_right(result):
        raise WrongAnswerError(f"A wrong result: {json.dumps(result)[:500]}.")
    return result


def open_session(port: int, capabilities: JsonObject | None = None) -> str:
    """Open a session of the stateful era and return its id."""
    reply = send(port, initialize(capabilities or {}))
    session = reply.header("mcp-session-id")
    if not result_of(reply) or not session:
        raise WrongAnswerError(f"initialize opened no session: {reply.body[:500]!r}.")
    notify(port, session, {"method": "notifications/initialized"})
    return session


def close_session(port: int, session: str) -> None:
    """Close a session of the stateful era."""
    headers = dict(stateful(session, "", {}).headers)
    headers.pop("Content-Type")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request("DELETE", "/mcp", headers=headers)
        status = connection.getresponse().status
    finally:
        connection.close()
    if status != 204:
        raise WrongAnswerError(f"A session was not closed: HTTP {status}.")


def notify(port: int, session: str, message: JsonObject) -> None:
    """Post a notification or an answer, which the server only accepts."""
    headers = stateful(session, "", {}).lines(port)
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    reply = post(port, body, headers)
    if reply.status != 202:
        raise WrongAnswerError(
            f"A message was not accepted: HTTP {reply.status}, {reply.body[:500]!r}."
        )


class EventStream:
    """The SSE answer to one request, read event by event."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._response = connection.getresponse()
        kind = self._response.headers.get_content_type()
        if self._response.status != 200 or kind != _EVENT_STREAM:
            raise WrongAnswerError(
                f"No event stream: HTTP {self._response.status}, {kind}."
            )

    def messages(self) -> Iterator[JsonObject]:
        """Yield each message as it arrives, until the stream ends."""
        for line in iter(self._response.readline, b""):
            if _has_data(line):
                yield _object(line[len(b"data:") :])

    def wait_for(self, method: str) -> JsonObject:
        """Return the next message of that method, skipping others."""
        for message in self.messages():
            if message.get("method") == method:
                return message
        raise WrongAnswerError(f"The stream ended before {method!r} came.")

    def close(self) -> None:
        """Close the connection, whether or not the stream has ended."""
        self._response.close()
        self._connection.close()


def open_stream(port: int, request: Request) -> EventStream:
    """Send a request that is answered with a stream, and read its headers."""
    connection = _posted(port, request.body(next(_identifiers)), request.lines(port))
    try:
        return EventStream(connection)
    except BaseException:
        connection.close()
        raise


@contextmanager
def streams(port: int, requests: list[Request]) -> Iterator[list[EventStream]]:
    """Keep one stream open for each request."""
    opened: list[EventStream] = []
    try:
        for request in requests:
            opened.append(open_stream(port, request))
        yield opened
    finally:
        for stream in opened:
            stream.close()


def _posted(port: int, body: bytes, headers: Headers) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    connection.putrequest("POST", "/mcp", skip_host=True, skip_accept_encoding=True)
    for name, value in [*headers, ("Content-Length", str(len(body)))]:
        connection.putheader(name, value)
    connection.endheaders(body)
    return connection


def _has_data(line: bytes) -> bool:
    # A priming event has an empty data line.
    return line.startswith(b"data:") and line.strip() != b"data:"


def _object(data: bytes) -> JsonObject:
    message = json.loads(data)
    if not isinstance(message, dict):
        raise WrongAnswerError(f"Not a JSON object: {data[:500]!r}.")
    return message
