"""Requests that are refused, and the status that each is refused with.

Only one thing is wrong with each.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from benchmarks.client import TIMEOUT, WrongAnswerError
from benchmarks.messages import Request, call, initialize

TOO_LARGE = 4 * 1024 * 1024 + 1
_CALL = call("drill_add")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A request with one thing wrong."""

    what: str
    status: int
    headers: dict[str, str]
    body: bytes = b""
    method: str = "POST"
    path: str = "/mcp"
    answer: bytes = b""
    """What the answer must hold besides."""


def _wrong(
    what: str, status: int, wrong: Mapping[str, str], request: Request = _CALL
) -> Refused:
    """Return a good request with other headers."""
    return Refused(
        what=what,
        status=status,
        headers={**request.headers, **wrong},
        body=request.body(),
    )


def _body(what: str, body: bytes, answer: bytes = b"-32") -> Refused:
    headers = dict(_CALL.headers)
    return Refused(what=what, status=400, headers=headers, body=body, answer=answer)


def of_session(session: str) -> list[Refused]:
    """Return one of each kind; some need a session that is open."""
    called = call("drill_count", {"n": 0, "delay_ms": 0}, session=session)
    events = {**called.headers, "Accept": "text/event-stream"}
    unknown = call("drill_odd", session=session)
    unknown_stateless = call("drill_odd")
    return [
        _body("no JSON", b"{", b"-32700"),
        _body("a stray byte", _CALL.body() + b"\xff", b"-32700"),
        _body("a key twice", b'{"id":1,"id":1}', b"-32700"),
        _body("no object", b"1", b"-32600"),
        _body("no method", b'{"jsonrpc":"2.0","id":1,"more":1}', b"-32600"),
        _wrong("origin", 403, {"Origin": "https://evil.example"}),
        _wrong("host", 421, {"Host": "evil.example"}),
        _wrong("content type", 415, {"Content-Type": "text/plain"}),
        _wrong("accept", 406, {"Accept": "text/html"}),
        _wrong("another name", 400, {"Mcp-Name": "drill_echo"}),
        _wrong("another version", 400, {"MCP-Protocol-Version": "2099-01-01"}),
        _wrong("unknown session", 404, {"Mcp-Session-Id": "0" * 43}, called),
        _wrong("no session id", 400, {"Mcp-Session-Id": "é"}, called),
        _wrong("its version", 400, {"MCP-Protocol-Version": "2025-06-18"}, called),
        _wrong("initialized again", 400, {"Mcp-Session-Id": session}, initialize({})),
        Refused(
            what="unknown tool",
            status=200,
            headers=dict(unknown.headers),
            body=unknown.body(),
            answer=b"-32602",
        ),
        Refused(
            what="unknown tool, stateless",
            status=200,
            headers=dict(unknown_stateless.headers),
            body=unknown_stateless.body(),
            answer=b"-32602",
        ),
        *(
            Refused(
                what=f"event id {last!r}",
                status=400,
                headers={**events, "Last-Event-ID": last},
                method="GET",
            )
            for last in ("x", "a.1.2", "AAAAAAAAAAAAAAAAAAAAAA.7", "³.1")
        ),
        Refused(
            what="unknown server",
            status=404,
            headers=dict(_CALL.headers),
            body=_CALL.body(),
            path="/mcp/nowhere",
        ),
        Refused(what="method", status=405, headers={}, method="PUT"),
        Refused(
            what="announced size",
            status=413,
            headers={**_CALL.headers, "Content-Length": str(TOO_LARGE)},
        ),
    ]


def oversized() -> Refused:
    """Return a call whose body is really larger than it may be."""
    body = json.dumps({"x": "x" * TOO_LARGE}).encode()
    return Refused(what="size", status=413, headers=dict(_CALL.headers), body=body)


def refuse(port: int, request: Refused) -> None:
    """Send a request, on a connection of its own, and see it refused."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        # A server need not read what it refuses.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(
                request.method, request.path, request.body or None, request.headers
            )
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status != request.status or request.answer not in answer:
        raise WrongAnswerError(
            f"{request.what} is answered with HTTP {response.status}, {answer[:500]!r}."
        )
