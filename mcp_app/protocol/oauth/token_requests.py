"""Requests for tokens and for their end (RFC 6749 §3.2, RFC 7009)."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcp_app.protocol.oauth.authorization import SCOPES, read_scope
from mcp_app.protocol.oauth.errors import OAuthError, invalid_request
from mcp_app.protocol.oauth.parameters import decode, read_parameters
from mcp_app.protocol.oauth.pkce import is_verifier

MOST_BYTES: Final = 16 * 1024
FORM: Final = "application/x-www-form-urlencoded"

_NEVER_IN_A_URL: Final = frozenset(
    [
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
    """Who a client says it is; `secret` is "" where it has none to show."""

    client_id: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeGrant:
    """A code to exchange (RFC 6749 §4.1.3); `resource` is "" where none was named."""

    code: str
    redirect_uri: str
    verifier: str
    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshGrant:
    """A refresh token to exchange (RFC 6749 §6); `scope` is the most that is asked."""

    refresh_token: str
    resource: str
    scope: frozenset[str] = frozenset(SCOPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineGrant:
    """Client credentials (RFC 6749 §4.4); a scope is not looked at."""

    resource: str


def read_form(content_type: str, body: bytes, query: str) -> dict[str, str]:
    """The parameters of a form of at most 16 KiB; those without a value are left out.

    `query` is the raw query of the request's address.  Raises OAuthError
    (`invalid_request`) for another type, a parameter twice, what is not
    percent-encoded UTF-8, and credentials in the query (RFC 6749 §2.3.1).
    """
    if content_type.partition(";")[0].strip().lower() != FORM:
        raise invalid_request(f"The request must be a form ({FORM}).")
    for name, _ in read_parameters(query, most=MOST_BYTES):
        if name in _NEVER_IN_A_URL:
            raise invalid_request(
                f"{name} belongs into the form, not into the address."
            )
    # Bytes beyond ASCII become characters that no form has.
    return dict(read_parameters(body.decode("latin-1"), most=MOST_BYTES))


def client_of(form: Mapping[str, str], authorization: str | None) -> ClientCredentials:
    """Who asks: by Basic, or by `client_id` and perhaps `client_secret` of the form.

    `authorization` is the header's value; other schemes than Basic are not looked at.
    Raises OAuthError: `invalid_request` for both ways at once, or none,
    `invalid_client` (401) for a header that cannot be read.
    """
    scheme, _, value = (authorization or "").strip(" \t").partition(" ")
    if scheme.lower() == "basic":
        return _client_of_header(form, value.strip(" \t"))
    return ClientCredentials(
        client_id=_needed(form, "client_id"),
        secret=form.get("client_secret", ""),
    )


def _client_of_header(form: Mapping[str, str], value: str) -> ClientCredentials:
    client_id, secret = _basic(value)
    if "client_secret" in form or form.get("client_id", client_id) != client_id:
        raise invalid_request("The client names itself in the header and in the form.")
    return ClientCredentials(client_id=client_id, secret=secret)


def _basic(value: str) -> tuple[str, str]:
    """Name and secret, each form-url-encoded in Basic (RFC 6749 §2.3.1)."""
    try:
        name, colon, secret = b64decode(value, validate=True).decode().partition(":")
        client_id, decoded = decode(name), decode(secret)
    except ValueError:
        client_id = colon = decoded = ""
    if not (client_id and colon):
        raise OAuthError(
            "invalid_client", "The header Authorization cannot be read.", status=401
        )
    return client_id, decoded


def read_grant(form: Mapping[str, str]) -> CodeGrant | RefreshGrant | MachineGrant:
    """What a form asks tokens for.

    Raises OAuthError: `unsupported_grant_type`, or `invalid_request` for a parameter
    that is missing, or a verifier that can be none (RFC 7636 §4.1; one that only
    does not fit is `invalid_grant`, §4.6).
    """
    resource = form.get("resource", "")
    match _needed(form, "grant_type"):
        case "authorization_code":
            return _code_grant(form, resource)
        case "refresh_token":
            token = _needed(form, "refresh_token")
            scope = read_scope(form.get("scope", ""))
            return RefreshGrant(refresh_token=token, resource=resource, scope=scope)
        case "client_credentials":
            return MachineGrant(resource=resource)
    raise OAuthError(
        "unsupported_grant_type",
        "grant_type must be authorization_code, refresh_token or client_credentials.",
    )


def _code_grant(form: Mapping[str, str], resource: str) -> CodeGrant:
    grant = CodeGrant(
        code=_needed(form, "code"),
        redirect_uri=_needed(form, "redirect_uri"),
        verifier=_needed(form, "code_verifier"),
        resource=resource,
    )
    if not is_verifier(grant.verifier):
        raise invalid_request(
            "code_verifier must have 43 to 128 characters of RFC 7636."
        )
    return grant


def read_revocation(form: Mapping[str, str]) -> str:
    """The token to end; OAuthError (`invalid_request`) where it is missing."""
    return _needed(form, "token")


def _needed(form: Mapping[str, str], name: str) -> str:
    value = form.get(name, "")
    if not value:
        raise invalid_request(f"{name} is missing.")
    return value
