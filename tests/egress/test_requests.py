"""What may be sent: paths below the site's, headers that are nobody else's."""

from __future__ import annotations

import base64
import logging
import threading
from typing import Any

import pytest
from pytest_django import Settings

from mcp_app.egress import requests
from mcp_app.egress.resolving import Forbidden
from mcp_app.egress.sites import Site, usable_sites
from mcp_app.interface.principal import AccessRequest, Principal

NONE = requests.Secrets({}, {})


@pytest.fixture
def site(settings: Settings) -> Site:
    settings.MCP = {"HTTP": {"peer": {"url": "https://peer.example/api"}}}
    return usable_sites()["peer"]


@pytest.mark.parametrize(
    "path",
    ["/", "/a/b", "/a//b", "/a%2Fb", "/...", "/.a", "/a..", "/%C3%A9", "/a:b@c;d=.."],
)
def test_paths_that_may_be_asked(path: str) -> None:
    requests.check_path(path)


@pytest.mark.parametrize(
    "path",
    [
        *("", "a", "/a b", "/a?b", "/a#b", "/a\\b", "/é", "/a\r\nb", "/.", "/.."),
        *("/a/../b", "/%2e", "/%2E%2e", "/.%2e/x", "/%252e%252e"),
        *("/%25%32%65%25%32%65", "/a%00b", "/a%0d%0ab", "/a%250ab", "/a%7f", "/%C2%85"),
        *("/..%2F..%2Fadmin.txt", "/x%2F..%2F..%2F..%2Fadmin.txt", "/..%5Cadmin"),
        *("/%252e%252e%252fadmin", "/a%252f..%252fb", "/a/..%2fx", "/a/..;/x"),
        "/a/..%3Bb/x",
    ],
)
def test_paths_that_may_not(path: str) -> None:
    with pytest.raises(Forbidden):
        requests.check_path(path)


def target(site: Site, secrets: requests.Secrets = NONE, **request: Any) -> str:
    return requests.target_of(
        site, requests.SiteRequest(method="GET", **request), secrets
    )


def test_targets(site: Site) -> None:
    assert target(site, path="/a") == "/api/a"
    assert target(site, path="/a", query="b=c%20d&e[]=f") == "/api/a?b=c%20d&e[]=f"
    secrets = requests.Secrets({}, {"key": "a&b"})
    assert target(site, secrets, path="/a") == "/api/a?key=a%26b"
    assert target(site, secrets, path="/a", query="b=c") == "/api/a?b=c&key=a%26b"


@pytest.mark.parametrize("query", ["a b", "a#b", "a\nb", "é"])
def test_queries_that_may_not_be_sent(site: Site, query: str) -> None:
    with pytest.raises(Forbidden, match="query"):
        target(site, path="/", query=query)


def test_a_long_address(site: Site) -> None:
    with pytest.raises(Forbidden, match="longer than 16,384 characters"):
        target(site, path="/" + "a" * requests.MAX_TARGET_LENGTH)


def headers(site: Site, *given: tuple[str, str], **secret: str) -> dict[str, str]:
    request = requests.SiteRequest(method="GET", path="/", headers=given)
    return dict(requests.headers_of(site, request, requests.Secrets(secret, {})))


def test_headers(site: Site) -> None:
    assert headers(site, ("User-Agent", "a"), ("X-B", "c"), Authorization="d") == {
        "Host": "peer.example",
        "Accept-Encoding": "identity",
        "User-Agent": "a",
        "X-B": "c",
        "Authorization": "d",
    }


@pytest.mark.parametrize(
    "header",
    [("X-A", "b\r\nX-C: d"), ("X-A", "é"), ("X A", "b"), ("Host", "b"), ("X-B", "c")],
)
def test_headers_that_may_not_be_sent(site: Site, header: tuple[str, str]) -> None:
    with pytest.raises(Forbidden):
        headers(site, header, **{"x-b": "secret"})


CANARY = "canary-of-requests"


def answer(media_type: str, body: bytes = b"") -> requests.SiteAnswer:
    given = {"content-type": media_type}
    secrets = requests.Secrets({"X-Key": CANARY}, {})
    return requests.SiteAnswer(
        status=200, headers=given, body=body, took=0, secrets=secrets
    )


@pytest.mark.parametrize(
    ("given", "media_type"),
    [
        ("Application/JSON; charset=utf-8", "application/json"),
        (" image/svg+xml ", "image/svg+xml"),
        ("", ""),
        ("image/", ""),
        ("image/pé", ""),
        ("image/a b", ""),
        (f"image/{CANARY}", ""),
        (f"{CANARY}/a", ""),
    ],
)
def test_the_type_of_an_answer(given: str, media_type: str) -> None:
    assert answer(given).media_type == media_type


def test_what_error_pages_show() -> None:
    """They show the variables of frames as their repr."""
    shown = repr(answer(CANARY, CANARY.encode()))
    assert "status=200" in shown
    assert CANARY not in shown
    request = requests.SiteRequest(
        method="POST",
        path=f"/{CANARY}",
        query=CANARY,
        headers=[("X-A", CANARY)],
        body=CANARY.encode(),
        log_path="/{{x}}",
    )
    assert CANARY not in repr(request)
    assert "/{{x}}" in repr(request)


# -- secrets ---------------------------------------------------------------------------


LEE = AccessRequest(principal=Principal(kind="user", user_name="lee"), server="s")
SECRETS_CANARY = "canary-of-a-caller"


def own_headers(asked: AccessRequest) -> Any:
    return {"X-User": asked.principal.user_name}


def no_dict(asked: AccessRequest) -> Any:
    return [SECRETS_CANARY]


def no_text(asked: AccessRequest) -> Any:
    return {SECRETS_CANARY: 5}


def no_header(asked: AccessRequest) -> Any:
    return {"X-User": f"{SECRETS_CANARY}\n"}


def failing(asked: AccessRequest) -> Any:
    key = SECRETS_CANARY
    raise RuntimeError(f"No key for {asked.principal.user_name}, {len(key)}.")


go_on = threading.Event()


def slow(asked: AccessRequest) -> Any:
    go_on.wait(60)
    return {}


async def secrets_headers(settings: Settings, name: str) -> Any:
    path = f"{__name__}.{name}"
    given = {"url": "https://peer.example", "secret_headers": path}
    settings.MCP = {"HTTP": {"peer": given}}
    return (await requests.secrets_for(usable_sites()["peer"], LEE)).headers


async def test_headers_of_a_caller(settings: Settings) -> None:
    assert await secrets_headers(settings, "own_headers") == {"X-User": "lee"}


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
        await secrets_headers(settings, name)
    assert SECRETS_CANARY not in caught.value.message
    assert SECRETS_CANARY not in caplog.text
    assert ("No key for lee" in caplog.text) is (name == "failing")
    assert not [each for each in caplog.records if each.exc_info]


async def test_a_function_that_takes_long(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "CALLER_S", 0.01)
    with pytest.raises(Forbidden, match="longer than"):
        await secrets_headers(settings, "slow")
    go_on.set()


def test_secrets_are_blotted_out() -> None:
    basic = base64.b64encode(b"partner:long-password").decode()
    secrets = requests.Secrets(
        {"Authorization": f"Basic {basic}", "X-Key": "Bearer 12345678", "X-A": "short"},
        {"key": "in the query"},
    )
    value = {
        "12345678": [basic, "partner:long-password", "my long-password", "partner"],
        "a": {"b": "x in the query x", "c": 12345678, "d": None},
        "e": "short",
    }
    assert secrets.blot(value) == {
        requests.BLOT: [requests.BLOT, requests.BLOT, f"my {requests.BLOT}", "partner"],
        "a": {"b": f"x {requests.BLOT} x", "c": 12345678, "d": None},
        "e": "short",
    }
    assert secrets.blot("Bearer 12345678!") == f"{requests.BLOT}!"
    assert "12345678" not in repr(secrets)


@pytest.mark.parametrize(
    ("header", "answer", "shown"),
    [
        ("sid=cookiecanary12345; a=b", "cookiecanary12345", requests.BLOT),
        ('Token token="tokencanary123"', "tokencanary123", requests.BLOT),
        ("Custom canary+of/a+key==", "canary+of/a+key", requests.BLOT),
        ("A id=first-canary,key=second-canary", "first-canary", requests.BLOT),
        ("sessionid=cookiecanary12345", "sessionid", "sessionid"),
        ('Digest username="lee", nonce="abc"', "username", "username"),
    ],
)
def test_parts_of_secrets(header: str, answer: str, shown: str) -> None:
    """A part is blotted out, but no name of one, which answers may have as well."""
    assert requests.Secrets({"A": header}, {}).blot(answer) == shown


def test_a_secret_of_the_query_as_it_is_sent() -> None:
    assert requests.Secrets({}, {"key": "canary & key"}).blot(
        "?key=canary+%26+key"
    ) == (f"?key={requests.BLOT}")


def test_without_secrets_nothing_is_blotted() -> None:
    value = {"a": "b"}
    assert requests.Secrets({}, {}).blot(value) is value


@pytest.mark.parametrize("text", ["Basic ???", "Basic /w==", "Basic"])
def test_basic_that_encodes_nothing(text: str) -> None:
    assert requests.Secrets({"A": text}, {}).blot("hello") == "hello"
