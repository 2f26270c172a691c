"""What a load balancer is told, whoever it says it is."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from mcp_app.models import Server
from mcp_app.pools.database import writer
from mcp_app.process import background, heartbeat
from mcp_app.process.runtime import Process
from tests.asgi_client import Visit
from tests.process.outages import away
from tests.wire.middleware import WireCheck

OK: Final = {"status": "ok"}
PATHS: Final = ("/mcp/health", "/mcp/health/")
HOST: Final = [("host", "localhost")]
HEADERS: Final[list[list[tuple[str, str]]]] = [
    [("host", "10.0.0.7:8000")],
    [("host", "localhost"), ("origin", "https://evil.example")],
    [("host", "localhost"), ("mcp-session-id", "x"), ("authorization", "Bearer y")],
]


def asked(application: WireCheck, method: str = "GET") -> Visit:
    return Visit(application, method, PATHS[0], HOST)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("headers", HEADERS)
async def test_anybody_may_ask(
    application: WireCheck, path: str, headers: list[tuple[str, str]]
) -> None:
    visit = Visit(application, "GET", path, headers)
    assert await visit.json() == OK
    assert visit.headers == {
        "content-type": "application/json",
        "content-length": str(len(visit.raw)),
        "cache-control": "no-store",
    }


@pytest.mark.parametrize("headers", [[], [("host", "")]])
async def test_a_host_is_missing(
    application: WireCheck, headers: list[tuple[str, str]]
) -> None:
    visit = Visit(application, "GET", PATHS[0], headers)
    assert await visit.body() == b""
    assert visit.status == 400


async def test_http_1_0_has_no_host(application: WireCheck) -> None:
    visit = Visit(application, "GET", PATHS[0], [])
    visit.scope["http_version"] = "1.0"
    assert await visit.json() == OK


async def test_head_has_the_headers_alone(application: WireCheck) -> None:
    whole, short = asked(application), asked(application, "HEAD")
    await whole.body()
    assert await short.body() == b""
    assert (short.status, short.headers) == (whole.status, whole.headers)


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "PUT", "BREW"])
async def test_other_methods(application: WireCheck, method: str) -> None:
    visit = asked(application, method)
    assert await visit.body() == b""
    assert (visit.status, visit.headers["allow"]) == (405, "GET, HEAD")


async def test_a_process_that_stops(process: Process, application: WireCheck) -> None:
    process.stopping = True
    await refused(application, "stopping")


@pytest.mark.databases
async def test_a_database_that_is_away(
    process: Process, application: WireCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "SHARED_S", 0.0)
    monkeypatch.setattr(heartbeat, "PATIENCE_S", 60.0)
    with away():
        await refused(application, "database")
    process.gate._failed = 0.0
    assert await asked(application).json() == OK


async def refused(application: WireCheck, failing: str) -> None:
    """It says what fails, and nothing else; in the headers alone that it does."""
    visit, short = asked(application), asked(application, "HEAD")
    assert await visit.json() == {"status": "unavailable", "failing": failing}
    assert await short.body() == b""
    for each in (visit, short):
        assert each.status == 503
        assert int(each.headers["retry-after"]) > 0


async def test_settings_that_cannot_be_read(
    process: Process,
    application: WireCheck,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(background, "_current", None)
    settings.MCP = {"CALL_CONTEXT_MANAGERS": ["nowhere.at_all"]}
    await refused(application, "settings")
    assert "No module named 'nowhere'" in caplog.text


async def test_no_server_can_stand_there(application: WireCheck) -> None:
    """Even one that got past every rule: the answer is the same."""
    row = Server(slug="health", access="public")
    await writer.run(Server.objects.bulk_create, [row])
    try:
        assert json.loads(await asked(application).body()) == OK
    finally:
        await writer.run(Server.objects.filter(slug="health").delete)
