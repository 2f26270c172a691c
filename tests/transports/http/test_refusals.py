"""What is refused is counted by its reason and client, and told by the process."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from mcp_app.audit.call_log import Reason
from mcp_app.models import Worker
from mcp_app.models.workers import Report
from mcp_app.pools.database import reader
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
from mcp_app.transports.http.responses import client_of, reason_of
from tests.asgi_client import Client
from tests.wire.middleware import WireCheck

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


def test_a_server_that_is_not_there() -> None:
    assert reason_of(RequestRefused(404, ""), at_server=False) == Reason.SERVER


def test_the_client_is_what_it_calls_itself() -> None:
    assert client_of([(b"host", b"a"), (b"user-agent", b"curl/8 \xe9")]) == "curl/8 é"
    assert client_of([]) == ""


def said(process: Process) -> dict[tuple[str, str], int]:
    return {
        (reason, client): count for _, reason, client, count in process.report().refused
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
    report = process.report()
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
