"""The endpoint behind a `URLRouter` of Channels, and its names in a URLconf."""

from __future__ import annotations

import json
from typing import Any

import pytest
from channels.routing import URLRouter
from channels.testing import ApplicationCommunicator
from django.urls import resolve, reverse

from mcp_app.process.runtime import Process
from mcp_app.routing import http_urlpatterns
from mcp_app.transports.http.view import endpoint
from tests.asgi_client import BASE_HEADERS, Client, Visit, outcome
from tests.old_client import OldClient
from tests.scripting import STATEFUL, STATELESS
from tests.wire.middleware import WireCheck

HOST = [("host", "localhost")]


def router() -> Any:
    return URLRouter(http_urlpatterns)  # type: ignore[arg-type]


@pytest.fixture
def routed(process: Process) -> WireCheck:
    return WireCheck(router())


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_calls_through_the_router(routed: WireCheck, version: str) -> None:
    client = await Client(routed, version).open()
    assert (await client.call("drill_add", a=20, b=22)).text == "42"
    assert (await client.call("drill_add_sync", a=20, b=22)).text == "42"
    assert routed.violations == []


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/pages", "/mcp/pages/"])
async def test_paths(routed: WireCheck, path: str) -> None:
    client = Client(routed, STATELESS, path=path)
    found = (await client.request("tools/list")).result["tools"]
    # The server `pages` has pages of two.
    assert (len(found) <= 2) is ("pages" in path)


async def test_a_reserved_slug(routed: WireCheck) -> None:
    client = Client(routed, STATELESS, path="/mcp/sse/messages")
    found = await outcome(client.begin("tools/list"))
    assert (found.status, found.headers["content-type"]) == (404, "application/json")


@pytest.mark.parametrize("base", ["/mcp", "/mcp/pages"])
@pytest.mark.parametrize("end", ["", "/"])
async def test_the_addresses_of_the_old_transport(
    routed: WireCheck, base: str, end: str
) -> None:
    client = OldClient(routed, path=f"{base}/sse{end}")
    await client.open()
    assert client.messages.startswith(f"{base}/messages?session_id=")
    assert (await client.request("tools/list")).result["tools"]
    await client.leave()


@pytest.mark.parametrize("path", ["/mcp/health", "/mcp/health/"])
async def test_health(routed: WireCheck, path: str) -> None:
    assert await Visit(routed, "GET", path, HOST).json() == {"status": "ok"}


async def test_a_stream_through_the_router(routed: WireCheck) -> None:
    client = await Client(routed, STATEFUL).open()
    standing = await client.standing()
    assert standing.headers["content-type"] == "text/event-stream"
    await standing.leave()


async def test_as_channels_itself_drives_it(process: Process) -> None:
    make: Any = ApplicationCommunicator
    communicator = make(router(), _scope())
    body = Client(WireCheck(router()), STATEFUL).initialize()
    await communicator.send_input(
        {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}
    )
    start = await communicator.receive_output(timeout=60)
    sent = await communicator.receive_output(timeout=60)
    await communicator.wait()
    assert start["status"] == 200
    assert json.loads(sent["body"])["result"]["protocolVersion"] == STATEFUL


def _scope() -> dict[str, Any]:
    headers = [(name.encode(), value.encode()) for name, value in BASE_HEADERS.items()]
    return {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "root_path": "",
        "headers": headers,
    }


def test_names_of_the_urlconf() -> None:
    assert reverse("mcp_app:endpoint") == "/mcp"
    assert reverse("mcp_app:server", args=["staff"]) == "/mcp/staff"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/staff", "/mcp/staff/"])
def test_paths_of_the_urlconf(path: str) -> None:
    assert resolve(path).func is endpoint
