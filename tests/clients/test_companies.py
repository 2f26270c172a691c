"""The official SDKs with an ID-JAG of a company, which no person signs in."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.streamable_http import streamable_http_client

from tests.auth.issuers.loopback_issuer import loopback_issuer
from tests.clients.node import report_of
from tests.clients.people import USER
from tests.clients.signing import site
from tests.clients.test_sign_in import READS, SUM, Storage, added, names

pytestmark = pytest.mark.xdist_group("signing in")

SECRET = "a secret of claude's"
CLIENTS = {"claude": {"secret": SECRET}}


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
async def test_the_python_sdk(tmp_path: Path, method: str) -> None:
    with loopback_issuer() as issuer:
        entry = issuer.entry(path=None, clients=CLIENTS, servers=["signed"])

        async def sign(audience: str, resource: str) -> str:
            return issuer.id_jag(aud=audience, resource=resource, sub=USER)

        with site(tmp_path, issuers={"acme": entry}) as signed:
            origin, storage = signed.url.partition("/mcp")[0], Storage()
            auth = IdentityAssertionOAuthProvider(
                *(signed.url, storage, "claude", SECRET, origin, sign),
                token_endpoint_auth_method=method,  # type: ignore[arg-type]
            )
            async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
                transport = streamable_http_client(signed.url, http_client=http)
                async with Client(transport) as client:
                    assert READS in await names(client)
                    assert await added(client) == SUM
        assert storage.tokens is not None
        assert (storage.tokens.scope, storage.tokens.expires_in) == ("mcp:read", 3_600)


def test_the_typescript_sdk(tmp_path: Path) -> None:
    with loopback_issuer() as issuer:
        entry = issuer.entry(path=None, clients=CLIENTS, servers=["signed"])
        with site(tmp_path, issuers={"acme": entry}) as signed:
            origin, url = signed.url.partition("/mcp")[0], signed.url
            sign = partial(issuer.id_jag, aud=origin, resource=url, sub=USER)
            environment = {"SECRET": SECRET, "BASIC": sign(), "POST": sign()}
            found = report_of("company.mjs", url, origin, **environment)
    # It asks a company for just what this one has signed.
    assert found == {"asked": [origin, url], "basic": [True, SUM], "post": [True, SUM]}
