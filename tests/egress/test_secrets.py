"""What is sent besides the request, and what must not come back."""

from __future__ import annotations

import base64
import logging
import threading
from typing import Any

import pytest
from pytest_django import Settings

from mcp_app.egress import requests as secrets_module
from mcp_app.egress.connecting import Forbidden
from mcp_app.egress.requests import BLOT, Secrets, secrets_for
from mcp_app.egress.sites import sites
from mcp_app.interface.principal import AccessRequest, Principal

LEE = AccessRequest(principal=Principal(kind="user", user_name="lee"), server="s")
CANARY = "canary-of-a-caller"


def own_headers(asked: AccessRequest) -> Any:
    return {"X-User": asked.principal.user_name}


def no_dict(asked: AccessRequest) -> Any:
    return [CANARY]


def no_text(asked: AccessRequest) -> Any:
    return {CANARY: 5}


def no_header(asked: AccessRequest) -> Any:
    return {"X-User": f"{CANARY}\n"}


def failing(asked: AccessRequest) -> Any:
    key = CANARY
    raise RuntimeError(f"No key for {asked.principal.user_name}, {len(key)}.")


go_on = threading.Event()


def slow(asked: AccessRequest) -> Any:
    go_on.wait(60)
    return {}


async def headers(settings: Settings, name: str) -> Any:
    path = f"{__name__}.{name}"
    given = {"url": "https://peer.example", "secret_headers": path}
    settings.MCP = {"HTTP": {"peer": given}}
    return (await secrets_for(sites()["peer"], LEE)).headers


async def test_headers_of_a_caller(settings: Settings) -> None:
    assert await headers(settings, "own_headers") == {"X-User": "lee"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_dict", "returned list, not a dict"),
        ("no_text", "returned what is no text"),
        ("no_header", "a line break"),
        ("failing", "The secret_headers of peer failed"),
    ],
)
async def test_headers_that_cannot_be_sent(
    settings: Settings, caplog: pytest.LogCaptureFixture, name: str, said: str
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(Forbidden, match=said) as caught:
        await headers(settings, name)
    assert CANARY not in caught.value.message
    assert CANARY not in caplog.text
    assert ("No key for lee" in caplog.text) is (name == "failing")
    assert not [each for each in caplog.records if each.exc_info]


async def test_a_function_that_takes_long(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets_module, "CALLER_S", 0.01)
    with pytest.raises(Forbidden, match="longer than"):
        await headers(settings, "slow")
    go_on.set()


def test_secrets_are_blotted_out() -> None:
    basic = base64.b64encode(b"partner:long-password").decode()
    secrets = Secrets(
        {"Authorization": f"Basic {basic}", "X-Key": "Bearer 12345678", "X-A": "short"},
        {"key": "in the query"},
    )
    value = {
        "12345678": [basic, "partner:long-password", "my long-password", "partner"],
        "a": {"b": "x in the query x", "c": 12345678, "d": None},
        "e": "short",
    }
    assert secrets.blot(value) == {
        BLOT: [BLOT, BLOT, f"my {BLOT}", "partner"],
        "a": {"b": f"x {BLOT} x", "c": 12345678, "d": None},
        "e": "short",
    }
    assert secrets.blot("Bearer 12345678!") == f"{BLOT}!"
    assert "12345678" not in repr(secrets)


@pytest.mark.parametrize(
    ("header", "answer", "shown"),
    [
        ("sid=cookiecanary12345; a=b", "cookiecanary12345", BLOT),
        ('Token token="tokencanary123"', "tokencanary123", BLOT),
        ("Custom canary+of/a+key==", "canary+of/a+key", BLOT),
        ("A id=first-canary,key=second-canary", "first-canary", BLOT),
        ("sessionid=cookiecanary12345", "sessionid", "sessionid"),
        ('Digest username="lee", nonce="abc"', "username", "username"),
    ],
)
def test_parts_of_secrets(header: str, answer: str, shown: str) -> None:
    """A part is blotted out, but no name of one, which answers may have as well."""
    assert Secrets({"A": header}, {}).blot(answer) == shown


def test_a_secret_of_the_query_as_it_is_sent() -> None:
    assert Secrets({}, {"key": "canary & key"}).blot("?key=canary+%26+key") == (
        f"?key={BLOT}"
    )


def test_without_secrets_nothing_is_blotted() -> None:
    value = {"a": "b"}
    assert Secrets({}, {}).blot(value) is value


@pytest.mark.parametrize("text", ["Basic ???", "Basic /w==", "Basic"])
def test_basic_that_encodes_nothing(text: str) -> None:
    assert Secrets({"A": text}, {}).blot("hello") == "hello"
