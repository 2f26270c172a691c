"""What was seen, as values: of streams in any pieces, and of reports."""

from __future__ import annotations

import json
import socket
import ssl
from typing import Any, Final

import pytest

from mcp_app.transports.http.probe import PROBE_HEADERS
from mcp_app.workbench.checking.client import Part, Reply
from mcp_app.workbench.checking.observing import (
    Unreadable,
    host_of_netloc,
    is_busy_reply,
    is_message,
    observations_of_page,
    observe_server,
    read_report,
    read_stream,
)
from tests.workbench.checking.test_client import OK, listening

REPORT: Final[dict[str, Any]] = {
    "mcp_probe": 1,
    "probe": "ticks",
    "host": "localhost",
    "scheme": "http",
    "forwarded": {"x-forwarded-for": "192.0.2.1"},
    "headers": dict.fromkeys(PROBE_HEADERS, "as sent"),
    "body": 40,
    "process": "here 1",
    "interface": "ASGI",
    "clock_ms": 1_000,
    "database_ms": None,
}
STREAM: Final = {"content-type": "text/event-stream; charset=utf-8"}


def event(value: object) -> str:
    return f"data: {json.dumps(value)}\n\n"


@pytest.mark.parametrize("size", [1, 3, 7, 100, 10_000])
def test_a_stream_in_pieces(size: int) -> None:
    text = "".join(map(event, [REPORT, {"tick": 1}, {"tick": 2}, {"end": True}]))
    starts = range(0, len(text), size)
    parts = tuple(Part(float(n), text[n : n + size]) for n in starts)
    stream = read_stream(Reply(200, STREAM, parts))
    assert stream.report == read_report(Reply(200, STREAM, parts))
    assert stream.report is not None
    assert stream.report.host == "localhost"
    assert len(stream.ticks) == 2
    assert stream.ended
    assert not read_stream(Reply(200, STREAM, parts[:-1])).ended


def whole(text: str, **headers: str) -> Reply:
    return Reply(200, headers, (Part(0.1, text),))


def test_what_is_no_report() -> None:
    assert read_report(whole(json.dumps(REPORT))) is not None
    wrong: list[dict[str, Any]] = [
        {"mcp_probe": 2},
        {"headers": []},
        {"headers": {}},
        {"body": "many"},
        {"clock_ms": 10**300},
        {"clock_ms": -1},
        {"database_ms": 1e999},
        {"forwarded": None},
    ]
    for changes in wrong:
        assert read_report(whole(json.dumps({**REPORT, **changes}))) is None
    for text in ("", "[]", "7", "<html>", "[" * 100_000):
        assert read_report(whole(text)) is None


def test_answers_that_are_none_to_a_probe() -> None:
    assert is_busy_reply(whole('{"mcp_probe":1,"busy":true}'))
    assert is_message(whole('{"jsonrpc":"2.0","error":{}}'))
    assert is_message(whole("", **{"www-authenticate": 'Bearer realm="mcp"'}))
    assert not is_message(whole("<html>"))


def test_hosts() -> None:
    assert host_of_netloc("Example.com:8000") == "example.com"
    assert host_of_netloc("[::1]:80") == "::1"
    assert host_of_netloc("[") == ""


def test_of_a_page() -> None:
    given = {"status": 200, "headers": {"A": "b"}, "parts": [[0, "x"]], "seconds": 1}
    seen = observations_of_page({"ticks": given}, "http://localhost/mcp", 9)
    assert seen.by_browser
    assert seen.replies["ticks"] == Reply(200, {"a": "b"}, (Part(0.0, "x"),), 1.0)
    with pytest.raises(Unreadable, match="ticks"):
        observations_of_page(
            {"ticks": {**given, "status": "200"}}, "http://localhost/mcp", 9
        )


def test_who_is_another_site_is_asked_once() -> None:
    asked: list[bytes] = []

    def page(connection: socket.socket) -> None:
        asked.append(connection.recv(65_536))
        connection.sendall(OK + b"Content-Length: 2\r\n\r\nhi")

    with listening(page) as url:
        seen = observe_server(url, "default", 1_000, ssl.create_default_context())
    assert [*seen.replies] == ["ticks"]
    assert len(asked) == 1
