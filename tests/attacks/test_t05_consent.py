"""T5, as far as it goes without OAuth: nothing leads a client to a page of consent."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.conf import BY_TOKEN
from tests.asgi_client import Client, outcome
from tests.attacks.callers import Callers
from tests.attacks.matrix import OWN
from tests.attacks.test_t04_tokens_elsewhere import who
from tests.wire.middleware import WireCheck

__all__ = ["who"]


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"AUTHENTICATION": BY_TOKEN}


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource/mcp/by-token",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/mcp/by-token/.well-known/oauth-protected-resource",
    ],
)
async def test_nothing_is_said_of_an_authorization_server(
    application: WireCheck, who: Callers, path: str
) -> None:
    found = Client(application, path=path).visit("GET")
    await found.body()
    assert found.status in (401, 404)
    refused = await outcome(Client(application, path=who.path(OWN)).begin("ping"))
    assert refused.headers["www-authenticate"] == 'Bearer realm="mcp"'
