"""Python's SDK signs in, registered or with a document, and refreshes."""

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

from tests.browser.loopback import Back
from tests.clients.guarded import UNAUTHORIZED
from tests.clients.people import Person
from tests.clients.person import PATIENCE_S
from tests.clients.signing import Site

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.xdist_group("signing in"),
]

NAME: Final = "A program"
COUNT: Final = {"n": 1, "delay_ms": 0}
SUM: Final = {"result": 42}
READS: Final = "drill_add"
CHANGES: Final = "drill_count"
NARROWED: Final = """
from dataclasses import replace
from mcp_app.auth.rights import change_app
from mcp_app.models import AccessToken, Connection
row = Connection.objects.filter(token__name="narrowed").latest("pk")
change_app(row, lambda choice: replace(choice, may=AccessToken.May.READ))
"""


@dataclass
class Storage:
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    provider: OAuthClientProvider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass
class Window:
    owner: Person
    back: Back
    choices: dict[str, str] = field(default_factory=dict)
    count: int = 0
    refusals: list[str] = field(default_factory=list)

    async def open(self, address: str) -> None:
        self.count += 1
        await asyncio.to_thread(self.owner.lets_in, address, **self.choices)

    async def answer(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**self.back.gets())

    async def watch(self, answer: httpx2.Response) -> None:
        if answer.status_code == UNAUTHORIZED:
            self.refusals.append(answer.headers["www-authenticate"])


@pytest.fixture
def window(kim: Person, back: Back) -> Window:
    return Window(kim, back)


@pytest.fixture(params=["registers", "has a document"])
def document(request: pytest.FixtureRequest, signed: Site, back: Back) -> str | None:
    if request.param == "registers":
        return None
    signed.web.document = {
        "client_id": signed.web.url,
        "client_name": NAME,
        "redirect_uris": [back.redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    }
    return signed.web.url


@asynccontextmanager
async def connected(
    url: str,
    storage: Storage,
    window: Window,
    name: str = NAME,
    document: str | None = None,
) -> AsyncIterator[Client]:
    metadata = OAuthClientMetadata(
        client_name=name, redirect_uris=[AnyUrl(window.back.redirect)]
    )
    auth = OAuthClientProvider(
        url, metadata, storage, window.open, window.answer, document
    )
    storage.provider = auth
    async with httpx2.AsyncClient(
        auth=auth, timeout=30, event_hooks={"response": [window.watch]}
    ) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport) as client:
            yield client


async def added(client: Client) -> object:
    return (await client.call_tool("drill_add", {"a": 20, "b": 22})).structured_content


async def names(client: Client) -> set[str]:
    return {each.name for each in (await client.list_tools()).tools}


async def test_the_sdk_signs_in_and_refreshes(
    signed: Site, window: Window, document: str | None
) -> None:
    storage = Storage()
    async with connected(signed.url, storage, window, document=document) as client:
        assert READS in await names(client)
        assert await added(client) == SUM
        first = storage.tokens
        assert first is not None
        assert first.access_token.startswith("mcp_at_")
        # The time of its key is over.
        assert storage.provider is not None
        storage.provider.context.token_expiry_time = 1.0
        assert await added(client) == SUM
    second = storage.tokens
    assert second is not None
    assert second.access_token != first.access_token
    assert second.refresh_token != first.refresh_token
    assert window.count == 1
    assert storage.client is not None
    assert (storage.client.client_id == document) == (document is not None)
    # It comes again with a key that is refused: it does not refresh then.
    storage.tokens = second.model_copy(update={"access_token": "mcp_at_" + "x" * 43})
    async with connected(signed.url, storage, window, document=document) as client:
        assert await added(client) == SUM
    assert window.count == 2


async def test_the_sdk_signs_in_anew_after_an_end(
    signed: Site, window: Window, document: str | None
) -> None:
    """Its next call is refused, and asks the person again by itself."""
    storage = Storage()
    async with connected(signed.url, storage, window, document=document) as client:
        assert await added(client) == SUM
        before, program = storage.tokens, storage.client
        window.refusals.clear()
        await asyncio.to_thread(window.owner.ends, signed.url, NAME)
        assert await added(client) == SUM
    assert window.count == 2
    [told] = window.refusals
    assert 'error="invalid_token"' in told
    assert 'error_description="This connection has ended. Sign in again."' in told
    assert storage.client is program, "It registered again."
    assert storage.tokens is not None
    assert before is not None
    assert storage.tokens.refresh_token != before.refresh_token


async def test_the_sdk_asks_for_more_than_a_person_allowed(
    signed: Site, window: Window
) -> None:
    """Its next call opens the page again; what it may is the person's alone."""
    storage = Storage()
    window.choices["may"] = "read"
    async with connected(signed.url, storage, window) as client:
        assert READS in await names(client)
        assert CHANGES not in await names(client)
        assert await added(client) == SUM
        assert window.count == 1
        with pytest.raises(MCPError, match=f"{CHANGES} can change something"):
            await client.call_tool(CHANGES, COUNT)
        assert window.count == 2
        assert storage.tokens is not None
        assert storage.tokens.scope == "mcp:read"
        window.choices["may"] = "change"
        assert not (await client.call_tool(CHANGES, COUNT)).is_error
    assert window.count == 3
    assert storage.tokens.scope == "mcp:read mcp:change"


async def test_it_is_told_when_it_may_less(signed: Site, window: Window) -> None:
    async with (
        connected(signed.url, Storage(), window, "narrowed") as client,
        client.listen(tools_list_changed=True) as listening,
    ):
        assert CHANGES in await names(client)
        result = await client.call_tool(CHANGES, COUNT)
        assert not result.is_error
        await asyncio.to_thread(signed.operator.runs, NARROWED)
        async with asyncio.timeout(PATIENCE_S):
            assert await anext(aiter(listening)) == ToolsListChanged()
        assert CHANGES not in await names(client)
        assert await added(client) == SUM
    assert window.count == 1
