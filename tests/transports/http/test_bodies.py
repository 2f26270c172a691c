"""Reading a body: its limit holds before the rest is read."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any, Final

import pytest

from mcp_app.conf import Limits
from mcp_app.pools.turns import STRANGER
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.jsonrpc import ReadLimits
from mcp_app.server.handlers import tools
from mcp_app.transports.http import bodies
from mcp_app.transports.http.bodies import is_large_body, read_json
from tests.asgi_client import Client, Visit, outcome
from tests.serving import Connect
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
    visit = to_private(application, ping())
    visit.scope["path"] = path
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


PROCESS: Final[Any] = SimpleNamespace(
    limits=Limits(parse_in_thread=40, nodes_in_thread=6),
    read_limits=ReadLimits(64, 1_000),
    inline_bytes=12,
)

LARGE: Final[list[tuple[bytes, bool]]] = [
    (b"[1,2,3,4,5]", False),
    (b"[1,2,3,4,5, 6]", False),
    (b"[1,2,3,4,5,6,7]", True),
    (b"[[],[],[],[]]", True),
    (b'{"a":{"b":{"c":{}}}}', False),
    (b'{"a":{"b":{"c":{"d":[[[]]]}}}}', True),
    # Arguments may be read from a text.
    (b'["1,2,3,4,5,6,7"]', True),
    (b'["123456789012345678901234567890123456"]', False),
    (b'["1234567890123456789012345678901234567"]', True),
]


@pytest.mark.parametrize(("body", "large"), LARGE)
async def test_t12_a_large_or_wide_body_is_read_in_a_thread(
    body: bytes, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def read(*given: Any) -> object:
        threads.append(threading.current_thread())
        return real(*given)

    real = jsonrpc.read
    monkeypatch.setattr(jsonrpc, "read", read)
    assert is_large_body(PROCESS, body) is large
    value = await read_json(PROCESS, body, STRANGER, large=large)
    assert value == real(body, PROCESS.read_limits)
    assert [each is threading.current_thread() for each in threads] == [not large]


NAMES: Final = ["n"] * 2_001
"""Arguments that make a body wide, of some bytes."""


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_t12_wide_arguments_are_checked_in_a_thread(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    threads = []

    def bind(*given: Any) -> Any:
        threads.append(threading.get_ident())
        return real(*given)

    real = tools._bind
    monkeypatch.setattr(tools, "_bind", bind)
    client = await connect(version)
    for names, in_thread in ((NAMES[:5], False), (NAMES, True)):
        called = await client.call("typed", count=1, names=names)
        assert called.result["structuredContent"]["names"] == names
        assert {each == process.thread for each in threads} <= {not in_thread}
        assert threads or not in_thread
        threads.clear()
    # What does not fit is found there, too.
    refused = await client.call("typed", count=1, names=[*NAMES, 7])
    assert refused.result["isError"]
    assert "names[2001]" in refused.text
    assert len(threads) == 1
