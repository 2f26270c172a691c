"""One request at a time, and sessions: what `wrk` cannot do."""

from __future__ import annotations

import http.client
import itertools
import json
from collections.abc import Sequence
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
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.putrequest("POST", "/mcp", skip_host=True, skip_accept_encoding=True)
        for name, value in [*headers, ("Content-Length", str(len(body)))]:
            connection.putheader(name, value)
        connection.endheaders(body)
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


def open_session(port: int) -> str:
    """Open a session of the stateful era and return its id."""
    reply = send(port, initialize())
    session = reply.header("mcp-session-id")
    if not result_of(reply) or not session:
        raise WrongAnswerError(f"initialize opened no session: {reply.body[:500]!r}.")
    ready = stateful(session, "notifications/initialized", {})
    body = json.dumps({"jsonrpc": "2.0", **ready.message}).encode()
    reply = post(port, body, ready.lines(port))
    if reply.status != 202:
        raise WrongAnswerError(f"A session did not begin: HTTP {reply.status}.")
    return session


def _has_data(line: bytes) -> bool:
    # A priming event has an empty data line.
    return line.startswith(b"data:") and line.strip() != b"data:"


def _object(data: bytes) -> JsonObject:
    message = json.loads(data)
    if not isinstance(message, dict):
        raise WrongAnswerError(f"Not a JSON object: {data[:500]!r}.")
    return message
