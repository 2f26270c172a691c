"""Bodies are read on the loop if they are short, else in a thread."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, Final

import pytest

from mcp_app.conf import Limits
from mcp_app.pools.user_threads import NOBODY
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.jsonrpc import ReadLimits
from mcp_app.server.handlers import tools
from mcp_app.transports.http.bodies import is_large_body, read_json
from tests.serving import Connect

PROCESS: Final[Any] = SimpleNamespace(
    limits=Limits(parse_in_thread=40, nodes_in_thread=6),
    read_limits=ReadLimits(64, 1_000),
    narrow=12,
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
    value = await read_json(PROCESS, body, NOBODY, large=large)
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
