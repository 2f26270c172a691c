"""The official SDKs as programs with a key of their own, which no person signs in."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.auth.extensions.client_credentials import (
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.streamable_http import streamable_http_client

from tests.auth.issuers.loopback_issuer import private_key
from tests.clients.node import report_of
from tests.clients.people import USER
from tests.clients.signing import Site
from tests.clients.test_sign_in import READS, SUM, Storage, added, names
from tests.oauth.program_rows import pem

pytestmark = pytest.mark.xdist_group("signing in")


@pytest.fixture
def client_id(signed: Site, tmp_path: Path) -> str:
    (tmp_path / "private.pem").write_text(pem(private_key("RS256"), private=True))
    public = tmp_path / "public.pem"
    public.write_text(pem(private_key("RS256")))
    new = ("mcp_token", "new", USER, "a job", "--public-key", str(public))
    return signed.operator.types(*new).strip()


async def test_the_python_sdk(signed: Site, client_id: str, tmp_path: Path) -> None:
    signing = SignedJWTParameters(
        issuer=client_id,
        subject=client_id,
        signing_key=(tmp_path / "private.pem").read_text(),
    )
    storage = Storage()
    auth = PrivateKeyJWTOAuthProvider(
        signed.url,
        storage,
        client_id,
        signing.create_assertion_provider(),
        issuer=signed.url.partition("/mcp")[0],
    )
    async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
        transport = streamable_http_client(signed.url, http_client=http)
        async with Client(transport) as client:
            assert READS in await names(client)
            assert await added(client) == SUM
    assert storage.tokens is not None
    assert storage.tokens.access_token.startswith("mcp_at_")


@pytest.mark.long
def test_the_typescript_sdk(signed: Site, client_id: str, tmp_path: Path) -> None:
    issuer = signed.url.partition("/mcp")[0]
    key = str(tmp_path / "private.pem")
    found = report_of("program_key.mjs", signed.url, issuer, client_id, key)
    assert found["listed"] > 1
    assert found["structuredContent"] == SUM
