"""Requests for tokens are read in one way, or refused with the RFC's code."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import quote_plus, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_app.protocol.oauth.requests import (
    ClientCredentials,
    CodeGrant,
    MachineGrant,
    OAuthError,
    RefreshGrant,
    client_of,
    read_form,
    read_grant,
    read_revocation,
)

FORM = "application/x-www-form-urlencoded"
CODE = {
    "grant_type": "authorization_code",
    "code": "mcp_ac_x",
    "redirect_uri": "http://localhost:5/b",
    "code_verifier": "a" * 43,
}


def basic(text: str | bytes) -> str:
    return (
        "Basic " + b64encode(text.encode() if isinstance(text, str) else text).decode()
    )


def test_a_form_is_read() -> None:
    for content_type in (FORM, f"{FORM}; charset=UTF-8", FORM.upper() + " ;a=b"):
        form = read_form(content_type, b"a=b+c&d=%C3%A9&e=", "")
        assert form == {"a": "b c", "d": "é"}, content_type
    assert read_form(FORM, b"", "") == {}
    assert read_form(FORM, b"a=b", "trace=1&resource=2") == {"a": "b"}
    assert len(read_form(FORM, b"a=" + b"b" * 16_382, "")["a"]) == 16_382


def test_forms_that_are_refused() -> None:
    for content_type, body, query in [
        ("", b"a=b", ""),
        ("application/json", b"{}", ""),
        ("multipart/form-data; boundary=a", b"", ""),
        (f"text/plain; {FORM}", b"a=b", ""),
        (FORM, b"a=b&a=b", ""),
        (FORM, b"resource=a&resource=b", ""),
        (FORM, b"a=%", ""),
        (FORM, b"a=%FF", ""),
        (FORM, b"a=%00", ""),
        (FORM, b"a=\x00", ""),
        (FORM, b"a=\xff", ""),
        (FORM, "a=é".encode(), ""),
        (FORM, b"a=" + b"b" * 16_383, ""),
        (FORM, b"", "client_id=a"),
        (FORM, b"", "x=1&client_secret=a"),
        (FORM, b"", "client%5Fsecret=a"),
        (FORM, b"", "code=a"),
        (FORM, b"", "code_verifier=a"),
        (FORM, b"", "refresh_token=a"),
        (FORM, b"", "token=a"),
        (FORM, b"", "grant_type=client_credentials"),
        (FORM, b"", "a=%"),
    ]:
        with pytest.raises(OAuthError) as caught:
            read_form(content_type, body, query)
        assert caught.value.error == "invalid_request", (content_type, body, query)
        assert caught.value.status == 400


def test_who_asks() -> None:
    for form, authorization, client in [
        ({"client_id": "a"}, None, ("a", "")),
        ({"client_id": "a"}, "", ("a", "")),
        ({"client_id": "a", "client_secret": "b"}, None, ("a", "b")),
        ({"client_id": "a"}, "Bearer x", ("a", "")),
        ({}, basic("a:b"), ("a", "b")),
        ({}, basic("a:"), ("a", "")),
        ({}, basic("a:b:c"), ("a", "b:c")),
        ({}, basic("a%3Ab:c%25+d"), ("a:b", "c% d")),
        ({"client_id": "a"}, basic("a:b"), ("a", "b")),
        ({}, basic("a:b").replace("Basic ", "bAsIC   "), ("a", "b")),
    ]:
        found = client_of(form, authorization)
        assert (found.client_id, found.secret) == client


@settings(max_examples=40)
@given(st.text(min_size=1), st.text())
def test_basic_brings_any_text(client_id: str, secret: str) -> None:
    if "\0" in client_id + secret:
        return
    header = basic(f"{quote_plus(client_id)}:{quote_plus(secret)}")
    assert client_of({}, header) == ClientCredentials(
        client_id=client_id, secret=secret
    )


def test_who_cannot_be_told() -> None:
    for form, authorization, error, status in [
        ({}, None, "invalid_request", 400),
        ({"client_secret": "b"}, None, "invalid_request", 400),
        ({}, "Bearer x", "invalid_request", 400),
        ({"client_secret": "b"}, basic("a:b"), "invalid_request", 400),
        (
            {"client_id": "a", "client_secret": "b"},
            basic("a:b"),
            "invalid_request",
            400,
        ),
        ({"client_id": "c"}, basic("a:b"), "invalid_request", 400),
        ({"client_id": "a"}, "Basic", "invalid_client", 401),
        ({"client_id": "a"}, "Basic ", "invalid_client", 401),
        ({"client_id": "a"}, "Basic a:b", "invalid_client", 401),
        ({"client_id": "a"}, "Basic é", "invalid_client", 401),
        ({"client_id": "a"}, basic("a"), "invalid_client", 401),
        ({"client_id": "a"}, basic(":b"), "invalid_client", 401),
        ({"client_id": "a"}, basic(":"), "invalid_client", 401),
        ({"client_id": "a"}, basic("a:%"), "invalid_client", 401),
        ({"client_id": "a"}, basic("a:é"), "invalid_client", 401),
        ({"client_id": "a"}, basic("a:%FF"), "invalid_client", 401),
        ({"client_id": "a"}, basic("a:%00"), "invalid_client", 401),
        ({"client_id": "a"}, basic(b"a:\xff"), "invalid_client", 401),
        ({"client_id": "a"}, basic("a:bb").rstrip("="), "invalid_client", 401),
        ({"client_id": "a"}, basic("a:b") + "!", "invalid_client", 401),
        ({"client_id": "a"}, basic("a:b") + " x", "invalid_client", 401),
    ]:
        with pytest.raises(OAuthError) as caught:
            client_of(form, authorization)
        assert (caught.value.error, caught.value.status) == (error, status), (
            authorization
        )


def test_grants() -> None:
    assert read_grant({**CODE, "resource": "https://a.example/mcp"}) == CodeGrant(
        code="mcp_ac_x",
        redirect_uri="http://localhost:5/b",
        verifier="a" * 43,
        resource="https://a.example/mcp",
    )
    assert read_grant(
        {"grant_type": "refresh_token", "refresh_token": "mcp_rt_x", "scope": "x"}
    ) == RefreshGrant(refresh_token="mcp_rt_x", resource="")
    assert read_grant(
        {"grant_type": "client_credentials", "scope": "mcp:read x"}
    ) == MachineGrant(resource="")


def test_grants_that_are_refused() -> None:
    for form, error, word in [
        ({}, "invalid_request", "grant_type"),
        ({"grant_type": "password"}, "unsupported_grant_type", "grant_type"),
        ({"grant_type": "Refresh_token"}, "unsupported_grant_type", "grant_type"),
        ({"grant_type": "refresh_token"}, "invalid_request", "refresh_token"),
        ({**CODE, "code": ""}, "invalid_request", "code is"),
        ({**CODE, "redirect_uri": ""}, "invalid_request", "redirect_uri"),
        ({**CODE, "code_verifier": ""}, "invalid_request", "code_verifier is"),
        ({**CODE, "code_verifier": "a" * 42}, "invalid_request", "code_verifier must"),
        ({**CODE, "code_verifier": "a" * 129}, "invalid_request", "code_verifier must"),
        ({**CODE, "code_verifier": "é" * 43}, "invalid_request", "code_verifier must"),
    ]:
        with pytest.raises(OAuthError, match=word) as caught:
            read_grant(form)
        assert caught.value.error == error, form


def test_a_token_to_end() -> None:
    form = read_form(
        FORM, urlencode({"token": "a", "token_type_hint": "b"}).encode(), ""
    )
    assert read_revocation(form) == "a"
    with pytest.raises(OAuthError, match="token is missing"):
        read_revocation({})
