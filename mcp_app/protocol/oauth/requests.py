"""Requests of programs to the authorization server (RFC 6749), and its refusals."""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Final, TypeAlias
from urllib.parse import unquote_to_bytes

from mcp_app.protocol.cursors import base64url
from mcp_app.protocol.json_types import JsonObject

# -- errors ----------------------------------------------------------------------------
# The refusals of an authorization server, with the codes of RFC 6749.

_READABLE: Final = str.maketrans('"\\\u2018\u2019\u201c\u201d', "'/''''")
_NOT_ALLOWED: Final = re.compile(r"[^\x20\x21\x23-\x5B\x5D-\x7E]")


class OAuthError(Exception):
    """A request that is refused (RFC 6749 §4.1.2.1 and §5.2).

    `error` is a code of the RFCs, `description` one sentence, `status` the HTTP status
    if the error is the whole answer.  Characters that §5.2 does not allow in a
    description are replaced.
    """

    def __init__(self, error: str, description: str, *, status: int = 400) -> None:
        self.error = error
        self.description = _NOT_ALLOWED.sub("?", description.translate(_READABLE))
        self.status = status
        super().__init__(f"{error}: {self.description}")

    def json_body(self) -> JsonObject:
        """The JSON of the answer."""
        return {"error": self.error, "error_description": self.description}


def invalid_request(description: str, *, status: int = 400) -> OAuthError:
    """Return the error for a request with a wrong, repeated or missing part."""
    return OAuthError("invalid_request", description, status=status)


# -- parameters ------------------------------------------------------------------------
# Parameters of a query or a form, read in one way only (RFC 6749, appendix B).

Pairs: TypeAlias = list[tuple[str, str]]

_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def decode_form_value(text: str) -> str:
    """Return the value of a form-url-encoded text.

    Raises ValueError with a sentence if the text is not ASCII, has a broken escape,
    does not decode to UTF-8, or holds NUL.
    """
    if not text.isascii() or _BROKEN_ESCAPE.search(text):
        raise ValueError("It is not percent-encoded.")
    try:
        value = unquote_to_bytes(text.replace("+", " ")).decode()
    except UnicodeDecodeError:
        raise ValueError("It is not UTF-8.") from None
    if "\0" in value:
        raise ValueError("It holds the character NUL.")
    return value


def read_parameters(text: str, *, most: int, several: Collection[str] = ()) -> Pairs:
    """Return the names and values of a query or form of at most `most` characters.

    Raises OAuthError (`invalid_request`) if it is longer, if `decode_form_value`
    refuses a part, or if a name that is not in `several` occurs twice.  Empty values
    are left out: they count as missing (RFC 6749 §3.1).
    """
    if len(text) > most:
        raise invalid_request(f"The request has more than {most} bytes.")
    try:
        parts = [each.partition("=") for each in text.split("&") if each]
        pairs = [
            (decode_form_value(name), decode_form_value(value))
            for name, _, value in parts
        ]
    except ValueError as error:
        raise invalid_request(f"A parameter cannot be read. {error}") from None
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1 and name not in several:
            raise invalid_request(f"The parameter {name[:40]} is there twice.")
    return [(name, value) for name, value in pairs if value]


# -- pkce ------------------------------------------------------------------------------
# Proof that the program that sends a code also asked for it (RFC 7636, only S256).

_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")


def is_challenge(text: str) -> bool:
    """Whether a text has the form of an S256 challenge: 43 characters (§4.2)."""
    return _CHALLENGE.fullmatch(text) is not None


def is_verifier(text: str) -> bool:
    """Whether a text has the form of a verifier: 43 to 128 characters (§4.1)."""
    return _VERIFIER.fullmatch(text) is not None


def is_verifier_of(challenge: str, verifier: str) -> bool:
    """Whether a verifier fits a challenge, in constant time (§4.6)."""
    if not (is_challenge(challenge) and is_verifier(verifier)):
        return False
    return compare_digest(base64url(sha256(verifier.encode()).digest()), challenge)


# -- authorization ---------------------------------------------------------------------
# The authorization request: what a program asks a person for (RFC 6749 §4.1.1).

READ: Final = "mcp:read"
CHANGE: Final = "mcp:change"
OFFLINE: Final = "offline_access"
SCOPES: Final = (READ, CHANGE)
"""The rights of a program.  OFFLINE is no right: it asks for a refresh token."""

MAX_PARAMETER_LENGTH: Final = 8 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """A request as it was sent; a missing parameter is "".

    `scope` has the wanted scopes of SCOPES, or all; `offline` says whether
    `offline_access` was asked for.
    `challenge` and `challenge_method` are PKCE's.  `request` and `request_uri` say
    whether these parameters were sent; they are not supported (RFC 9101).
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
    """Return the request of a raw query string of at most 8 KiB.

    Raises OAuthError (`invalid_request`) if it is longer, if a parameter other than
    `resource` occurs twice, or if it is not percent-encoded UTF-8 without NUL.
    """
    pairs = read_parameters(query, most=MAX_PARAMETER_LENGTH, several=["resource"])
    values = dict(pairs)
    scope = values.get("scope", "")
    return AuthorizationRequest(
        client_id=values.get("client_id", ""),
        redirect_uri=values.get("redirect_uri", ""),
        response_type=values.get("response_type", ""),
        response_mode=values.get("response_mode", ""),
        state=values.get("state", ""),
        scope=read_scope(scope),
        offline=OFFLINE in scope.split(" "),
        resources=tuple(value for name, value in pairs if name == "resource"),
        challenge=values.get("code_challenge", ""),
        challenge_method=values.get("code_challenge_method", ""),
        prompt=frozenset(values.get("prompt", "").split(" ")) - {""},
        request="request" in values,
        request_uri="request_uri" in values,
    )


def read_scope(scope: str) -> frozenset[str]:
    """Return which of SCOPES a text names (RFC 6749 §3.3); all if it names none."""
    return scopes_in(scope) or frozenset(SCOPES)


def scopes_in(scope: str) -> frozenset[str]:
    """Return which of SCOPES a text names, with spaces between its words."""
    return frozenset(scope.split(" ")).intersection(SCOPES)


def check_before_resource(request: AuthorizationRequest) -> None:
    """Raise OAuthError for errors that come before those of the resource.

    `unsupported_response_type`, `request_not_supported`, `request_uri_not_supported`,
    or `invalid_request` for a response mode other than `query` or PKCE without S256.
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
    # If the method is missing, the RFC means `plain` (RFC 7636 §4.3).
    if request.challenge_method != "S256":
        raise invalid_request("code_challenge_method must be S256.")
    if not is_challenge(request.challenge):
        raise invalid_request("code_challenge must have 43 characters of base64url.")


def check_after_resource(request: AuthorizationRequest) -> None:
    """Raise OAuthError (`interaction_required`) if no page may be shown."""
    if "none" in request.prompt:
        raise OAuthError("interaction_required", "A person has to allow it on a page.")


# -- token requests --------------------------------------------------------------------
# Requests for tokens and for their end (RFC 6749 §3.2, RFC 7009).

MAX_FORM_BYTES: Final = 16 * 1024
FORM: Final = "application/x-www-form-urlencoded"
MACHINE: Final = "client_credentials"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

_NEVER_IN_A_URL: Final = frozenset(
    [
        "assertion",
        "client_assertion",
        "client_id",
        "client_secret",
        "code",
        "code_verifier",
        "grant_type",
        "password",
        "refresh_token",
        "token",
        "username",
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """The identity that a client claims; `secret` is "" if it sends none.

    `assertion` is that of RFC 7523 §2.2; with it, `client_id` may be "".
    """

    client_id: str
    secret: str
    assertion: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeGrant:
    """A code to exchange (RFC 6749 §4.1.3); `resource` is "" if none was named."""

    code: str
    redirect_uri: str
    verifier: str
    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshGrant:
    """A refresh token to exchange (RFC 6749 §6); `scope` is the most that is wanted."""

    refresh_token: str
    resource: str
    scope: frozenset[str] = frozenset(SCOPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineGrant:
    """Client credentials (RFC 6749 §4.4); a scope is ignored."""

    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionGrant:
    """A company's assertion about a person (RFC 7523 §2.1); `scope` may be empty."""

    assertion: str
    resource: str
    scope: frozenset[str]


def read_form(content_type: str, body: bytes, query: str) -> dict[str, str]:
    """Return the parameters of a form of at most 16 KiB, without empty values.

    `query` is the raw query of the request's address.  Raises OAuthError
    (`invalid_request`) for another type, a repeated parameter, text that is not
    percent-encoded UTF-8, and credentials in the query (RFC 6749 §2.3.1).
    """
    if content_type.partition(";")[0].strip().lower() != FORM:
        raise invalid_request(f"The request must be a form ({FORM}).")
    for name, _ in read_parameters(query, most=MAX_FORM_BYTES):
        if name in _NEVER_IN_A_URL:
            raise invalid_request(
                f"{name} belongs into the form, not into the address."
            )
    # Bytes beyond ASCII become characters that `decode_form_value` refuses.
    return dict(read_parameters(body.decode("latin-1"), most=MAX_FORM_BYTES))


def client_of(form: Mapping[str, str], authorization: str | None) -> ClientCredentials:
    """Return the client, by Basic, or by `client_id` and `client_secret` of the form.

    `authorization` is the header's value; schemes other than Basic are ignored.  For
    client credentials, `client_assertion` is read first.  Raises OAuthError:
    `invalid_request` if the client names itself in both ways or in none,
    `invalid_client` (401) if the header cannot be read.
    """
    scheme, _, value = (authorization or "").strip(" \t").partition(" ")
    if form.get("grant_type") == MACHINE and "client_assertion" in form:
        if scheme.lower() == "basic" or "client_secret" in form:
            raise invalid_request("Send a secret or client_assertion, not both.")
        if form.get("client_assertion_type") != ASSERTION_TYPE:
            raise invalid_request(f"client_assertion_type must be {ASSERTION_TYPE}.")
        client_id, assertion = form.get("client_id", ""), form["client_assertion"]
        return ClientCredentials(client_id=client_id, secret="", assertion=assertion)
    if scheme.lower() == "basic":
        client_id, secret = _basic_credentials(value.strip(" \t"))
        if "client_secret" in form or form.get("client_id", client_id) != client_id:
            raise invalid_request(
                "The client names itself in the header and in the form."
            )
        return ClientCredentials(client_id=client_id, secret=secret)
    return ClientCredentials(
        client_id=_required_value(form, "client_id"),
        secret=form.get("client_secret", ""),
    )


def _basic_credentials(value: str) -> tuple[str, str]:
    """Return name and secret, each form-url-encoded in Basic (RFC 6749 §2.3.1)."""
    try:
        name, colon, secret = b64decode(value, validate=True).decode().partition(":")
        client_id, decoded = decode_form_value(name), decode_form_value(secret)
    except ValueError:
        client_id = colon = decoded = ""
    if not (client_id and colon):
        raise OAuthError(
            "invalid_client", "The header Authorization cannot be read.", status=401
        )
    return client_id, decoded


def read_grant(
    form: Mapping[str, str],
) -> CodeGrant | RefreshGrant | MachineGrant | AssertionGrant:
    """Return the grant of a form.

    Raises OAuthError: `unsupported_grant_type`, or `invalid_request` for a missing
    parameter or a malformed verifier (RFC 7636 §4.1).  A well-formed verifier that does
    not fit the code is `invalid_grant` (§4.6), which is not raised here.
    """
    resource = form.get("resource", "")
    match _required_value(form, "grant_type"):
        case "authorization_code":
            grant = CodeGrant(
                code=_required_value(form, "code"),
                redirect_uri=_required_value(form, "redirect_uri"),
                verifier=_required_value(form, "code_verifier"),
                resource=resource,
            )
            if not is_verifier(grant.verifier):
                raise invalid_request(
                    "code_verifier must have 43 to 128 characters of RFC 7636."
                )
            return grant
        case "refresh_token":
            token = _required_value(form, "refresh_token")
            scope = read_scope(form.get("scope", ""))
            return RefreshGrant(refresh_token=token, resource=resource, scope=scope)
        case "client_credentials":
            return MachineGrant(resource=resource)
        case grant_type if grant_type == JWT_BEARER:
            assertion = _required_value(form, "assertion")
            scope = scopes_in(form.get("scope", " ".join(SCOPES)))
            return AssertionGrant(assertion=assertion, resource=resource, scope=scope)
    raise OAuthError(
        "unsupported_grant_type",
        "grant_type must be authorization_code, refresh_token or client_credentials.",
    )


def read_revocation(form: Mapping[str, str]) -> str:
    """Return the token to end; OAuthError (`invalid_request`) if it is missing."""
    return _required_value(form, "token")


def _required_value(form: Mapping[str, str], name: str) -> str:
    value = form.get(name, "")
    if not value:
        raise invalid_request(f"{name} is missing.")
    return value
