"""Python's SDK signs in: it finds out where, registers, is let in, and refreshes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ToolsListChanged
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.clients.guarded import UNAUTHORIZED
from tests.clients.person import PATIENCE_S
from tests.clients.signing import Site, let_in

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::mcp.shared.exceptions.MCPDeprecationWarning",
    ),
    pytest.mark.xdist_group("signing in"),
]

ADD: Final = {"a": 20, "b": 22}
SUM: Final = {"result": 42}
READS: Final = "drill_add"
CHANGES: Final = "drill_count"
UNKNOWN: Final = f"Unknown tool: {CHANGES}"
NARROWED: Final = """
from dataclasses import replace
from mcp_app.auth.app_changes import change
from mcp_app.models import AccessToken, Connection
row = Connection.objects.get(token__name="narrowed")
change(row, lambda choice: replace(choice, may=AccessToken.May.READ))
"""


@dataclass
class Storage:
    """What a program remembers."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass
class Person:
    """Whoever sits in front of the browser that a program opens."""

    choices: dict[str, str] = field(default_factory=dict)
    answer: dict[str, str] = field(default_factory=dict)
    asked: int = 0
    refusals: list[str] = field(default_factory=list)
    """The challenges that their program was sent."""

    async def opens(self, address: str) -> None:
        self.asked += 1
        self.answer = let_in(address, **self.choices)

    async def brings(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self.answer["code"],
            state=self.answer["state"],
            iss=self.answer["iss"],
        )

    async def sees(self, answer: httpx2.Response) -> None:
        if answer.status_code == UNAUTHORIZED:
            self.refusals.append(answer.headers["www-authenticate"])


@asynccontextmanager
async def connected(
    url: str, storage: Storage, person: Person, name: str = "A program"
) -> AsyncIterator[Client]:
    """Connect a program that is called so."""
    metadata = OAuthClientMetadata(
        client_name=name,
        redirect_uris=[AnyUrl("http://127.0.0.1:1/back")],
    )
    auth = OAuthClientProvider(url, metadata, storage, person.opens, person.brings)
    async with httpx2.AsyncClient(
        auth=auth, timeout=30, event_hooks={"response": [person.sees]}
    ) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport) as client:
            yield client


async def added(client: Client) -> object:
    return (await client.call_tool("drill_add", ADD)).structured_content


async def names(client: Client) -> set[str]:
    return {each.name for each in (await client.list_tools()).tools}


@pytest.mark.covers("L-AUTH-001", "S-AUTH-003")
async def test_the_sdk_signs_in_and_refreshes(signed: Site) -> None:
    storage, person = Storage(), Person()
    async with connected(signed.url, storage, person) as client:
        assert await added(client) == SUM
    assert storage.tokens is not None
    assert storage.tokens.access_token.startswith("mcp_at_")
    # It comes again with what it remembers, once its key is over.
    first = storage.tokens
    storage.tokens = first.model_copy(update={"access_token": "mcp_at_" + "x" * 43})
    async with connected(signed.url, storage, person) as client:
        await added(client)


async def test_the_sdk_signs_in_anew_after_an_end(signed: Site) -> None:
    """Its next call is refused, and asks the person again by itself."""
    storage, person = Storage(), Person()
    async with connected(signed.url, storage, person, "ended") as client:
        assert await added(client) == SUM
        before, program = storage.tokens, storage.client
        person.refusals.clear()
        await asyncio.to_thread(signed.ends, "ended")
        assert await added(client) == SUM
    assert person.asked == 2
    [told] = person.refusals
    assert 'error="invalid_token"' in told
    assert 'error_description="This connection has ended. Sign in again."' in told
    assert storage.client is program, "It registered again."
    assert storage.tokens is not None
    assert before is not None
    assert storage.tokens.refresh_token != before.refresh_token


async def test_what_a_person_did_not_allow_is_not_there(signed: Site) -> None:
    storage, person = Storage(), Person({"may": "read"})
    async with connected(signed.url, storage, person) as client:
        assert READS in await names(client)
        assert CHANGES not in await names(client)
        assert await added(client) == SUM
        with pytest.raises(MCPError, match=UNKNOWN):
            await client.call_tool(CHANGES)
    assert person.asked == 1
    assert storage.tokens is not None
    assert storage.tokens.scope == "mcp:read"


async def test_it_is_told_when_it_may_less(signed: Site) -> None:
    storage, person = Storage(), Person()
    async with (
        connected(signed.url, storage, person, "narrowed") as client,
        client.listen(tools_list_changed=True) as listening,
    ):
        assert CHANGES in await names(client)
        result = await client.call_tool(CHANGES, {"n": 1, "delay_ms": 0})
        assert not result.is_error
        await asyncio.to_thread(signed.operator.runs, NARROWED)
        async with asyncio.timeout(PATIENCE_S):
            assert await anext(aiter(listening)) == ToolsListChanged()
        assert CHANGES not in await names(client)
        with pytest.raises(MCPError, match=UNKNOWN):
            await client.call_tool(CHANGES)
        assert await added(client) == SUM
    # Nobody was asked for more: what it may is the person's alone.
    assert person.asked == 1
