"""The authorization request: what a program asks a person for (RFC 6749 §4.1.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcp_app.protocol.oauth.errors import OAuthError, invalid_request
from mcp_app.protocol.oauth.parameters import read_parameters
from mcp_app.protocol.oauth.pkce import is_challenge

READ: Final = "mcp:read"
CHANGE: Final = "mcp:change"
OFFLINE: Final = "offline_access"
SCOPES: Final = (READ, CHANGE)
"""What a program may do; OFFLINE says only how long, and is no right."""

MOST_CHARACTERS: Final = 8 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """A request as it was sent; a parameter that is missing is "".

    `scope` has those of SCOPES, `offline` says whether `offline_access` was asked
    for.  `challenge` and `challenge_method` are PKCE's.  `request` and `request_uri`
    say whether these parameters were there, which nobody reads (RFC 9101).
    """

    client_id: str
    redirect_uri: str
    response_type: str
    response_mode: str
    state: str
    scope: frozenset[str]
    offline: bool
    resources: tuple[str, ...]
    challenge: str
    challenge_method: str
    prompt: frozenset[str]
    request: bool
    request_uri: bool


def read_authorization(query: str) -> AuthorizationRequest:
    """The request of a raw query string of at most 8 KiB.

    Raises OAuthError (`invalid_request`) for one that is longer, has a parameter but
    `resource` twice, or is not written as percent-encoded UTF-8 without NUL.
    """
    pairs = read_parameters(query, most=MOST_CHARACTERS, several=["resource"])
    given = dict(pairs)
    scope = given.get("scope", "")
    return AuthorizationRequest(
        client_id=given.get("client_id", ""),
        redirect_uri=given.get("redirect_uri", ""),
        response_type=given.get("response_type", ""),
        response_mode=given.get("response_mode", ""),
        state=given.get("state", ""),
        scope=read_scope(scope),
        offline=OFFLINE in scope.split(" "),
        resources=tuple(value for name, value in pairs if name == "resource"),
        challenge=given.get("code_challenge", ""),
        challenge_method=given.get("code_challenge_method", ""),
        prompt=frozenset(given.get("prompt", "").split(" ")) - {""},
        request="request" in given,
        request_uri="request_uri" in given,
    )


def read_scope(scope: str) -> frozenset[str]:
    """Our scopes of a list with spaces (RFC 6749 §3.3); all where it has none."""
    return frozenset(scope.split(" ")).intersection(SCOPES) or frozenset(SCOPES)


def check_before_resource(request: AuthorizationRequest) -> None:
    """Raise OAuthError for what the client learns of before its resource is read.

    `unsupported_response_type`, `request_not_supported`, `request_uri_not_supported`,
    or `invalid_request` for a response mode but `query` and for PKCE but S256.
    """
    if request.response_type != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code.")
    if request.request:
        raise OAuthError("request_not_supported", "request is not read here.")
    if request.request_uri:
        raise OAuthError("request_uri_not_supported", "request_uri is not read here.")
    if request.response_mode not in {"", "query"}:
        raise invalid_request("response_mode must be query.")
    _check_challenge(request)


def _check_challenge(request: AuthorizationRequest) -> None:
    # Without a method it would be `plain` (RFC 7636 §4.3).
    if request.challenge_method != "S256":
        raise invalid_request("code_challenge_method must be S256.")
    if not is_challenge(request.challenge):
        raise invalid_request("code_challenge must have 43 characters of base64url.")


def check_after_resource(request: AuthorizationRequest) -> None:
    """Raise OAuthError (`interaction_required`) where no page may be shown."""
    if "none" in request.prompt:
        raise OAuthError("interaction_required", "A person has to allow it on a page.")
