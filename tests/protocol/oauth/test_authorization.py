"""What a program asks a person for, and the order in which it is refused."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from mcp_app.protocol.oauth.requests import (
    CHANGE,
    READ,
    AuthorizationRequest,
    OAuthError,
    check_after_resource,
    check_before_resource,
    read_authorization,
    read_scope,
)

CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
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
        ("", both),
        ("openid profile", both),
        ("offline_access", both),
        ("mcp:read", {READ}),
        ("mcp:change", {CHANGE}),
        ("mcp:change mcp:read", both),
        ("mcp:read x", {READ}),
        ("MCP:READ", both),
        ("mcp:read,mcp:change", both),
        ("mcp:read\tmcp:change", both),
    ]:
        assert read_scope(scope) == ours, scope
    assert not request_of(scope="offline_accessed").offline


def test_queries_that_are_refused() -> None:
    for query in [
        "state=1&state=1",
        "client_id=a&client%5Fid=b",
        "unknown=1&unknown=2",
        "state=%00",
        "state=%FF",
        "state=%",
        "state=é",
        "state=" + "a" * 8_187,
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
    ({"response_type": ""}, "unsupported_response_type"),
    ({"response_type": "code token"}, "unsupported_response_type"),
    ({"response_type": "Code"}, "unsupported_response_type"),
    ({"response_mode": "form_post"}, "invalid_request"),
    ({"code_challenge_method": ""}, "invalid_request"),
    ({"code_challenge_method": "s256"}, "invalid_request"),
    ({"code_challenge": ""}, "invalid_request"),
    ({"code_challenge": CHALLENGE + "="}, "invalid_request"),
]


def test_what_is_refused_before_the_resource() -> None:
    check_before_resource(request_of(response_mode="query", prompt="none"))
    for changes, error in [*FAULTS, *MORE_FAULTS]:
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
