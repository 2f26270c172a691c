"""openai-agents: on HTTP+SSE, where it begins with the stateless era, and refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from agents.mcp import MCPServerSse, MCPServerStreamableHttp

from tests.clients.facts import PLAIN_TOOLS
from tests.clients.guarded import SAID, Guarded, bearer
from tests.clients.test_tokens import raised
from tests.marks import long_cases

pytestmark = pytest.mark.xdist_group("access tokens")


async def test_it_connects_on_http_sse(endpoints: Callable[[str], str]) -> None:
    """It sends `server/discover` first, and falls back when that is refused."""
    url = f"{endpoints('daphne')}/sse"
    async with MCPServerSse(params={"url": url}) as server:
        tools = await server.list_tools()
        assert len(tools) > PLAIN_TOOLS
        found = await server.call_tool("drill_add", {"a": 20, "b": 22})
        assert found.structured_content == {"result": 42}


@pytest.mark.parametrize("shown", ["wrong", *long_cases("missing", "revoked")])
async def test_it_says_why_it_is_refused(guarded: Guarded, shown: str) -> None:
    """It shows an error only if that names the request."""
    headers = bearer(guarded.refused[shown])
    server = MCPServerStreamableHttp(params={"url": guarded.url, "headers": headers})
    assert str(await raised(server)) == SAID[shown]
