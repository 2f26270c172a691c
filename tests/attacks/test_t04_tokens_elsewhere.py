"""T4, as far as it goes without OAuth: a token counts in its header, and stays."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from mcp_app.conf import BY_TOKEN
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.transports.http import host_and_origin
from tests.asgi_client import Client, outcome
from tests.attacks.callers import Callers, callers
from tests.attacks.matrix import OWN
from tests.marks import NEWEST_FIRST
from tests.serving import counted
from tests.wire.middleware import WireCheck


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"AUTHENTICATION": BY_TOKEN}


@pytest.fixture
async def who(process: Process) -> AsyncIterator[Callers]:
    host_and_origin._warn_about_token.cache_clear()
    async with callers() as made:
        yield made


ELSEWHERE: Final = (
    "?access_token={}",
    "?a=1&access_token={}",
    "?access%5Ftoken={}",
    "?token={}",
)


@pytest.mark.parametrize("where", ELSEWHERE)
@pytest.mark.parametrize("part", ["", "/sse", "/messages"])
async def test_a_token_in_the_address_lets_nobody_in(
    application: WireCheck,
    who: Callers,
    caplog: pytest.LogCaptureFixture,
    where: str,
    part: str,
) -> None:
    token = who.tokens[OWN]
    path = f"{who.path(OWN)}{part}{where.format(token)}"
    caplog.set_level(logging.DEBUG)
    for version in ("2025-11-25", "2026-07-28"):
        client = Client(application, version, path=path)
        for method in ("GET", "POST"):
            visit = client.visit(method, b"{}")
            assert (await outcome(visit)).status == 401
            assert token.encode() not in visit.raw
            # Servers write what they find there into their access logs.
            if "access" in where:
                assert token not in str(visit.scope["query_string"])
    assert token not in caplog.text
    told = [each for each in caplog.records if "in the address" in each.getMessage()]
    # Whoever does it does it each time; people need to be told once.  The address of
    # messages has taken its query away before.
    assert len(told) == ("access" in where and part != "/messages")
    assert (await counted())["Session"] == 0


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_a_token_elsewhere_than_in_its_header(
    application: WireCheck, who: Callers, version: str
) -> None:
    token = who.tokens[OWN]
    for headers in (
        {"cookie": f"access_token={token}; Authorization=Bearer {token}"},
        {"x-authorization": f"Bearer {token}"},
        {"proxy-authorization": f"Bearer {token}"},
        {"x-api-key": token},
        {"mcp-session-id": token},
    ):
        client = Client(application, version, path=who.path(OWN), headers=headers)
        message = {**client.message("tools/list"), "access_token": token}
        assert (await client.sent(message)).status == 401


async def test_user_code_is_not_given_the_token(
    application: WireCheck, who: Callers
) -> None:
    """What a tool knows of its caller has it nowhere."""
    token = who.tokens[OWN]
    for version in REVISIONS:
        path, headers = who.path(OWN), who.headers(OWN)
        client = Client(application, version, path=path, headers=headers)
        await client.open()
        found = await client.call("whoami")
        assert found.result["content"]
        assert token.encode() not in found.raw
