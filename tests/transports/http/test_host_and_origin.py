"""Host and Origin of every request, and what browsers may do (DNS rebinding, CORS)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final

import pytest
from pytest_django import Settings

from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.headers import Headers
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.transports.http import host_and_origin
from mcp_app.transports.http.host_and_origin import (
    MAX_CACHED,
    HostAndOriginPolicy,
    forget_token,
)
from tests.asgi_client import Client, outcome
from tests.serving import counted
from tests.wire.middleware import WireCheck

SERVED: Final = 200
NO_HOST: Final = 421
EMPTY: Final = 400
NO_ORIGIN: Final = 403

HOSTS: Final[list[tuple[dict[str, Any], list[str], bool, str, int]]] = [
    # MCP, ALLOWED_HOSTS, DEBUG, Host, status
    ({}, ["localhost"], False, "localhost", SERVED),
    ({}, ["localhost"], False, "LOCALHOST:8000", SERVED),
    ({}, ["localhost"], False, "evil.example", NO_HOST),
    ({}, ["localhost"], False, "localhost.evil.example", NO_HOST),
    ({}, ["localhost"], False, "evil.example:80@localhost", NO_HOST),
    ({}, ["localhost"], False, "localhost:x", NO_HOST),
    ({}, ["localhost"], False, "", EMPTY),
    ({}, ["localhost"], False, " ", EMPTY),
    ({}, [".example.org"], False, "mcp.example.org", SERVED),
    ({}, ["[::1]"], False, "[::1]:8000", SERVED),
    ({}, [], False, "localhost", NO_HOST),
    ({}, [], True, "localhost", SERVED),
    ({}, [], True, "site.localhost:8000", SERVED),
    ({}, [], True, "127.0.0.1", SERVED),
    ({}, [], True, "evil.example", NO_HOST),
    ({}, ["*"], False, "localhost", NO_HOST),
    ({}, ["*"], True, "anything.example", SERVED),
    ({"HOSTS": ["mcp.example.org"]}, ["*"], False, "mcp.example.org", SERVED),
    ({"HOSTS": ["mcp.example.org"]}, ["localhost"], False, "localhost", NO_HOST),
    ({"HOSTS": []}, ["localhost"], True, "localhost", NO_HOST),
    ({"PUBLIC_URL": "https://A.example:8443/x"}, ["*"], False, "a.example", SERVED),
    ({"PUBLIC_URL": "https://a.example"}, ["localhost"], False, "localhost", NO_HOST),
]


@pytest.mark.parametrize(("mcp", "allowed", "debug", "host", "status"), HOSTS)
async def test_host(
    application: WireCheck,
    settings: Settings,
    allowed: list[str],
    debug: bool,
    host: str,
    status: int,
) -> None:
    settings.ALLOWED_HOSTS, settings.DEBUG = allowed, debug
    client = Client(application, headers={"host": host})
    assert (await client.request("tools/list")).status == status


FOREIGN: Final = (
    *("null", "", "http://evil.example", "http://localhost.evil.example"),
    *("http://localhost:3000@evil.example", "http://evil.example@localhost"),
    *("ftp://localhost", "localhost", "http://localhost/", "http://localhost:x"),
    *("http://localhost:0", "http://[::1", "http://"),
)
ORIGINS: Final[list[tuple[dict[str, Any], bool, str | Sequence[str], int]]] = [
    # MCP, DEBUG, Origin, status; the Host is localhost
    ({}, False, [], SERVED),
    *(({}, False, each, NO_ORIGIN) for each in FOREIGN),
    ({}, False, ["http://localhost", "http://localhost"], NO_ORIGIN),
    ({}, False, "http://localhost", SERVED),
    ({}, False, "HTTP://LOCALHOST:80", SERVED),
    ({}, False, "https://localhost:443", SERVED),
    ({}, False, "http://localhost:3000", NO_ORIGIN),
    ({}, True, "http://localhost:3000", SERVED),
    ({}, True, "http://LOCALHOST:3000", SERVED),
    ({}, True, "http://127.0.0.1:6274", SERVED),
    ({}, True, "http://[::1]:6274", SERVED),
    ({}, True, "http://localhost.evil.example", NO_ORIGIN),
    ({"ORIGINS": []}, True, "http://localhost:3000", NO_ORIGIN),
    ({"ORIGINS": ["https://app.example"]}, False, "https://app.example", SERVED),
    ({"ORIGINS": ["https://APP.example:443"]}, False, "https://app.example", SERVED),
    ({"ORIGINS": ["https://app.example"]}, False, "http://app.example", NO_ORIGIN),
    ({"ORIGINS": ["no origin at all"]}, False, "https://app.example", NO_ORIGIN),
    (
        {"PUBLIC_URL": "https://mcp.example/mcp", "HOSTS": ["localhost"]},
        False,
        "https://mcp.example",
        SERVED,
    ),
]


@pytest.mark.parametrize(("mcp", "debug", "origin", "status"), ORIGINS)
async def test_origin(
    application: WireCheck,
    settings: Settings,
    debug: bool,
    origin: str | Sequence[str],
    status: int,
) -> None:
    settings.DEBUG = debug
    client = Client(application, headers={"origin": origin})
    found = await client.request("tools/list")
    assert found.status == status
    told = found.headers.get("access-control-allow-origin")
    assert told == (origin if status == SERVED and origin else None)
    assert "access-control-allow-credentials" not in found.headers


async def test_nothing_is_made_for_a_foreign_origin(application: WireCheck) -> None:
    for version, name in product(REVISIONS, ("origin", "host")):
        client = Client(application, version, headers={name: "evil.example"})
        found = await client.sent(client.initialize())
        assert found.status == (NO_ORIGIN if name == "origin" else NO_HOST)
    assert (await counted())["Session"] == 0


@pytest.mark.parametrize("mcp", [{"ORIGINS": ["https://app.example"]}])
async def test_browsers_may_read_every_answer(application: WireCheck) -> None:
    client = Client(application, headers={"origin": "https://app.example"})
    listening = client.begin("subscriptions/listen", {"notifications": {}})
    await listening.begun()
    refused = await client.request("nothing")
    notified = await client.notify("notifications/cancelled")
    missing = await outcome(client.visit("GET"))
    for found in (listening, refused, notified, missing):
        assert found.headers["access-control-allow-origin"] == "https://app.example"
        assert "Mcp-Session-Id" in found.headers["access-control-expose-headers"]
        assert found.headers["vary"] == "Origin"
    await listening.leave()


async def asked(
    application: WireCheck, origin: str | None, headers: str | None = None
) -> Any:
    client = Client(application, headers={"origin": origin})
    changes = {
        "access-control-request-method": "POST",
        "access-control-request-headers": headers,
    }
    return await outcome(client.visit("OPTIONS", headers=changes))


@pytest.mark.parametrize("path", ["/mcp", "/mcp/private", "/mcp/missing"])
@pytest.mark.parametrize("mcp", [{"ORIGINS": ["https://app.example"]}])
async def test_preflight(application: WireCheck, path: str) -> None:
    """It asks nobody who they are, and tells nothing about the server."""
    client = Client(application, path=path, headers={"origin": "https://app.example"})
    wanted = "Content-Type, MCP-Protocol-Version, Mcp-Param-Region, X-Other, Cookie"
    headers = {"access-control-request-headers": wanted}
    found = await outcome(client.visit("OPTIONS", headers=headers))
    assert (found.status, found.raw) == (204, b"")
    assert found.headers["access-control-allow-methods"] == "POST, GET, DELETE, OPTIONS"
    assert found.headers["access-control-allow-headers"] == (
        "content-type, mcp-protocol-version, mcp-param-region"
    )
    assert int(found.headers["access-control-max-age"]) > 0


@pytest.mark.parametrize("mcp", [{"ORIGINS": ["https://app.example"]}])
async def test_preflight_without_names(application: WireCheck) -> None:
    found = await asked(application, "https://app.example")
    names = found.headers["access-control-allow-headers"].split(", ")
    assert {"authorization", "content-type", "mcp-session-id", "mcp-name"} < set(names)


async def test_preflight_of_a_foreign_origin(application: WireCheck) -> None:
    found = await asked(application, "https://evil.example", "content-type")
    assert found.status == NO_ORIGIN
    assert "access-control-allow-headers" not in found.headers


async def test_options_without_an_origin(application: WireCheck) -> None:
    found = await asked(application, None, "content-type")
    assert found.status == 204
    assert found.headers["allow"] == "POST, GET, DELETE, OPTIONS"
    assert "access-control-allow-headers" not in found.headers


def headers(host: str | None, origin: str | None = None) -> Headers:
    named = {b"host": host, b"origin": origin}
    return Headers([(name, each.encode()) for name, each in named.items() if each])


def decision(
    policy: HostAndOriginPolicy, host: str | None, origin: str | None
) -> object:
    try:
        return policy.check_headers(headers(host, origin))
    except RequestRefused as refused:
        return refused.http_status


def test_what_is_kept_is_for_that_host_and_that_origin(settings: Settings) -> None:
    """DNS rebinding: the browser's good origin comes with a foreign host."""
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
    hosts = [*settings.ALLOWED_HOSTS, "evil.example", None]
    origins = ["http://localhost", "http://127.0.0.1", "http://evil.example", None]
    pairs = list(product(hosts, origins))
    good = [
        pair
        for pair in pairs
        if isinstance(decision(HostAndOriginPolicy(), *pair), list)
    ]
    assert len(good) == 4
    for before, pair in product(good, pairs):
        policy = HostAndOriginPolicy()
        policy.check_headers(headers(*before))
        assert decision(policy, *pair) == decision(HostAndOriginPolicy(), *pair)


def test_decisions_are_kept(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = [".example.org"]
    policy = HostAndOriginPolicy()
    for number in range(MAX_CACHED + 1):
        assert policy.check_headers(headers(f"{number}.example.org")) == []
    settings.ALLOWED_HOSTS = []
    assert policy.check_headers(headers(f"{MAX_CACHED}.example.org")) == []
    policy.clear_cache()
    with pytest.raises(RequestRefused):
        policy.check_headers(headers(f"{MAX_CACHED}.example.org"))


@pytest.fixture(autouse=True)
def _nobody_was_told() -> Iterator[None]:
    host_and_origin._warn_about_token.cache_clear()
    yield
    host_and_origin._warn_about_token.cache_clear()


@pytest.mark.parametrize(
    "query",
    [
        b"access_token=secret",
        b"a=1&access_token=secret&b=2",
        b"access_token=",
        b"access_token",
        b"access%5Ftoken=secret",
        b"access_token=secret&x=\xff",
    ],
)
def test_it_is_forgotten(query: bytes, caplog: pytest.LogCaptureFixture) -> None:
    scope: dict[str, Any] = {"query_string": query}
    forget_token(scope, "shop")
    assert scope["query_string"] == b""
    (record,) = caplog.records
    assert "the server 'shop'" in record.getMessage()
    assert "secret" not in record.getMessage()


@pytest.mark.parametrize(
    "query",
    [b"", b"token=a", b"x=access_token", b"my_access_token=a", b"ACCESS_TOKEN=a"],
)
def test_any_other_query_stays(query: bytes, caplog: pytest.LogCaptureFixture) -> None:
    for scope in ({}, {"query_string": query}):
        before = dict(scope)
        forget_token(scope, "shop")
        assert scope == before
    assert caplog.records == []


def test_each_server_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    for server in ("shop", "shop", "office", "shop"):
        scope: dict[str, Any] = {"query_string": b"access_token=a"}
        forget_token(scope, server)
        assert scope["query_string"] == b""
    assert len(caplog.records) == 2
