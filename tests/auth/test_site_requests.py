"""A request of Django's for what verifies, and the users that may come in."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User

from mcp_app.auth import site_requests
from mcp_app.interface.principal import AuthenticationRequest
from mcp_app.protocol.headers import Headers
from mcp_app.server.handlers import HANDLERS
from tests.asgi_client import Client
from tests.wire.middleware import WireCheck

GIVEN = [
    (b"authorization", b"Bearer x"),
    (b"cookie", b"sessionid=7"),
    (b"content-type", b"multipart/form-data; boundary=b"),
    (b"content-length", b"99"),
    (b"content-encoding", b"gzip"),
    (b"transfer-encoding", b"chunked"),
]


def asked(**more: Any) -> AuthenticationRequest:
    given = {"host": "shop.example", "path": "/mcp", "server": "default", **more}
    return AuthenticationRequest(headers=Headers(GIVEN), **given)


def test_it_has_the_credentials_and_nothing_of_the_body() -> None:
    request = site_requests.site_request(asked(scheme="https", peer="192.0.2.7"))
    assert request.headers["Authorization"] == "Bearer x"
    assert request.COOKIES == {"sessionid": "7"}
    assert (request.method, request.path, request.scheme) == ("POST", "/mcp", "https")
    assert request.META["REMOTE_ADDR"] == "192.0.2.7"
    assert (request.content_type, request.body) == ("", b"")
    assert "CONTENT_LENGTH" not in request.META
    assert not request.POST
    assert not request.GET


def test_another_method_and_no_peer() -> None:
    request = site_requests.site_request(asked(method="DELETE"), "GET")
    assert request.method == "GET"
    assert site_requests.site_request(asked(method="DELETE")).method == "DELETE"
    assert "REMOTE_ADDR" not in request.META


@pytest.mark.parametrize(
    "user", [None, AnonymousUser(), Group(pk=7), User(username="unsaved"), "ana"]
)
def test_who_is_no_user_stands_for_nobody(user: Any) -> None:
    with pytest.raises(TypeError, match=r"^shop\.Basic authenticated a \w+, which is"):
        site_requests.principal_of_user(user, kind="drf", client="shop.Basic")


# -- addresses -------------------------------------------------------------------------


INNER = ["10.0.0.0/8", "fd00::/8"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "address"),
    [
        ("192.0.2.1", None, 0, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.7", 0, "192.0.2.1"),
        ("10.0.0.1", "198.51.100.7", 1, "198.51.100.7"),
        ("10.0.0.1", "203.0.113.9, 198.51.100.7", 1, "198.51.100.7"),
        ("10.0.0.2", "203.0.113.9, 198.51.100.7, 10.0.0.1", 2, "198.51.100.7"),
        ("10.0.0.1", None, 1, None),
        ("10.0.0.1", "198.51.100.7", 2, None),
        ("10.0.0.1", "unknown", 1, None),
        ("", "10.1.2.3", 0, None),
        ("", "10.1.2.3, 198.51.100.7", 1, "198.51.100.7"),
        ("", "10.1.2.3, 198.51.100.7", INNER, "198.51.100.7"),
        ("", None, INNER, None),
        ("10.0.0.1", "198.51.100.7", -1, None),
        ("", None, 0, None),
        ("192.0.2.1", "198.51.100.7", INNER, "192.0.2.1"),
        ("10.0.0.2", "203.0.113.9, 198.51.100.7, 10.0.0.1", INNER, "198.51.100.7"),
        ("fd00::1", "203.0.113.9,[2001:db8::5]:4711", INNER, "2001:db8::5"),
        ("10.0.0.1", "198.51.100.7:4711", INNER, "198.51.100.7"),
        ("10.0.0.1", "198.51.100.7, unknown", INNER, None),
        ("10.0.0.1", "10.0.0.9", INNER, None),
        ("::ffff:192.0.2.1", None, 0, "192.0.2.1"),
    ],
)
def test_the_address_of_the_client(
    peer: str, forwarded: str | None, trusted: int | Sequence[str], address: str | None
) -> None:
    found = site_requests.client_address(peer, forwarded, trusted)
    assert (None if found is None else str(found)) == address


FAR: Final = "203.0.113.7"


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "key"),
    [
        (FAR, None, 0, f"@{FAR}"),
        ("::ffff:203.0.113.7", None, 0, f"@{FAR}"),
        ("2001:db8:1:2:3::4", None, 0, "@2001:db8:1:2::/64"),
        # Where somebody forwards, and nobody is trusted, all would share one.
        (FAR, "198.51.100.7", 0, ""),
        (FAR, "", 0, ""),
        ("127.0.0.1", None, 0, ""),
        ("::1", None, 0, ""),
        ("", None, 0, ""),
        ("testclient", None, 0, ""),
        ("10.0.0.1", FAR, 1, f"@{FAR}"),
        ("127.0.0.1", FAR, 1, f"@{FAR}"),
        ("", f"10.1.2.3, {FAR}", 1, f"@{FAR}"),
        ("10.0.0.1", f"198.51.100.7, {FAR}", INNER, f"@{FAR}"),
        # uvicorn leaves blanks at the end of a header.
        ("10.0.0.1", FAR + " \t" * 600, 1, f"@{FAR}"),
        ("10.0.0.1", "unknown", 1, ""),
        ("10.0.0.1", None, 1, ""),
    ],
)
def test_an_address_counts_where_it_is_vouched_for(
    peer: str, forwarded: str | None, trusted: int | Sequence[str], key: str
) -> None:
    addresses = site_requests.CallerAddresses(trusted)
    assert addresses.address_key(peer, forwarded) == key
    assert addresses.address_key(peer, forwarded) == key


def test_unknown_addresses_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    addresses = site_requests.CallerAddresses(0)
    with caplog.at_level(logging.INFO, "mcp_app.auth"):
        for number in range(5):
            assert addresses.address_key(FAR, f"198.51.100.{number}") == ""
    assert len(caplog.records) == 1
    assert 'MCP["TRUSTED_PROXIES"]' in caplog.text


# -- challenge -------------------------------------------------------------------------


def test_a_client_whose_token_allows_too_little() -> None:
    for metadata, end in (
        ("", ""),
        ("https://a/b", ', resource_metadata="https://a/b"'),
    ):
        refused = site_requests.insufficient_scope("Too little.", "mcp:read", metadata)
        assert (refused.http_status, refused.message) == (403, "Too little.")
        assert refused.headers == {
            "WWW-Authenticate": 'Bearer realm="mcp", error="insufficient_scope",'
            f' scope="mcp:read"{end}'
        }


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28"])
async def test_no_method_is_answered_before_the_caller_is_known(
    application: WireCheck, version: str
) -> None:
    """`initialize` and `server/discover` neither."""
    client = Client(application, version, path="/mcp/private")
    for method in (*HANDLERS, "unheard/of"):
        found = await client.request(method)
        assert found.status == 401, method
        assert found.error["message"].startswith("Authentication is required."), method
