"""What a client says of itself is read as far as it counts here."""

from __future__ import annotations

import json

import pytest

from mcp_app.protocol.oauth.clients import read_client_metadata
from mcp_app.protocol.oauth.requests import OAuthError

REDIRECT = "https://a.example/b"


def test_redirects_that_are_not_allowed_are_left_out() -> None:
    """Cursor's request, and a redirect that is there twice."""
    cursor = "cursor://anysphere.cursor-mcp/oauth/callback"
    other = "http://localhost:8787/callback"
    body = json.dumps(
        {"redirect_uris": [cursor, REDIRECT, "http://a.example", other, REDIRECT]}
    )
    read = read_client_metadata
    assert read(body.encode(), []).redirects == (REDIRECT, other)
    assert read(body.encode(), ["cursor"]).redirects == (cursor, REDIRECT, other)


def test_grants() -> None:
    code, refresh = "authorization_code", "refresh_token"
    jwt = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    cases: list[tuple[dict[str, object], tuple[str, ...]]] = [
        ({}, (code,)),
        ({"grant_types": None}, (code,)),
        ({"grant_types": [code]}, (code,)),
        ({"grant_types": [refresh, code, refresh]}, (code, refresh)),
        ({"grant_types": [code, refresh, jwt, "client_credentials"]}, (code, refresh)),
    ]
    for sent, grants in cases:
        body = json.dumps({"redirect_uris": [REDIRECT], **sent}).encode()
        assert read_client_metadata(body, []).grants == grants, sent


REFUSED: list[tuple[object, str]] = [
    ([], "invalid_client_metadata"),
    ("a", "invalid_client_metadata"),
    (None, "invalid_client_metadata"),
    ({"redirect_uris": REDIRECT}, "invalid_client_metadata"),
    ({"redirect_uris": {"0": REDIRECT}}, "invalid_client_metadata"),
    ({"redirect_uris": [REDIRECT, 5]}, "invalid_client_metadata"),
    ({"redirect_uris": [[REDIRECT]]}, "invalid_client_metadata"),
    ({"redirect_uris": [REDIRECT, None]}, "invalid_client_metadata"),
    ({"redirect_uris": False}, "invalid_client_metadata"),
    (
        {"redirect_uris": [REDIRECT], "grant_types": "authorization_code"},
        "invalid_client_metadata",
    ),
    ({"redirect_uris": [REDIRECT], "grant_types": [5]}, "invalid_client_metadata"),
    ({"redirect_uris": [REDIRECT], "grant_types": []}, "invalid_client_metadata"),
    (
        {"redirect_uris": [REDIRECT], "grant_types": ["implicit"]},
        "invalid_client_metadata",
    ),
    ({}, "invalid_redirect_uri"),
    ({"redirect_uris": None}, "invalid_redirect_uri"),
    ({"redirect_uris": []}, "invalid_redirect_uri"),
    ({"redirect_uris": ["http://a.example", "javascript:a"]}, "invalid_redirect_uri"),
]


def test_what_is_refused() -> None:
    for value, error in REFUSED:
        with pytest.raises(OAuthError) as caught:
            read_client_metadata(json.dumps(value).encode(), [])
        assert (caught.value.error, caught.value.status) == (error, 400), value


def test_bodies_that_are_refused() -> None:
    good = json.dumps({"redirect_uris": [REDIRECT]}).encode()
    for body in [
        b"",
        b"{",
        b"\xff",
        b"\xef\xbb\xbf" + good,
        b'{"redirect_uris": [], "redirect_uris": ["https://a.example/b"]}',
        b'{"client_name": NaN, "redirect_uris": ["https://a.example/b"]}',
        good[:-1] + b', "x": ' + b"[" * 80 + b"]" * 80 + b"}",
        good.ljust(16 * 1024 + 1),
    ]:
        with pytest.raises(OAuthError) as caught:
            read_client_metadata(body, [])
        assert caught.value.error == "invalid_client_metadata", body[:40]
    assert read_client_metadata(good.ljust(16 * 1024), []).redirects == (REDIRECT,)


def test_the_kinds_that_are_allowed_are_named() -> None:
    with pytest.raises(OAuthError) as caught:
        read_client_metadata(b"{}", ["vscode", "cursor"])
    assert caught.value.description == (
        "redirect_uris has none that is allowed: https or http on 127.0.0.1, [::1] or"
        " localhost or cursor or vscode."
    )
