"""The endpoint behind a `URLRouter` of Channels."""

from __future__ import annotations

from typing import Any, cast

import pytest
from channels.routing import ProtocolTypeRouter, URLRouter

from mcp_app.process.runtime import Process
from mcp_app.routing import http_urlpatterns
from tests.asgi_client import Client
from tests.old_client import OldClient
from tests.wire.middleware import Application, WireCheck


@pytest.fixture
def routed(process: Process) -> WireCheck:
    router = ProtocolTypeRouter({"http": URLRouter(cast("Any", http_urlpatterns))})
    return WireCheck(cast("Application", router))


@pytest.mark.parametrize(
    ("path", "server"),
    [
        ("/mcp", "default"),
        ("/mcp/", "default"),
        ("/mcp/tagged", "tagged"),
        ("/mcp/tagged/", "tagged"),
    ],
)
async def test_paths(routed: WireCheck, path: str, server: str) -> None:
    for version in ("2025-11-25", "2026-07-28"):
        client = await Client(routed, version, path=path).open()
        tool = "whoami" if server == "default" else "weather"
        found = await client.call(tool)
        structured = found.result["structuredContent"]
        assert structured.get("server", "tagged") == server


async def test_a_disconnect_reaches_the_call(
    routed: WireCheck, process: Process
) -> None:
    client = Client(routed)
    stream = await client.begin("subscriptions/listen", {"notifications": {}}).begun()
    assert len(process.listeners) == 1
    await stream.leave()
    assert len(process.listeners) == 0


@pytest.mark.parametrize("path", ["/mcp/sse", "//mcp/sse"])
async def test_the_address_for_messages(routed: WireCheck, path: str) -> None:
    """Channels takes more than one slash for one; a client takes a host for it."""
    client = await OldClient(routed, path=path).open()
    assert client.messages.partition("?")[0] == "/mcp/messages"
    await client.leave()
