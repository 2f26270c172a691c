"""JWTs of an issuer that nobody here wrote: oidc-provider, as a program."""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from django.contrib.auth import get_user_model
from pytest_django import Settings

from mcp_app.auth import issuer_keys
from mcp_app.auth.caches import authentication_cache
from mcp_app.models import Server
from mcp_app.pools.database import writer
from tests.asgi_client import Client, Outcome
from tests.clients.node import HERE, MODULES, NODE, PATIENCE_S
from tests.drill.programs import Program
from tests.published import published
from tests.secrecy import note
from tests.wire.middleware import WireCheck

SITE: Final = "https://shop.example.com"
BY: Final = "/mcp/by-provider"
SECRET: Final = secrets.token_urlsafe(32)


class Provider(Program):
    issuer = ""

    def token(self, path: str = BY, scope: str = "mcp:read mcp:change") -> str:
        form = {"grant_type": "client_credentials", "resource": f"{SITE}{path}"}
        body = urlencode({**form, "scope": scope}).encode()
        asked = Request(f"{self.issuer}/token", body)  # noqa: S310 - on loopback
        pair = base64.b64encode(f"ana:{SECRET}".encode()).decode()
        asked.add_header("Authorization", f"Basic {pair}")
        with urlopen(asked, timeout=PATIENCE_S) as answer:  # noqa: S310 - on loopback
            token = str(json.load(answer)["access_token"])
        note(token)
        return token

    def change_keys(self) -> None:
        self.say("change")
        assert self.hear(PATIENCE_S) == "changed\n"


@pytest.fixture
def provider() -> Iterator[Provider]:
    if not MODULES.is_dir():
        pytest.skip("node_modules is missing: `make node` installs it.")
    given = {**os.environ, "NO_COLOR": "1", "CLIENT_SECRET": SECRET}
    with Provider([NODE, HERE / "oidc_provider.mjs"], env=given, pipes=True) as made:
        made.issuer = made.hear(PATIENCE_S).strip()
        yield made


@pytest.fixture
def mcp(provider: Provider) -> dict[str, Any]:
    entry = {
        "path": "mcp_app.authentication.issuer",
        "issuer": provider.issuer,
        "claim": "sub",
        "field": "username",
        "networks": ["127.0.0.1/32"],
    }
    site = {"PUBLIC_URL": SITE, "HOSTS": ["localhost"]}
    return {"AUTHENTICATION": {"provider": entry}, **site}


@pytest.fixture(autouse=True)
async def _rows(served_rows: None) -> AsyncIterator[None]:
    server = Server(slug="by-provider", access="provider", page_size=1000)
    user: Any = get_user_model()(username="ana")
    await writer.run(user.save)
    await writer.run(published, server)
    yield
    authentication_cache.forget_all()
    await writer.run(server.delete)
    await writer.run(user.delete)


async def listing(application: WireCheck, token: str) -> Outcome:
    # Nothing is to come from what was answered before.
    authentication_cache.forget_all()
    headers = {"authorization": f"Bearer {token}"}
    return await Client(application, path=BY, headers=headers).request("tools/list")


async def test_its_tokens_let_in_while_its_keys_are_known(
    application: WireCheck,
    provider: Provider,
    mcp: dict[str, Any],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1_000.0
    monkeypatch.setattr(issuer_keys, "monotonic", lambda: now)
    first = provider.token()
    headers = {"authorization": f"Bearer {first}"}
    found = await Client(application, path=BY, headers=headers).call("drill_whoami")
    assert found.result["structuredContent"]["user"] == "ana"
    names = [
        {each["name"] for each in (await listing(application, token)).result["tools"]}
        for token in (provider.token(scope="mcp:read"), first)
    ]
    assert "drill_ledger" in names[1] - names[0]
    other = await listing(application, provider.token("/mcp/other"))
    assert other.error["message"] == "The token is for another audience."
    nothing = await listing(application, provider.token(scope=""))
    assert nothing.status == 403

    provider.change_keys()
    second = provider.token()
    # The set was read a moment ago.
    assert (await listing(application, second)).status == 401
    now += issuer_keys.AGAIN_S
    assert (await listing(application, second)).status == 200
    # Who signed with a key that is gone signs no more.
    assert (await listing(application, first)).status == 401

    provider.stop()
    now += issuer_keys.FRESH_S
    assert (await listing(application, second)).status == 200
    # A process that has read nothing cannot know.
    settings.MCP = {**settings.MCP}
    away = await listing(application, second)
    assert (away.status, away.headers["retry-after"]) == (503, "5")
