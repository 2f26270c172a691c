"""Conversations, and what is said of them; tests/process/test_proxies.py has real ones.

Here a site of the test notes what it is sent.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from typing import Any, Final

import pytest

from mcp_app.protocol.revisions import REVISIONS
from mcp_app.workbench.checking.client import Part, Reply
from mcp_app.workbench.checking.findings import Grade
from mcp_app.workbench.checking.site_findings import (
    Conversations,
    Step,
    judge_revisions,
)
from tests.workbench.checking.test_client import listening

SESSION: Final = "the-session"
EVENT: Final = b"data: {}\n\n"


@dataclass(slots=True)
class Site:
    """Answers as a server of any revision, and keeps what came."""

    url: str = ""
    lost: str = ""
    """A method that is answered with an error."""
    received: list[tuple[str, Message, Any]] = field(default_factory=list)

    def serve(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as file:
            method = file.readline().split()[0].decode()
            head = b"".join(iter(file.readline, b"\r\n"))
            headers = message_from_bytes(head)
            body = file.read(int(headers.get("content-length", 0)))
        asked = json.loads(body) if body else {}
        self.received.append((method, headers, asked))
        connection.sendall(self._answer(method, asked))

    def _answer(self, method: str, asked: dict[str, Any]) -> bytes:
        if method == "GET" or asked.get("method") == "subscriptions/listen":
            return _whole(b"200 OK", EVENT, b"text/event-stream")
        if "id" not in asked:
            return _whole(b"202 Accepted")
        result: dict[str, Any] = {"capabilities": {"tools": {}}}
        value: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "result": result}
        if asked["method"] == self.lost:
            error = {"code": -32601, "message": "No."}
            value = {"jsonrpc": "2.0", "id": 1, "error": error}
        return _whole(b"200 OK", json.dumps(value).encode())

    def methods(self) -> list[str]:
        return [asked.get("method", method) for method, _, asked in self.received]


def _whole(
    status: bytes, body: bytes = b"", kind: bytes = b"application/json"
) -> bytes:
    lines = [
        b"HTTP/1.1 " + status,
        b"Content-Type: " + kind,
        b"Mcp-Session-Id: " + SESSION.encode(),
        b"Content-Length: %d" % len(body),
        b"Connection: close",
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    with listening(made.serve) as url:
        made.url = url
        yield made


def speak(site: Site, **more: Any) -> list[Step]:
    return Conversations(
        site.url, ssl.create_default_context(), **more
    ).run_each_revision()


def test_each_revision_is_spoken_as_its_clients_do(site: Site) -> None:
    steps = speak(site, shown={"Authorization": "Bearer of-the-test"})
    assert all(step.result is not None for step in steps)
    assert {step.revision for step in steps} == {*REVISIONS}
    methods = site.methods()
    session = [
        *("initialize", "notifications/initialized", "ping", "tools/list"),
        *("GET", "DELETE"),
    ]
    newest = ["server/discover", "tools/list", "subscriptions/listen"]
    assert methods == [*session * (len(REVISIONS) - 1), *newest]
    for _, headers, asked in site.received:
        assert headers["authorization"] == "Bearer of-the-test"
        is_first = asked.get("method") == "initialize"
        is_stateless = headers["mcp-method"] is not None
        assert (headers["mcp-session-id"] == SESSION) == (
            not is_first and not is_stateless
        )


def test_without_streams_none_is_opened(site: Site) -> None:
    speak(site, streams=False)
    assert "GET" not in site.methods()
    assert "subscriptions/listen" not in site.methods()


@pytest.mark.parametrize("lost", ["initialize", "server/discover"])
def test_who_does_not_begin_is_asked_nothing_more(site: Site, lost: str) -> None:
    site.lost = lost
    wrong = [step for step in speak(site) if step.result is None]
    assert {step.method for step in wrong} == {lost}
    afterwards = "ping" if lost == "initialize" else "subscriptions/listen"
    assert afterwards not in site.methods()


def reply(status: int, value: object) -> Reply:
    return Reply(status, {}, (Part(0.0, json.dumps(value)),))


FINE = [Step(version, "ping", reply(200, {}), {}) for version in REVISIONS]


def test_all_are_served() -> None:
    (found,) = judge_revisions(FINE)
    assert found.grade is Grade.GOOD
    assert found.what.endswith(f"{', '.join(REVISIONS)}.")


def test_one_fails() -> None:
    error = {"error": {"message": "Bad <thing>"}}
    wrong = Step("2025-11-25", "tools/list", reply(400, error), None)
    (found,) = judge_revisions([*FINE, wrong])
    assert found.grade is Grade.PROBLEM
    assert found.what == (
        "In revision 2025-11-25, tools/list failed (status 400): Bad <thing>"
    )


def test_who_is_nobody_learns_nothing() -> None:
    wrong = Step("2025-11-25", "initialize", reply(401, {}), None)
    (found,) = judge_revisions([wrong])
    assert found.grade is Grade.UNKNOWN
    assert "--user" in found.why
    (found,) = judge_revisions([wrong], has_token=True)
    assert found.grade is Grade.UNKNOWN
    assert "does not accept the token" in found.what


def test_a_rate_is_no_fault() -> None:
    wrong = Step("2025-11-25", "tools/list", reply(429, {}), None)
    (found,) = judge_revisions([*FINE, wrong])
    assert found.grade is Grade.UNKNOWN
