"""Bodies are read on the loop if they are short, else in a thread."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ParseError
from mcp_app.protocol.jsonrpc import ReadLimits
from mcp_app.transports.json_body import read_json

PROCESS: Any = SimpleNamespace(
    limits=SimpleNamespace(parse_in_thread=8), read_limits=ReadLimits(64, 1_000)
)


@pytest.mark.parametrize(
    ("body", "on_loop"), [(b"[1, 2]", True), (b"[1, 2, 3]", False)]
)
async def test_a_long_body_is_read_in_a_thread(
    body: bytes, on_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def read(*given: Any) -> object:
        threads.append(threading.current_thread())
        return real(*given)

    real = jsonrpc.read
    monkeypatch.setattr(jsonrpc, "read", read)
    assert await read_json(PROCESS, body) == real(body, PROCESS.read_limits)
    assert [each is threading.current_thread() for each in threads] == [on_loop]


@pytest.mark.parametrize("body", [b"{", b"{" * 9])
async def test_no_json(body: bytes) -> None:
    with pytest.raises(ParseError):
        await read_json(PROCESS, body)
