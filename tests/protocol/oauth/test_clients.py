"""Tests of `mcp_app/protocol/oauth/clients.py`."""

from __future__ import annotations

import json
import string
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_app.protocol.oauth.clients import (
    ClientDocument,
    Registration,
    cache_seconds,
    client_id_of,
    document_url_problem,
    is_document_url,
    read_client_metadata,
    read_document,
    read_registration,
    registration_answer,
    registration_of,
    server_metadata,
)
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


NO_LISTS: list[object] = [
    *(REDIRECT, {"0": REDIRECT}, [REDIRECT, 5], [[REDIRECT]], [REDIRECT, None], False)
]
REFUSED: dict[str, list[object]] = {
    "invalid_client_metadata": [
        *([], "a", None),
        *({"redirect_uris": each} for each in NO_LISTS),
        *(
            {"redirect_uris": [REDIRECT], "grant_types": each}
            for each in ("authorization_code", [5], [], ["implicit"])
        ),
    ],
    "invalid_redirect_uri": [
        *({}, {"redirect_uris": None}, {"redirect_uris": []}),
        {"redirect_uris": ["http://a.example", "javascript:a"]},
    ],
}


def test_what_is_refused() -> None:
    for error, values in REFUSED.items():
        for value in values:
            with pytest.raises(OAuthError) as caught:
                read_client_metadata(json.dumps(value).encode(), [])
            assert (caught.value.error, caught.value.status) == (error, 400), value


def test_bodies_that_are_refused() -> None:
    good = json.dumps({"redirect_uris": [REDIRECT]}).encode()
    for body in [
        *(b"", b"{", b"\xff", b"\xef\xbb\xbf" + good),
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


# -- documents -------------------------------------------------------------------------


URL = "https://claude.ai/oauth/mcp-oauth-client-metadata"
DOCUMENTS_REDIRECT = "https://claude.ai/api/mcp/auth_callback"


def test_where_a_document_can_be() -> None:
    for url in [
        *(URL, "https://a.example:8443/client.json", "https://A.example/b/"),
        *("https://a.example/b?c=d", "https://a.example/..b/.c/d./..."),
        *("https://a.example/%2e%2eb", "https://1.2.3.4/b"),
        "https://a.example/" + "b" * 1_982,
    ]:
        assert is_document_url(url), url
        assert document_url_problem(url) is None, url


NO_DOCUMENTS = {
    "begin": [
        *("", "mcp_cl_abc", "http://a.example/b", "HTTPS://a.example/b"),
        *(" https://a.example/b", "https:/a.example/b"),
    ],
    "no path": ["https://a.example", "https://a.example/", "https://a.example?b=/c"],
    "host": ["https:///b", "https://%61.example/b", "https://a.example./b"],
    "user part": ["https://a@b.example/c"],
    "fragment": ["https://a.example/b#"],
    "characters": [
        *("https://a.example\\b", "https://a.example/b c", "https://a.example/é")
    ],
    "IPv4": ["https://2130706433/b"],
    "dots": [
        *("https://a.example/./b", "https://a.example/../b", "https://a.example/b/.."),
        *("https://a.example/b/.", "https://a.example/%2e/b"),
        *("https://a.example/%2E%2e/b", "https://a.example/.%2e/b"),
        *("https://a.example/b%2F..%2Fc", "https://a.example/b%5C..%5Cc"),
    ],
    "2000 characters": ["https://a.example/" + "b" * 1_983],
}


def test_where_none_can_be() -> None:
    for reason, urls in NO_DOCUMENTS.items():
        for url in urls:
            assert reason in (document_url_problem(url) or ""), url
    assert not is_document_url("http://a.example/b")
    assert not is_document_url("mcp_cl_https://a.example/b")


def read(content_type: str = "application/json", **changes: object) -> ClientDocument:
    members = {
        "client_id": URL,
        "client_name": "Claude",
        "redirect_uris": [DOCUMENTS_REDIRECT],
    }
    body = json.dumps({**members, **changes}).encode()
    return read_document(URL, content_type, body, ["cursor"])


def test_a_document_is_read() -> None:
    """Claude lists a grant that we do not have, ChatGPT prefers another method."""
    code, refresh = "authorization_code", "refresh_token"
    assert read(
        grant_types=[code, refresh, "urn:ietf:params:oauth:grant-type:jwt-bearer"],
        token_endpoint_auth_method="private_key_jwt",
        redirect_uris=[
            DOCUMENTS_REDIRECT,
            "http://a.example/b",
            "http://localhost/callback",
        ],
        logo_uri="javascript:alert(1)",
        jwks_uri=5,
    ) == ClientDocument(
        url=URL,
        host="claude.ai",
        name="Claude",
        redirects=(DOCUMENTS_REDIRECT, "http://localhost/callback"),
        grants=(code, refresh),
    )


def test_hosts_and_names() -> None:
    url = "https://A.Example:8443/b"
    members = {
        "client_id": url,
        "client_name": " ",
        "redirect_uris": [DOCUMENTS_REDIRECT],
    }
    body = json.dumps(members).encode()
    document = read_document(url, "application/json", body, [])
    assert (document.host, document.name) == ("a.example:8443", "a.example:8443")
    assert read(client_name="").name == "claude.ai"
    assert read(client_name="a”\u202e").name == "a'"


def test_types_of_documents() -> None:
    for content_type in [
        *("application/json", "Application/JSON; charset=utf-8"),
        *(" application/json ;charset=utf-8", "application/cimd+json"),
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


def test_documents_what_is_refused() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"client_id": URL + "/"}, "address"),
        *(({"client_id": URL.upper()}, "address"), ({"client_id": None}, "address")),
        *(({"client_id": [URL]}, "address"), ({"client_name": None}, "client_name")),
        ({"client_name": 5}, "client_name"),
        ({"redirect_uris": DOCUMENTS_REDIRECT}, "valid list"),
        ({"redirect_uris": [DOCUMENTS_REDIRECT, 5]}, r"uris\[1\].* not 5"),
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
    kept: dict[int, list[str | None]] = {
        3_600: [None, "", "public", "private, must-revalidate", "x-max-age=300"],
        300: [
            *("max-age=300", "public, MAX-AGE=300 , immutable", 'max-age="300"'),
            "max-age=900, max-age=300",
        ],
        61: ["max-age=61"],
        86_400: ["max-age=86401", "max-age=" + "9" * 99],
        60: [
            *("max-age=0", "max-age=59", "max-age=" + "9" * 9_999, "max-age=-1"),
            *("max-age=1e9", "max-age=", "max-age=٣٠٠", "no-store"),
            *("no-cache, max-age=300", 'No-Cache="Set-Cookie"'),
        ],
    }
    for seconds, headers in kept.items():
        for header in headers:
            assert cache_seconds(header) == seconds, header


# -- registration ----------------------------------------------------------------------


REGISTRATION_REDIRECT = "https://a.example/b"
CLAUDE = Registration(
    name="Claude",
    redirects=("https://claude.ai/api/mcp/auth_callback",),
    grants=("authorization_code", "refresh_token"),
    issued=1_764_000_000,
)
BASE64URL = string.ascii_letters + string.digits + "-_"


def registration_read(**metadata: object) -> Registration:
    body = json.dumps({"redirect_uris": [REGISTRATION_REDIRECT], **metadata}).encode()
    return read_registration(body, ["cursor"], issued=1_764_000_000)


def test_a_request_is_read() -> None:
    """What Claude sends; a client's wish for a secret is answered with none."""
    registration = registration_read(
        client_name="Claude",
        redirect_uris=list(CLAUDE.redirects),
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="client_secret_post",
        scope="mcp:read",
        software_statement="x",
        logo_uri="https://claude.ai/logo.png",
    )
    assert registration == CLAUDE


def test_names() -> None:
    assert registration_read(client_name="“A”\u202e B").name == "'A' B"
    assert registration_read(client_name=None).name == "a.example"
    assert (
        registration_read(redirect_uris=["http://localhost:5/b"]).name == "localhost:5"
    )
    assert (
        registration_read(redirect_uris=["cursor://a/b"], client_name=" ").name
        == "cursor"
    )


def test_what_is_too_much_or_of_another_type() -> None:
    assert (
        len(
            registration_read(
                redirect_uris=[f"{REGISTRATION_REDIRECT}{n}" for n in range(10)]
            ).redirects
        )
        == 10
    )
    refused: list[dict[str, object]] = [
        {"redirect_uris": [f"{REGISTRATION_REDIRECT}{n}" for n in range(11)]},
        {"redirect_uris": [REGISTRATION_REDIRECT, *["javascript:a"] * 10]},
        {"client_name": 5},
        {"client_name": ["Claude"]},
        {"redirect_uris": REGISTRATION_REDIRECT},
    ]
    for metadata in refused:
        with pytest.raises(OAuthError) as caught:
            registration_read(**metadata)
        assert caught.value.error == "invalid_client_metadata", metadata
    with pytest.raises(OAuthError) as caught:
        registration_read(redirect_uris=["vscode://a/b"])
    assert caught.value.error == "invalid_redirect_uri"


def test_an_id_is_the_registration() -> None:
    client_id = client_id_of(CLAUDE, "new")
    assert client_id.startswith("mcp_cl_")
    assert len(client_id) < 320
    assert client_id == client_id_of(CLAUDE, "new") != client_id_of(CLAUDE, "old")
    assert registration_of(client_id, ["new"]) == CLAUDE
    assert registration_of(client_id_of(CLAUDE, "old"), ["new", "old"]) == CLAUDE
    assert registration_of(client_id, ["old", ""]) is None
    assert registration_of(client_id, []) is None


@settings(max_examples=30)
@given(
    st.text(max_size=60),
    st.lists(st.text(max_size=60), max_size=3).map(tuple),
    st.integers(0, 2**40),
)
def test_any_registration_comes_back(
    name: str, redirects: tuple[str, ...], issued: int
) -> None:
    registration = Registration(
        name=name, redirects=redirects, grants=CLAUDE.grants, issued=issued
    )
    assert registration_of(client_id_of(registration, "a"), ["a"]) == registration


def test_one_letter_makes_another_id() -> None:
    """Each place of an id, with each other letter at the last one of it."""
    client_id = client_id_of(CLAUDE, "a")
    for place in range(len(client_id)):
        letter = "B" if client_id[place] == "A" else "A"
        changed = client_id[:place] + letter + client_id[place + 1 :]
        assert registration_of(changed, ["a"]) is None, place
    for name in ("Claude", "Claude2", "Claude33"):  # Each length of a last group.
        client_id = client_id_of(replace(CLAUDE, name=name), "a")
        for letter in BASE64URL.replace(client_id[-1], ""):
            assert registration_of(client_id[:-1] + letter, ["a"]) is None, letter


def test_what_was_never_an_id() -> None:
    good = client_id_of(CLAUDE, "a")
    for text in [
        *("", "mcp_cl_", "mcp_cl_A", "mcp_cl_" + "A" * 44, "mcp_cl_é", "A" * 300),
        *(good[:-1], good + "A", good + "=", good + "\n", " " + good, good.upper()),
        *(good.replace("mcp_cl_", "mcp_at_"), good.removeprefix("mcp_cl_")),
        *("mcp_cl_" + good, "mcp_cl_" + "A" * 3_000, good[:40] + "\n" + good[40:]),
        *(good[:40] + "+/" + good[42:], good[:40] + "%" + good[40:]),
    ]:
        assert registration_of(text, ["a"]) is None, text


def test_an_id_has_at_most_2000_characters() -> None:
    longest = replace(CLAUDE, redirects=("a" * 1_360,))
    client_id = client_id_of(longest, "a")
    assert 1_998 <= len(client_id) <= 2_000
    assert registration_of(client_id, ["a"]) == longest
    longer = replace(CLAUDE, redirects=("a" * 1_361,))
    with pytest.raises(OAuthError, match="too long") as caught:
        client_id_of(longer, "a")
    assert caught.value.error == "invalid_client_metadata"


def test_the_answer() -> None:
    assert registration_answer(CLAUDE, "mcp_cl_x") == {
        "client_id": "mcp_cl_x",
        "client_id_issued_at": 1_764_000_000,
        "client_name": "Claude",
        "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


# -- metadata --------------------------------------------------------------------------


ORIGIN = "https://shop.example.com"
ENDPOINTS = {
    name: f"{ORIGIN}/mcp-oauth/{name}"
    for name in ("authorize", "token", "register", "revoke")
}


def test_of_the_authorization_server() -> None:
    methods = ["none", "client_secret_basic", "client_secret_post"]
    assert server_metadata(ORIGIN, ENDPOINTS, documents=True, registration=True) == {
        "issuer": ORIGIN,
        "authorization_endpoint": f"{ORIGIN}/mcp-oauth/authorize",
        "token_endpoint": f"{ORIGIN}/mcp-oauth/token",
        "registration_endpoint": f"{ORIGIN}/mcp-oauth/register",
        "revocation_endpoint": f"{ORIGIN}/mcp-oauth/revoke",
        "scopes_supported": ["mcp:read", "mcp:change", "offline_access"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [
            *("authorization_code", "refresh_token", "client_credentials")
        ],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }
