"""T18, as far as it goes without session authentication: what a page of another site
can send without being asked (a form, an image, a link) runs nothing."""

from __future__ import annotations

import json
from typing import Final

import pytest

from tests.asgi_client import PREFIX, outcome
from tests.behaviours import Stage
from tests.marks import NEWEST_FIRST
from tests.serving import Connect, counted

SIMPLE: Final = (
    "text/plain",
    "text/plain; charset=utf-8",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonx",
    "text/json",
    "application/json, text/plain",
    None,
)
"""Content types; a browser sends the first four without a preflight."""
COOKIE: Final = "sessionid=0123456789abcdef; csrftoken=abc"


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_forms_run_nothing(connect: Connect, stage: Stage, version: str) -> None:
    client = await connect(version)
    before = await counted()
    message = client.message("tools/call", {"name": "mirrors", "arguments": {}})
    body = json.dumps(message).encode()
    for kind in SIMPLE:
        headers = {"content-type": kind, "cookie": COOKIE, "mcp-method": "tools/call"}
        found = await outcome(client.visit("POST", body, headers=headers))
        assert found.status == 415, kind
        # As a form encodes it: the JSON is the name of a field.
        found = await outcome(client.visit("POST", body + b"=", headers=headers))
        assert found.status == 415, kind
    assert stage.told == []
    assert await counted() == before


async def test_a_link_runs_nothing(connect: Connect, stage: Stage) -> None:
    client = await connect("2026-07-28")
    client.path += "?method=tools/call&name=mirrors"
    for method, status in (("GET", 405), ("HEAD", 405), ("PUT", 405), ("PATCH", 405)):
        headers = {"cookie": COOKIE, "mcp-protocol-version": None}
        found = await outcome(client.visit(method, headers=headers))
        assert found.status == status
    assert stage.told == []


async def test_a_cookie_is_nobody(connect: Connect) -> None:
    """A server that is not public lets no session cookie in."""
    client = await connect("2026-07-28", path="/mcp/private")
    found = await client.request("tools/list", headers={"cookie": COOKIE})
    assert found.status == 401
    assert "set-cookie" not in found.headers


async def test_no_answer_may_be_read_with_cookies(connect: Connect) -> None:
    client = await connect("2026-07-28")
    meta = {"_meta": {f"{PREFIX}logLevel": "debug"}}
    origin = {"origin": "http://localhost", "cookie": COOKIE}
    for visit in (
        client.visit("OPTIONS", headers=origin),
        client.begin("tools/list", meta, headers=origin),
    ):
        found = await outcome(visit)
        assert found.headers["access-control-allow-origin"] == "http://localhost"
        assert "access-control-allow-credentials" not in found.headers
