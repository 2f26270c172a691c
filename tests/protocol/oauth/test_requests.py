"""Tests of `mcp_app/protocol/oauth/requests.py`."""

from __future__ import annotations

import re
from base64 import b64encode
from urllib.parse import quote_plus, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_app.protocol.oauth.requests import (
    CHANGE,
    READ,
    AuthorizationRequest,
    ClientCredentials,
    CodeGrant,
    MachineGrant,
    OAuthError,
    Pairs,
    RefreshGrant,
    check_after_resource,
    check_before_resource,
    client_of,
    decode_form_value,
    is_challenge,
    is_verifier,
    is_verifier_of,
    read_authorization,
    read_form,
    read_grant,
    read_parameters,
    read_revocation,
    read_scope,
)


def test_a_refusal_has_its_code_its_sentence_and_its_status() -> None:
    error = OAuthError("invalid_client", "Nobody knows it.", status=401)
    assert (error.error, error.description) == ("invalid_client", "Nobody knows it.")
    assert error.status == 401
    assert error.json_body() == {
        "error": "invalid_client",
        "error_description": "Nobody knows it.",
    }
    assert str(error) == "invalid_client: Nobody knows it."
    assert OAuthError("invalid_grant", "").status == 400


def test_a_sentence_stays_readable() -> None:
    error = OAuthError("invalid_request", 'A “b” of "c" \\ d\n§')
    assert error.description == "A 'b' of 'c' / d??"


def test_a_sentence_is_ascii_as_the_rfc_wants() -> None:
    text = "".join(map(chr, [*range(0x800), 0x201C, 0xD800, 0x1F916]))
    description = OAuthError("invalid_request", text).description
    assert re.fullmatch(r"[\x20\x21\x23-\x5B\x5D-\x7E]*", description)
    assert len(description) == len(text)


# -- parameters ------------------------------------------------------------------------


PAIRS = [
    *(("", []), ("a=b", [("a", "b")]), ("a=b&&c=d&", [("a", "b"), ("c", "d")])),
    *(("a=&b&c=1", [("c", "1")]), ("a=b=c", [("a", "b=c")])),
    *(("a;b=c;d", [("a;b", "c;d")]), ("a+b=c+d", [("a b", "c d")])),
    *(("%61=%C3%A9%2B", [("a", "é+")]), ("r=1&r=2", [("r", "1"), ("r", "2")])),
    ("r=1&%72=1", [("r", "1"), ("r", "1")]),
]
NO_PAIRS = {
    "twice": ["a=1&a=2", "a=1&%61=2", "a=&a=1", "a&a"],
    "percent-encoded": ["a=%", "a=%4", "a=%zz", "a=%u0041", "a=é", "%=b"],
    "UTF-8": ["a=%FF", "a=%C3", "a=%C0%AF", "a=%ED%A0%80"],
    "NUL": ["a=%00", "a%00=1", "a=\0"],
    "more than 100 bytes": ["a=" + "b" * 99],
}


def test_what_is_read() -> None:
    for text, pairs in PAIRS:
        assert read_parameters(text, most=100, several=["r"]) == pairs, text


def test_what_is_refused() -> None:
    for reason, texts in NO_PAIRS.items():
        for text in texts:
            with pytest.raises(OAuthError, match=reason) as caught:
                read_parameters(text, most=100, several=["r"])
            assert caught.value.error == "invalid_request", text


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=9), st.text(min_size=1, max_size=9)))
def test_what_forms_write_comes_back(values: dict[str, str]) -> None:
    pairs: Pairs = [
        each for each in values.items() if "\0" not in "".join(each) and each[0]
    ]
    assert read_parameters(urlencode(pairs), most=10_000) == pairs


def test_one_value() -> None:
    assert decode_form_value("a%20b+c") == "a b c"
    with pytest.raises(ValueError, match="percent-encoded"):
        decode_form_value("50%")


# -- pkce ------------------------------------------------------------------------------


# RFC 7636, appendix B.
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_the_example_of_the_rfc() -> None:
    assert is_verifier_of(CHALLENGE, VERIFIER)


def test_what_does_not_fit() -> None:
    for challenge, verifier in [
        *((VERIFIER, VERIFIER), (CHALLENGE, CHALLENGE)),
        (CHALLENGE, VERIFIER[:-1] + "l"),
        (CHALLENGE, VERIFIER.lower()),
        (CHALLENGE[:-1] + "N", VERIFIER),
        *((CHALLENGE + "=", VERIFIER), (CHALLENGE, VERIFIER + "\n"), (CHALLENGE, "")),
        *(("", VERIFIER), ("", ""), (CHALLENGE, "é" * 43), ("é" * 43, VERIFIER)),
    ]:
        assert not is_verifier_of(challenge, verifier), (challenge, verifier)


def test_the_form_of_challenges() -> None:
    for text in (CHALLENGE, "a" * 43, "-_" + "0" * 41):
        assert is_challenge(text), text
    for text in (
        *("", "a" * 42, "a" * 44, "a" * 42 + "=", "a" * 42 + "~", "a" * 42 + "\n"),
        *("a" * 43 + "\n", "é" * 43, "٣" * 43, " " + "a" * 42),
    ):
        assert not is_challenge(text), text


def test_the_form_of_verifiers() -> None:
    for text in (VERIFIER, "a" * 43, "a" * 128, "-._~" + "A" * 39):
        assert is_verifier(text), text
    for text in ("", "a" * 42, "a" * 129, "+" * 43, "é" * 43, "a" * 43 + "\n"):
        assert not is_verifier(text), text


# -- authorization ---------------------------------------------------------------------


GOOD = {
    "client_id": "https://claude.ai/oauth/mcp-oauth-client-metadata",
    "redirect_uri": "https://claude.ai/api/mcp/auth_callback",
    "response_type": "code",
    "state": "a b+c",
    "scope": "mcp:read offline_access openid",
    "resource": "https://shop.example.com/mcp",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
}


def request_of(**changes: str) -> AuthorizationRequest:
    return read_authorization(urlencode({**GOOD, **changes}))


def test_a_request_is_read() -> None:
    assert request_of() == AuthorizationRequest(
        client_id="https://claude.ai/oauth/mcp-oauth-client-metadata",
        redirect_uri="https://claude.ai/api/mcp/auth_callback",
        response_type="code",
        response_mode="",
        state="a b+c",
        scope=frozenset({READ}),
        offline=True,
        resources=("https://shop.example.com/mcp",),
        challenge=CHALLENGE,
        challenge_method="S256",
        prompt=frozenset(),
        request=False,
        request_uri=False,
    )


def test_what_is_missing_is_empty() -> None:
    for query in ("", "client_id=&state=&resource=&request=&prompt="):
        request = read_authorization(query)
        assert (request.client_id, request.redirect_uri) == ("", "")
        assert (request.state, request.resources) == ("", ())
        assert (request.prompt, request.request) == (frozenset(), False)
        assert not request.offline


def test_resources_may_be_several() -> None:
    request = read_authorization("resource=a&resource=b&resource=&resource=a")
    assert request.resources == ("a", "b", "a")


def test_scopes() -> None:
    both = {READ, CHANGE}
    for scope, ours in [
        *(("", both), ("openid profile", both), ("offline_access", both)),
        ("mcp:read", {READ}),
        ("mcp:change", {CHANGE}),
        ("mcp:change mcp:read", both),
        ("mcp:read x", {READ}),
        *(("MCP:READ", both), ("mcp:read,mcp:change", both)),
        ("mcp:read\tmcp:change", both),
    ]:
        assert read_scope(scope) == ours, scope
    assert not request_of(scope="offline_accessed").offline


def test_queries_that_are_refused() -> None:
    for query in [
        *("state=1&state=1", "client_id=a&client%5Fid=b", "unknown=1&unknown=2"),
        *("state=%00", "state=%FF", "state=%", "state=é", "state=" + "a" * 8_187),
    ]:
        with pytest.raises(OAuthError) as caught:
            read_authorization(query)
        assert caught.value.error == "invalid_request", query
    assert len(read_authorization("state=" + "a" * 8_186).state) == 8_186


# In the order in which they are looked at: each also has all that come after it.
FAULTS = [
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"request": "e30"}, "request_not_supported"),
    ({"request_uri": "https://a.example/"}, "request_uri_not_supported"),
    ({"response_mode": "fragment"}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge": "a" * 42}, "invalid_request"),
]
MORE_FAULTS = [
    ({"response_type": "code token"}, "unsupported_response_type"),
    ({"response_type": "Code"}, "unsupported_response_type"),
    ({"response_mode": "form_post"}, "invalid_request"),
    ({"code_challenge_method": "s256"}, "invalid_request"),
    ({"code_challenge": CHALLENGE + "="}, "invalid_request"),
]


def test_what_is_refused_before_the_resource() -> None:
    check_before_resource(request_of(response_mode="query", prompt="none"))
    for changes, error in MORE_FAULTS:
        with pytest.raises(OAuthError) as caught:
            check_before_resource(request_of(**changes))
        assert caught.value.error == error, changes


def test_the_first_fault_is_told() -> None:
    for first in range(len(FAULTS)):
        faults: dict[str, str] = {}
        for changes, _ in FAULTS[first:]:
            faults |= changes
        with pytest.raises(OAuthError) as caught:
            check_before_resource(request_of(**faults))
        assert caught.value.error == FAULTS[first][1]
        if caught.value.error == "invalid_request":
            assert next(iter(FAULTS[first][0])) in caught.value.description


def test_a_page_is_always_shown() -> None:
    for prompt in ("", "login", "consent select_account"):
        check_after_resource(request_of(prompt=prompt))
    for prompt in ("none", "login none"):
        with pytest.raises(OAuthError) as caught:
            check_after_resource(request_of(prompt=prompt))
        assert caught.value.error == "interaction_required"


# -- token requests --------------------------------------------------------------------


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
    bodies = [
        *(b"a=b&a=b", b"resource=a&resource=b", b"a=%", b"a=%FF", b"a=%00", b"a=\x00"),
        *(b"a=\xff", "a=é".encode(), b"a=" + b"b" * 16_383),
    ]
    queries = [
        *("client_id=a", "x=1&client_secret=a", "client%5Fsecret=a", "code=a"),
        *("code_verifier=a", "refresh_token=a", "token=a"),
        *("grant_type=client_credentials", "a=%"),
    ]
    for content_type, body, query in [
        ("", b"a=b", ""),
        ("application/json", b"{}", ""),
        ("multipart/form-data; boundary=a", b"", ""),
        (f"text/plain; {FORM}", b"a=b", ""),
        *((FORM, body, "") for body in bodies),
        *((FORM, b"", query) for query in queries),
    ]:
        with pytest.raises(OAuthError) as caught:
            read_form(content_type, body, query)
        assert caught.value.error == "invalid_request", (content_type, body, query)
        assert caught.value.status == 400


def test_who_asks() -> None:
    for form, authorization, client in [
        *(({"client_id": "a"}, None, ("a", "")), ({"client_id": "a"}, "", ("a", ""))),
        ({"client_id": "a", "client_secret": "b"}, None, ("a", "b")),
        ({"client_id": "a"}, "Bearer x", ("a", "")),
        *(({}, basic("a:b"), ("a", "b")), ({}, basic("a:"), ("a", ""))),
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


SECRET = {"client_secret": "b"}
NO_HEADERS = [
    *("Basic", "Basic ", "Basic a:b", "Basic é", basic("a"), basic(":b"), basic(":")),
    *(basic("a:%"), basic("a:é"), basic("a:%FF"), basic("a:%00"), basic(b"a:\xff")),
    *(basic("a:bb").rstrip("="), basic("a:b") + "!", basic("a:b") + " x"),
]


def test_who_cannot_be_told() -> None:
    for form, authorization, error, status in [
        ({}, None, "invalid_request", 400),
        ({"client_secret": "b"}, None, "invalid_request", 400),
        ({}, "Bearer x", "invalid_request", 400),
        ({"client_secret": "b"}, basic("a:b"), "invalid_request", 400),
        ({"client_id": "a", **SECRET}, basic("a:b"), "invalid_request", 400),
        ({"client_id": "c"}, basic("a:b"), "invalid_request", 400),
        *(({"client_id": "a"}, each, "invalid_client", 401) for each in NO_HEADERS),
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
