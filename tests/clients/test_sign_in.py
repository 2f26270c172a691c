"""Python's SDK signs in: it finds out where, registers, is let in, and refreshes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.clients.signing import Site, let_in

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::mcp.shared.exceptions.MCPDeprecationWarning",
    ),
    pytest.mark.xdist_group("signing in"),
]


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

    async def opens(self, address: str) -> None:
        self.asked += 1
        self.answer = let_in(address, **self.choices)

    async def brings(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self.answer["code"],
            state=self.answer["state"],
            iss=self.answer["iss"],
        )


@asynccontextmanager
async def connected(
    url: str, storage: Storage, person: Person
) -> AsyncIterator[Client]:
    metadata = OAuthClientMetadata(
        client_name="A program",
        redirect_uris=[AnyUrl("http://127.0.0.1:1/back")],
    )
    auth = OAuthClientProvider(url, metadata, storage, person.opens, person.brings)
    async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport) as client:
            yield client


async def test_the_sdk_signs_in_and_refreshes(signed: Site) -> None:
    storage, person = Storage(), Person()
    async with connected(signed.url, storage, person) as client:
        result = await client.call_tool("drill_add", {"a": 20, "b": 22})
        assert result.structured_content == {"result": 42}
    assert storage.tokens is not None
    assert storage.tokens.access_token.startswith("mcp_at_")
    # It comes again with what it remembers, once its key is over.
    first = storage.tokens
    storage.tokens = first.model_copy(update={"access_token": "mcp_at_" + "x" * 43})
    async with connected(signed.url, storage, person) as client:
        await client.call_tool("drill_add", {"a": 1, "b": 1})
