"""Connected apps in words, and the calls that are counted for them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.contrib.auth.models import User

from mcp_app.account import connected_apps
from mcp_app.account.connected_apps import (
    ended_words,
    identity_claim,
    permission_words,
    program_host,
    recent_calls_of,
    until_words,
)
from mcp_app.models import AccessToken, Connection
from mcp_app.protocol.oauth.addresses import is_on_own_computer
from tests.audit.rows import call

HERE = "a program on this computer"


@pytest.mark.parametrize(
    ("client_host", "redirect", "host", "claim"),
    [
        ("claude.ai", "https://claude.ai/cb", "claude.ai", "a document of claude.ai."),
        ("claude.ai", "http://[::1]:9/cb", HERE, "of claude.ai. Nobody can check"),
        ("", "https://cursor.com/cb", "cursor.com", "gave itself its name."),
        ("", "cursor://x/cb", HERE, "gave itself its name."),
    ],
)
def test_which_program(client_host: str, redirect: str, host: str, claim: str) -> None:
    row = Connection(
        client_host=client_host, redirect_uri=redirect, redirect_host="cursor.com"
    )
    assert program_host(row) == host
    assert is_on_own_computer(redirect) is (host == HERE)
    assert claim in identity_claim(row)


def test_words() -> None:
    assert permission_words("read") == "only look things up"
    assert permission_words("change") == "look things up and change them"
    assert until_words(Connection()) == "never"
    assert ended_words(1) == "Ended: 1 connected app lets nobody in any more."


@pytest.mark.django_db
@pytest.mark.databases
def test_calls_are_counted_by_app_up_to_a_bound(
    ana: User, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    now = int(time.time() * 1_000)
    for number in range(5):
        family = "f" * 32 if number else "g" * 32
        call(user_name="ana", principal_client=family, time_ms=now - number)
    rows = [AccessToken(family=each * 32) for each in "fgh"]
    with django_assert_num_queries(1):
        calls = recent_calls_of(ana)
    assert [calls.count_words(row) for row in rows] == ["4", "1", "0"]
    monkeypatch.setattr(connected_apps, "MOST_CALLS", 3)
    some = recent_calls_of(ana)
    assert [some.count_words(row) for row in rows] == [
        "2 or more",
        "1 or more",
        "0 or more",
    ]
