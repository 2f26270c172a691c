"""Entries of `MCP["AUTHENTICATION"]`: what verifies behind them, and what cannot."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings
from pytest_django import Settings

from mcp_app.auth.authenticators import (
    SESSION_INSTEAD,
    BringsCsrf,
    Unusable,
    authenticator,
    django_session,
)
from mcp_app.auth.drf import Bridge
from mcp_app.auth.token_cache import access_token
from mcp_app.conf import BY_ISSUER, BY_TOKEN
from tests.auth import callables

BY_NAME = "tests.auth.callables.by_name"
CLASSES = "tests.auth.drf_classes"


@pytest.mark.parametrize(
    ("given", "kind", "keeps"),
    [
        (BY_TOKEN["token"], "access-token", False),
        (BY_ISSUER, "issuer", False),
        (SESSION_INSTEAD, "session", False),
        (BY_NAME, "", False),
        ({"path": BY_NAME}, "", False),
        ({"path": BY_NAME, "cache": "header"}, "", True),
        ({"path": f"{CLASSES}.Odd", "cache": "header"}, "drf", True),
    ],
)
def test_what_an_entry_says(
    settings: Settings, given: Any, kind: str, keeps: bool
) -> None:
    settings.MCP = {"AUTHENTICATION": {"a": given}}
    found = authenticator("a")
    assert (found.name, found.kind, found.keeps) == ("a", kind, keeps)


def test_what_verifies(settings: Settings) -> None:
    settings.MCP = {
        "AUTHENTICATION": {
            **BY_TOKEN,
            "session": SESSION_INSTEAD,
            "site": BY_NAME,
            "class": f"{CLASSES}.Odd",
        }
    }
    assert authenticator("token").authenticate is access_token
    assert authenticator("session").authenticate is django_session
    assert authenticator("site").authenticate is callables.by_name
    assert isinstance(authenticator("class").authenticate, Bridge)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no.such.module", "'no.such.module' cannot be imported"),
        ("....", "'....' cannot be imported"),
        ("tests.settings", "is not callable"),
        ({"path": BY_TOKEN["token"], "cache": "header"}, "looks at more than"),
        ({"path": SESSION_INSTEAD, "cache": "header"}, "looks at more than"),
        ("tests.auth.callables.ByBadge", "not an authentication class of Django REST"),
        ({}, 'has no "path"'),
        ({"cache": "header"}, 'has no "path"'),
        ({"path": BY_NAME, "cache": "body"}, "has the \"cache\" 'body'"),
        ({"path": BY_NAME, "cash": "header"}, "no option 'cash'. Did you mean 'cache'"),
        ({"path": BY_NAME, "issuer": "https://id.example.com"}, "no option 'issuer'."),
        ({"path": BY_ISSUER, "isuer": "a"}, "'isuer'. Did you mean 'issuer'?"),
        ({"path": 7}, 'has the "path" 7: it must be a text.'),
    ],
)
def test_what_can_verify_nobody(settings: Settings, given: Any, said: str) -> None:
    settings.MCP = {"AUTHENTICATION": {"mine": given}}
    with pytest.raises(Unusable) as raised:
        authenticator("mine")
    assert said in str(raised.value)
    assert "MCP[\"AUTHENTICATION\"]['mine']" in str(raised.value)


@pytest.mark.parametrize(
    "path",
    ["rest_framework.authentication.SessionAuthentication", f"{CLASSES}.Session"],
)
def test_a_session_comes_by_its_own_way(settings: Settings, path: str) -> None:
    settings.MCP = {"AUTHENTICATION": {"mine": path}}
    with pytest.raises(BringsCsrf, match=f"Use '{SESSION_INSTEAD}'"):
        authenticator("mine")


def test_other_settings_are_seen_at_once() -> None:
    for path in (BY_NAME, "tests.auth.callables.by_badge"):
        with override_settings(MCP={"AUTHENTICATION": {"a": path}}):
            assert authenticator("a").authenticate.__name__ == path.rpartition(".")[2]
