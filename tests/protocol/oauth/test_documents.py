"""Documents of clients: where they may be, and what they must say."""

from __future__ import annotations

import json

import pytest

from mcp_app.protocol.oauth.clients import (
    ClientDocument,
    document_url_problem,
    is_document_url,
    kept_for,
    read_document,
)
from mcp_app.protocol.oauth.requests import OAuthError

URL = "https://claude.ai/oauth/mcp-oauth-client-metadata"
REDIRECT = "https://claude.ai/api/mcp/auth_callback"


def test_where_a_document_can_be() -> None:
    for url in [
        URL,
        "https://a.example:8443/client.json",
        "https://A.example/b/",
        "https://a.example/b?c=d",
        "https://a.example/..b/.c/d./...",
        "https://a.example/%2e%2eb",
        "https://1.2.3.4/b",
        "https://a.example/" + "b" * 1_982,
    ]:
        assert is_document_url(url), url
        assert document_url_problem(url) is None, url


def test_where_none_can_be() -> None:
    for url, reason in [
        ("", "begin"),
        ("mcp_cl_abc", "begin"),
        ("http://a.example/b", "begin"),
        ("HTTPS://a.example/b", "begin"),
        (" https://a.example/b", "begin"),
        ("https:/a.example/b", "begin"),
        ("https://a.example", "no path"),
        ("https://a.example/", "no path"),
        ("https://a.example?b=/c", "no path"),
        ("https:///b", "host"),
        ("https://a@b.example/c", "user part"),
        ("https://a.example/b#", "fragment"),
        ("https://a.example\\b", "characters"),
        ("https://a.example/b c", "characters"),
        ("https://a.example/é", "characters"),
        ("https://%61.example/b", "host"),
        ("https://a.example./b", "host"),
        ("https://2130706433/b", "IPv4"),
        ("https://a.example/./b", "dots"),
        ("https://a.example/../b", "dots"),
        ("https://a.example/b/..", "dots"),
        ("https://a.example/b/.", "dots"),
        ("https://a.example/%2e/b", "dots"),
        ("https://a.example/%2E%2e/b", "dots"),
        ("https://a.example/.%2e/b", "dots"),
        ("https://a.example/b%2F..%2Fc", "dots"),
        ("https://a.example/b%5C..%5Cc", "dots"),
        ("https://a.example/" + "b" * 1_983, "2000 characters"),
    ]:
        assert reason in (document_url_problem(url) or ""), url
    assert not is_document_url("http://a.example/b")
    assert not is_document_url("mcp_cl_https://a.example/b")


def read(content_type: str = "application/json", **changes: object) -> ClientDocument:
    members = {"client_id": URL, "client_name": "Claude", "redirect_uris": [REDIRECT]}
    body = json.dumps({**members, **changes}).encode()
    return read_document(URL, content_type, body, ["cursor"])


def test_a_document_is_read() -> None:
    """Claude lists a grant that we do not have, ChatGPT prefers another method."""
    code, refresh = "authorization_code", "refresh_token"
    assert read(
        grant_types=[code, refresh, "urn:ietf:params:oauth:grant-type:jwt-bearer"],
        token_endpoint_auth_method="private_key_jwt",
        redirect_uris=[REDIRECT, "http://a.example/b", "http://localhost/callback"],
        logo_uri="javascript:alert(1)",
        jwks_uri=5,
    ) == ClientDocument(
        url=URL,
        host="claude.ai",
        name="Claude",
        redirects=(REDIRECT, "http://localhost/callback"),
        grants=(code, refresh),
    )


def test_hosts_and_names() -> None:
    url = "https://A.Example:8443/b"
    members = {"client_id": url, "client_name": " ", "redirect_uris": [REDIRECT]}
    body = json.dumps(members).encode()
    document = read_document(url, "application/json", body, [])
    assert (document.host, document.name) == ("a.example:8443", "a.example:8443")
    assert read(client_name="").name == "claude.ai"
    assert read(client_name="a”\u202e").name == "a'"


def test_types_of_documents() -> None:
    for content_type in [
        "application/json",
        "Application/JSON; charset=utf-8",
        " application/json ;charset=utf-8",
        "application/cimd+json",
        "application/vnd.a.b-c+json",
    ]:
        assert read(content_type).url == URL, content_type
    for content_type in [
        *("", "text/json", "text/html", "application/jsonp", "application/jsonx"),
        *("application/+json", "text/plain; application/json", "application/json,a"),
        *("application/a b+json", "application/json-seq", "xapplication/json"),
    ]:
        with pytest.raises(OAuthError, match="invalid_client"):
            read(content_type)


def test_what_is_refused() -> None:
    refused: list[tuple[dict[str, object], str]] = [
        ({"client_id": URL + "/"}, "address"),
        ({"client_id": URL.upper()}, "address"),
        ({"client_id": None}, "address"),
        ({"client_id": [URL]}, "address"),
        ({"client_name": None}, "client_name"),
        ({"client_name": 5}, "client_name"),
        ({"redirect_uris": REDIRECT}, "list of strings"),
        ({"redirect_uris": [REDIRECT, 5]}, "list of strings"),
        ({"redirect_uris": []}, "none that is allowed"),
        ({"redirect_uris": ["http://a.example/"]}, "none that is allowed"),
        ({"grant_types": ["client_credentials"]}, "grant_types"),
        ({"token_endpoint_auth_method": "client_secret_post"}, "secret"),
        ({"token_endpoint_auth_method": "client_secret_basic"}, "secret"),
        ({"token_endpoint_auth_method": "client_secret_jwt"}, "secret"),
        ({"x": "a" * 16_384}, "16384 bytes"),
    ]
    for changes, reason in refused:
        with pytest.raises(OAuthError, match=reason) as caught:
            read("application/json", **changes)
        assert caught.value.error == "invalid_client", changes
    for body in (b"", b"<html>", b"[]", b'"a"', b"\xff"):
        with pytest.raises(OAuthError, match="invalid_client"):
            read_document(URL, "application/json", body, [])


def test_how_long_it_is_kept() -> None:
    for header, seconds in [
        (None, 3_600),
        ("", 3_600),
        ("public", 3_600),
        ("private, must-revalidate", 3_600),
        ("max-age=300", 300),
        ("public, MAX-AGE=300 , immutable", 300),
        ('max-age="300"', 300),
        ("max-age=0", 60),
        ("max-age=59", 60),
        ("max-age=61", 61),
        ("max-age=86401", 86_400),
        ("max-age=" + "9" * 99, 86_400),
        ("max-age=" + "9" * 9_999, 60),
        ("max-age=-1", 60),
        ("max-age=1e9", 60),
        ("max-age=", 60),
        ("max-age=٣٠٠", 60),
        ("max-age=900, max-age=300", 300),
        ("no-store", 60),
        ("no-cache, max-age=300", 60),
        ('No-Cache="Set-Cookie"', 60),
        ("x-max-age=300", 3_600),
    ]:
        assert kept_for(header) == seconds, header
