"""People who make tokens, and a token whose text is known before it is made."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from mcp_app.models import AccessToken

CANARY: Final = "mcp_0canary0of0forty0characters0and0some0more0"
ONCE: Final = re.compile(r'name="once" value="([0-9a-f]{32})"')
SHOWN: Final = re.compile(r'<pre[^>]* id="mcp-token"[^>]*>(mcp_[\w-]+)</pre>')


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana", password="a-Long-enough-1")


@pytest.fixture
def bert() -> User:
    return User.objects.create_user("bert")


@pytest.fixture
def hers(client: Client, ana: User) -> Client:
    """Return the browser of somebody who is no member of the staff."""
    client.force_login(ana)
    return client


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(
        "mcp_app.models.tokens.secrets.token_urlsafe",
        lambda _size: CANARY.removeprefix("mcp_"),
    )
    return CANARY


def account(name: str, *key: int) -> str:
    return reverse(f"mcp_account:{name}", args=key)


def filled(client: Client, url: str, **typed: Any) -> dict[str, Any]:
    found = ONCE.search(client.get(url).content.decode())
    assert found
    usual = {"name": "a laptop", "may": "read", "ends": "30", "once": found[1]}
    return {**usual, **typed}


def made(client: Client, url: str, **typed: Any) -> str:
    response = client.post(url, filled(client, url, **typed))
    return shown(response)


def shown(response: Any) -> str:
    found = SHOWN.search(response.content.decode())
    assert found, response.content.decode()
    return found[1]


Make = Callable[..., AccessToken]


@pytest.fixture
def token() -> Make:
    def make(user: User, **columns: Any) -> AccessToken:
        given = {"user": user, "name": "a laptop", **columns}
        return AccessToken.objects.make(**given)[0]

    return make
