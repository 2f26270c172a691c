"""Reading a body: its limit holds before the rest is read."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from mcp_app.transports.http import bodies
from tests.asgi_client import Client, Visit, outcome
from tests.wire.middleware import WireCheck

LIMIT: Final = 1000
LIMITED: Final = pytest.mark.parametrize("mcp", [{"LIMITS": {"body": LIMIT}}])


def body(size: int) -> bytes:
    """A notification of that many bytes."""
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    return json.dumps(message).encode().ljust(size)


def pieces(size: int, *sizes: int) -> list[bytes]:
    """Cut a notification: the last piece takes what is left."""
    whole, cut = body(size), []
    for each in sizes:
        cut.append(whole[:each])
        whole = whole[each:]
    return [*cut, whole]


WHOLE: Final[list[list[bytes]]] = [
    pieces(LIMIT),
    pieces(LIMIT, 500),
    pieces(LIMIT, 0, 1, 0, 998, 1),
    pieces(100, 0, 0, 100),
]
ANNOUNCED: Final = [None, str(LIMIT), f"000{LIMIT}", "x", "-1", ""]


@LIMITED
@pytest.mark.parametrize("announced", ANNOUNCED)
async def test_read(application: WireCheck, announced: str | None) -> None:
    client = Client(application)
    for cut in WHOLE:
        visit = client.visit("POST", cut, headers={"content-length": announced})
        assert (await outcome(visit)).status == 202
        assert visit.unread == 0


TOO_LARGE: Final[list[tuple[list[bytes], str | None, int]]] = [
    # pieces, Content-Length, how many pieces at least are not read
    (pieces(LIMIT + 1), None, 0),
    (pieces(LIMIT + 1), "3", 0),
    (pieces(LIMIT + 1, 500), None, 0),
    (pieces(3 * LIMIT, LIMIT + 1, 1), None, 2),
    (pieces(3 * LIMIT, 600, 600, 1), None, 2),
    (pieces(LIMIT, 1), str(LIMIT + 1), 1),
    (pieces(LIMIT, 1), "9" * 30, 1),
    (pieces(LIMIT, 1), "9" * 5000, 1),
]


@LIMITED
@pytest.mark.parametrize(("cut", "announced", "unread"), TOO_LARGE)
async def test_too_large(
    application: WireCheck, cut: list[bytes], announced: str | None, unread: int
) -> None:
    headers: dict[str, Any] = {"content-length": announced}
    visit = Client(application).visit("POST", cut, headers=headers)
    found = await outcome(visit)
    assert found.status == 413
    assert f"{LIMIT} bytes" in found.error["message"]
    assert visit.unread >= unread


# -- the id of a request that is refused before its body is read --------------------

PRIVATE: Final = {
    "host": "localhost",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


def ping(request_id: object = 7, **members: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": request_id, "method": "ping", **members}
    return json.dumps(message).encode()


def to_private(
    application: WireCheck, body: bytes, *pieces: bytes, **headers: str
) -> Visit:
    headers = {**PRIVATE, "content-length": str(len(body)), **headers}
    return Visit(
        application,
        "POST",
        "/mcp/private",
        [(name, value) for name, value in headers.items() if value],
        pieces or [body],
        complete=not pieces,
    )


@pytest.mark.parametrize("request_id", [7, "seven", -1, 2**53 - 1])
@pytest.mark.parametrize("version", ["", "2026-07-28"])
async def test_a_refusal_names_its_request(
    application: WireCheck, request_id: object, version: str
) -> None:
    named = {"mcp-protocol-version": version}
    found = await outcome(to_private(application, ping(request_id), **named))
    assert (found.status, found.answer["id"]) == (401, request_id)


@pytest.mark.parametrize("path", ["/mcp/unheard-of", "/mcp/off"])
async def test_a_server_that_is_not_there_names_the_request(
    application: WireCheck, path: str
) -> None:
    body = ping()
    headers = {**PRIVATE, "content-length": str(len(body))}
    visit = Visit(application, "POST", path, list(headers.items()), [body])
    found = await outcome(visit)
    assert found.status in (404, 503)
    assert found.answer["id"] == 7


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"[" + ping() + b"]", {}),
        (ping(params={"padding": "x" * bodies.SMALL}), {}),
        (ping(), {"content-length": ""}),
        (ping(), {"content-length": "9" * 30}),
        (ping(), {"content-length": "x"}),
        (ping(), {"content-type": "text/plain"}),
        (ping(True), {}),
        (ping(None), {}),
        (ping(1.5), {}),
        (b"{", {}),
        (b'{"jsonrpc": "2.0", "method": "notifications/x"}', {}),
        (b'{"jsonrpc": "2.0", "id": 3, "result": {}}', {}),
        (b"", {}),
    ],
    ids=repr,
)
async def test_a_refusal_that_names_none(
    application: WireCheck, body: bytes, headers: dict[str, str]
) -> None:
    found = await outcome(to_private(application, body, **headers))
    assert found.status == 401
    assert found.answer.get("id") is None


async def test_a_body_that_does_not_arrive_is_not_waited_for(
    application: WireCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "ID_S", 0.01)
    visit = to_private(application, ping(), b"{")
    found = await outcome(visit)
    assert found.status == 401
    assert found.answer.get("id") is None


async def test_nothing_of_another_origin_is_read(application: WireCheck) -> None:
    for headers in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
        visit = to_private(application, ping(), **headers)
        found = await outcome(visit)
        assert found.status in (403, 421)
        assert found.answer.get("id") is None
        assert visit.unread == 1
