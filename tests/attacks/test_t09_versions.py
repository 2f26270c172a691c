"""T9: what a session was opened with, a header and a body say; one table for all.

Revisions without the header give it no meaning; 2026-07-28 has no session.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from mcp_app.protocol.revisions import REVISIONS
from tests.asgi_client import Client, JsonObject, outcome
from tests.serving import Connect, counted

NEWEST: Final = "2026-07-28"
STATEFUL: Final = [name for name, each in REVISIONS.items() if each.sessions]
HEADERS: Final = (None, *REVISIONS, "2027-01-01")


def expected(session: str, header: str | None, in_body: bool) -> int:
    if header is not None and header not in REVISIONS:
        return 400
    if header == NEWEST or in_body:
        # A whole request of the stateless era says the same in both places.
        return 200 if header == NEWEST and in_body else 400
    if header in (None, session):
        return 200
    return 400 if REVISIONS[session].version_header else 200


@pytest.mark.parametrize(("session", "header"), list(product(STATEFUL, HEADERS)))
async def test_versions_of_sessions_headers_and_bodies(
    connect: Connect, session: str, header: str | None
) -> None:
    client = await connect(session)
    before = await counted()
    modern = Client(client.application, NEWEST)
    for in_body in (False, True):
        sender = modern if in_body else client
        params: JsonObject = {"name": "drill_add", "arguments": {"a": 1, "b": 2}}
        message = sender.message("tools/call", params)
        routing = {"mcp-method": "tools/call", "mcp-name": "drill_add"}
        named = routing if header == NEWEST else {}
        headers = {"mcp-protocol-version": header, **named}
        found = await client.sent(message, headers)
        status = expected(session, header, in_body)
        assert found.status == status, (session, header, in_body, found.raw)
        assert ("result" in found.answer) is (status == 200)
    # What has no session touches none.
    assert await counted() == before
    assert (await client.call("drill_add", a=1, b=2)).text == "3"


async def test_a_request_of_the_stateless_era_has_no_session(
    connect: Connect,
) -> None:
    client = await connect(NEWEST)
    for header in (None, "x" * 43):
        headers = {"mcp-session-id": header}
        found = await outcome(client.begin("tools/list", headers=headers))
        assert found.status == 200
        assert "mcp-session-id" not in found.headers
    assert (await counted())["Session"] == 0
