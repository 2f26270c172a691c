"""Whole answers: their headers, and clients that have left."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import pytest

from mcp_app.audit.turned_away import Reason
from mcp_app.models import Server, Worker
from mcp_app.models.workers import Report
from mcp_app.pools.database import reader, writer
from mcp_app.process import current, heartbeat
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import (
    HeaderMismatch,
    IncompleteMeta,
    InternalError,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    ProtocolError,
    RequestRefused,
    Unavailable,
    UnsupportedProtocolVersion,
)
from mcp_app.transports.http.responses import client_of, reason_of, send_json
from tests.asgi_client import Client, Visit
from tests.process.outages import away
from tests.wire.middleware import WireCheck


async def test_a_client_that_has_left_is_told_nothing() -> None:
    async def gone(_message: Any) -> None:
        raise OSError

    await send_json(gone, 200, b"{}", [])


AGENT: Final = {"user-agent": "curl/8"}
WRONG: Final = {"WWW-Authenticate": 'Bearer realm="mcp", error="invalid_token"'}
FAILURE: Final = InternalError("The server failed.")
FAILURE.http_status = 500


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RequestRefused(421, ""), Reason.HOST),
        (RequestRefused(403, ""), Reason.ORIGIN),
        (RequestRefused(401, "", {"WWW-Authenticate": "Bearer"}), Reason.NOBODY),
        (RequestRefused(401, "", WRONG), Reason.CREDENTIALS),
        (RequestRefused(403, "", WRONG), Reason.CREDENTIALS),
        (RequestRefused(404, ""), Reason.SESSION),
        (RequestRefused(405, ""), Reason.METHOD),
        (RequestRefused(406, ""), Reason.ACCEPT),
        (RequestRefused(415, ""), Reason.CONTENT_TYPE),
        (RequestRefused(408, ""), Reason.SLOW),
        (RequestRefused(413, ""), Reason.BODY),
        (RequestRefused(431, ""), Reason.HEADERS_SIZE),
        (RequestRefused(400, ""), Reason.HEADERS),
        (RequestRefused(501, ""), Reason.OTHER),
        (HeaderMismatch(""), Reason.HEADERS),
        (UnsupportedProtocolVersion("1", ()), Reason.VERSION),
        (ParseError(""), Reason.JSON),
        (InvalidRequest(""), Reason.MESSAGE),
        (IncompleteMeta(""), Reason.MESSAGE),
        (MethodNotFound(""), Reason.MESSAGE),
        (Unavailable(""), Reason.UNAVAILABLE),
        (Unavailable("", http_status=429), Reason.TOO_MANY),
        (FAILURE, Reason.FAILED),
    ],
)
def test_reasons(error: ProtocolError, reason: Reason) -> None:
    assert reason_of(error, at_server=True) == reason
    assert reason_of(RequestRefused(404, ""), at_server=False) == Reason.SERVER


def test_the_client_is_what_it_calls_itself() -> None:
    assert client_of([(b"host", b"a"), (b"user-agent", b"curl/8 \xe9")]) == "curl/8 é"
    assert client_of([]) == ""


def said(process: Process) -> dict[tuple[str, str], int]:
    return {
        (reason, client): count
        for _, reason, client, count in process.build_report().refused
    }


async def test_what_is_refused_is_counted(
    application: WireCheck, process: Process
) -> None:
    client = Client(application)
    message = client.message("tools/call", {"name": "drill_add", "arguments": {}})
    for headers in ({"host": "evil.example"}, {"content-type": "text/plain"}):
        await client.sent(message, {**headers, **AGENT})
        await client.sent(message, headers)
    # A call is none, however it ends.
    await client.sent(message, AGENT)
    assert said(process) == {
        ("host", "curl/8"): 1,
        ("host", ""): 1,
        ("content_type", "curl/8"): 1,
        ("content_type", ""): 1,
    }
    report = process.build_report()
    told = Report.of_text(report.as_text()).refused
    assert [tuple(each) for each in told] == list(report.refused)


async def test_where_everything_is_refused_others_learn_of_it(
    application: WireCheck, process: Process
) -> None:
    client = Client(application)
    await client.sent(client.initialize(), {"host": "evil.example"})

    def rows() -> list[Any]:
        return list(Worker.objects.values_list("report", flat=True))

    async with asyncio.timeout(60):
        while not [text for text in await reader.run(rows) if '"host"' in text]:
            await asyncio.sleep(0.05)


# -- health ----------------------------------------------------------------------------


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
    monkeypatch.setattr(current, "_current", None)
    settings.MCP = {"CALL_CONTEXT_MANAGERS": ["nowhere.at_all"]}
    await refused(application, "settings")
    assert "No module named 'nowhere'" in caplog.text


async def test_no_server_can_stand_there(application: WireCheck) -> None:
    row = Server(slug="health", access="public")
    await writer.run(Server.objects.bulk_create, [row])
    try:
        assert json.loads(await asked(application).body()) == OK
    finally:
        await writer.run(Server.objects.filter(slug="health").delete)
