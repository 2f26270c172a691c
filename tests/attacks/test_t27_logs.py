"""T27: what clients say of themselves makes no second line in the log."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any, Final

import pytest

from mcp_app.logs import LARGEST, LARGEST_EXCEPTION, JsonFormatter
from mcp_app.transports.http import host_and_origin
from tests.asgi_client import PREFIX, Client, outcome
from tests.marks import NEWEST_FIRST
from tests.wire.middleware import WireCheck

NASTY: Final = "x\n2026-01-01 ERROR root login \x1b[2J \u2028 \u202e" + "y" * 4_000


@pytest.fixture
def log() -> Iterator[StringIO]:
    """What the site writes, as a site in production does."""
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    loggers = [logging.getLogger("mcp_app"), logging.getLogger("django")]
    before = [each.level for each in loggers]
    for each in loggers:
        each.addHandler(handler)
        each.setLevel(logging.DEBUG)
    host_and_origin._warn_about_token.cache_clear()
    yield written
    for each, level in zip(loggers, before, strict=True):
        each.removeHandler(handler)
        each.setLevel(level)


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def lines(log: StringIO) -> list[dict[str, Any]]:
    text = log.getvalue()
    assert text.isascii()
    assert "\x1b" not in text
    found = [json.loads(each) for each in text.splitlines()]
    for record in found:
        for name, each in record.items():
            most = LARGEST_EXCEPTION if name == "exception" else LARGEST
            assert len(json.dumps(each)) - 2 <= most
        assert record["logger"].startswith(("mcp_app", "django"))
    return found


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_names_that_clients_give(
    application: WireCheck, log: StringIO, version: str
) -> None:
    client = Client(application, version)
    info = {"name": NASTY, "version": NASTY}
    if client.revision.sessions:
        opened = await client.sent(client.initialize(clientInfo=info))
        client.session = opened.headers["mcp-session-id"]
    else:
        meta = {"_meta": {f"{PREFIX}clientInfo": info}}
        await client.request("tools/list", meta)
    named = {"mcp-name": encoded(NASTY)} if client.revision.stateless else {}
    for method, params in (
        ("tools/call", {"name": NASTY, "arguments": {}}),
        ("prompts/get", {"name": NASTY}),
        ("resources/read", {"uri": NASTY}),
    ):
        await client.request(method, params, headers=named)
    await client.call("drill_fail", kind="exception", **{NASTY: NASTY})
    cancelled = {"requestId": NASTY, "reason": NASTY}
    await client.notify("notifications/cancelled", cancelled)
    if client.revision.sessions:
        await client.notify(f"notifications/{NASTY}")
        assert any(NASTY[:20] in each.get("reason", "") for each in lines(log))
    lines(log)


async def test_headers_and_addresses(application: WireCheck, log: StringIO) -> None:
    # What a server lets through: no line ends (RFC 9112), but all else.
    odd = "x \x1b[2J \x85 " + "y" * 4_000
    for headers in (
        {"host": odd},
        {"origin": odd},
        {"mcp-session-id": odd},
        {"mcp-protocol-version": odd},
        {"mcp-method": odd},
        {"authorization": odd},
        {"last-event-id": odd},
        {"accept": odd},
        {"content-type": odd},
    ):
        for path in ("/mcp", "/mcp/private", f"/mcp/{'z' * 3_000}", "/nowhere\n\x1b"):
            client = Client(application, "2025-11-25", path=path)
            await outcome(client.visit("POST", b"{", headers=headers))
    lines(log)
