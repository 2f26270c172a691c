"""Reading a body: its limit holds before the rest is read."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.asgi_client import Client, outcome
from tests.wire.middleware import WireCheck

LIMIT: Final = 1000
pytestmark = pytest.mark.parametrize("mcp", [{"LIMITS": {"body": LIMIT}}])


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


@pytest.mark.parametrize("cut", [[], [b"{"], [b"{", b'"jsonrpc"']])
async def test_a_client_that_leaves(application: WireCheck, cut: list[bytes]) -> None:
    visit = Client(application).visit("POST", cut, complete=False)
    await visit.leave()
    assert (visit.status, visit.raw) == (0, b"")
