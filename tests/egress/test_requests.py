"""What may be sent: paths below the site's, headers that are nobody else's."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from mcp_app.egress.connecting import Forbidden
from mcp_app.egress.requests import (
    MOST_TARGET,
    Secrets,
    SiteAnswer,
    SiteRequest,
    check_path,
    headers_of,
    target_of,
)
from mcp_app.egress.sites import Site, sites

NONE = Secrets({}, {})


@pytest.fixture
def site(settings: Settings) -> Site:
    settings.MCP = {"HTTP": {"peer": {"url": "https://peer.example/api"}}}
    return sites()["peer"]


@pytest.mark.parametrize(
    "path",
    ["/", "/a/b", "/a//b", "/a%2Fb", "/...", "/.a", "/a..", "/%C3%A9", "/a:b@c;d=.."],
)
def test_paths_that_may_be_asked(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "/a b",
        "/a?b",
        "/a#b",
        "/a\\b",
        "/é",
        "/a\r\nb",
        "/.",
        "/..",
        "/a/../b",
        "/%2e",
        "/%2E%2e",
        "/.%2e/x",
        "/%252e%252e",
        "/%25%32%65%25%32%65",
        "/a%00b",
        "/a%0d%0ab",
        "/a%250ab",
        "/a%7f",
        "/%C2%85",
        "/..%2F..%2Fadmin.txt",
        "/x%2F..%2F..%2F..%2Fadmin.txt",
        "/..%5Cadmin",
        "/%252e%252e%252fadmin",
        "/a%252f..%252fb",
        "/a/..%2fx",
        "/a/..;/x",
        "/a/..%3Bb/x",
    ],
)
def test_paths_that_may_not(path: str) -> None:
    with pytest.raises(Forbidden):
        check_path(path)


def target(site: Site, secrets: Secrets = NONE, **request: Any) -> str:
    return target_of(site, SiteRequest(method="GET", **request), secrets)


def test_targets(site: Site) -> None:
    assert target(site, path="/a") == "/api/a"
    assert target(site, path="/a", query="b=c%20d&e[]=f") == "/api/a?b=c%20d&e[]=f"
    secrets = Secrets({}, {"key": "a&b"})
    assert target(site, secrets, path="/a") == "/api/a?key=a%26b"
    assert target(site, secrets, path="/a", query="b=c") == "/api/a?b=c&key=a%26b"


@pytest.mark.parametrize("query", ["a b", "a#b", "a\nb", "é"])
def test_queries_that_may_not_be_sent(site: Site, query: str) -> None:
    with pytest.raises(Forbidden, match="query"):
        target(site, path="/", query=query)


def test_a_long_address(site: Site) -> None:
    with pytest.raises(Forbidden, match="longer than 16,384 characters"):
        target(site, path="/" + "a" * MOST_TARGET)


def headers(site: Site, *given: tuple[str, str], **secret: str) -> dict[str, str]:
    request = SiteRequest(method="GET", path="/", headers=given)
    return dict(headers_of(site, request, Secrets(secret, {})))


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


def answer(media_type: str, body: bytes = b"") -> SiteAnswer:
    given = {"content-type": media_type}
    secrets = Secrets({"X-Key": CANARY}, {})
    return SiteAnswer(status=200, headers=given, body=body, took=0, secrets=secrets)


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
    request = SiteRequest(
        method="POST",
        path=f"/{CANARY}",
        query=CANARY,
        headers=[("X-A", CANARY)],
        body=CANARY.encode(),
        log_path="/{{x}}",
    )
    assert CANARY not in repr(request)
    assert "/{{x}}" in repr(request)
