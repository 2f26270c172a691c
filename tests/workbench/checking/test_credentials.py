"""Where a token may be sent, and how long one lives that is made for a check."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from mcp_app.models import AccessToken, Server
from mcp_app.workbench.checking.client import GOOD_FOR, token_for, why_no_token
from tests.published import published


@pytest.mark.parametrize(
    ("url", "shown", "made"),
    [
        ("https://mcp.example.com/mcp", True, True),
        ("https://MCP.example.com:8443/mcp", True, True),
        ("https://a.internal.example/mcp", True, True),
        ("https://named.example/mcp", True, True),
        ("http://127.0.0.1:8000/mcp", True, True),
        ("http://localhost:8000/mcp", True, False),
        ("https://mcp.example.org/mcp", True, False),
        ("https://mcp.example.com.evil.example/mcp", True, False),
        ("http://mcp.example.com/mcp", False, False),
        ("http://127.0.0.1.evil.example/mcp", False, False),
    ],
)
def test_where_tokens_go(url: str, shown: bool, made: bool, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["*", "127.0.0.1", ".internal.example"]
    settings.MCP = {
        "PUBLIC_URL": "https://mcp.example.com/mcp",
        "HOSTS": ["named.example"],
    }
    assert (why_no_token(url, made_here=False) == "") is shown
    assert (why_no_token(url, made_here=True) == "") is made


@pytest.mark.django_db
def test_a_token_reads_at_one_server_and_ends() -> None:
    server = published(Server(slug="team", access="token"))
    user = User.objects.create_user("maria")
    with token_for(user, server) as token:
        row = AccessToken.objects.of(token).get()
        assert row.user == user
        assert row.may == "read"
        assert [*row.servers.all()] == [server]
        assert row.expires is not None
        assert row.expires - row.created <= GOOD_FOR
        assert row.revoked is None
    row.refresh_from_db()
    assert row.revoked is not None
