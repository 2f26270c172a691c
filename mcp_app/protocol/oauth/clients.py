"""How programs describe themselves, and the metadata that they read first."""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote

from pydantic import BaseModel, TypeAdapter, ValidationError

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.cursors import base64url, decode_base64url, derived_key
from mcp_app.protocol.errors import ParseError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.oauth.addresses import (
    read_web_url,
    redirect_host,
    redirect_problem,
)
from mcp_app.protocol.oauth.requests import JWT_BEARER, OFFLINE, SCOPES, OAuthError
from mcp_app.protocol.oauth.texts import CLIENT, display_name

# -- client metadata -------------------------------------------------------------------
# The common part of registrations and client documents (RFC 7591 §2).

MAX_METADATA_BYTES: Final = 16 * 1024
CODE_GRANT: Final = "authorization_code"
GRANTS: Final = (CODE_GRANT, "refresh_token")
"""Grants that a client without a secret can have here."""


class MetadataMembers(BaseModel, strict=True):
    """The members that are used here, as they were sent; null counts as missing."""

    client_id: object = None
    client_name: str | None = None
    redirect_uris: list[str] | None = None
    grant_types: list[str] | None = None
    token_endpoint_auth_method: object = None


class ClientMetadata(NamedTuple):
    """The metadata of a client, which nobody has checked.

    `redirects` are the allowed ones, `grants` those of GRANTS, both in order and
    without repetition.
    """

    members: MetadataMembers
    redirects: tuple[str, ...]
    grants: tuple[str, ...]


def read_client_metadata(body: bytes, schemes: Collection[str]) -> ClientMetadata:
    """Return the metadata in a JSON object of at most 16 KiB.

    Raises OAuthError: `invalid_client_metadata` if it has another form or lacks the
    code grant, `invalid_redirect_uri` if no redirect is allowed.
    """
    if len(body) > MAX_METADATA_BYTES:
        raise invalid_metadata(f"It has more than {MAX_METADATA_BYTES} bytes.")
    try:
        value = jsonrpc.read(body)
        if not isinstance(value, dict):
            raise invalid_metadata("It must be a JSON object.")
        members = MetadataMembers.model_validate(value)
    except ParseError as error:
        raise invalid_metadata(error.message) from None
    except ValidationError as error:
        wrong = error.errors()[0]
        place = jsonrpc.path_text(wrong["loc"])
        raise invalid_metadata(
            f"{place}: {wrong['msg']}, not {wrong['input']!r:.80}."
        ) from None
    redirects = dict.fromkeys(members.redirect_uris or ())
    allowed = [each for each in redirects if redirect_problem(each, schemes) is None]
    if not allowed:
        kinds = ["https", "http on 127.0.0.1, [::1] or localhost", *sorted(schemes)]
        raise OAuthError(
            "invalid_redirect_uri",
            f"redirect_uris has none that is allowed: {' or '.join(kinds)}.",
        )
    grants = [CODE_GRANT] if members.grant_types is None else members.grant_types
    if CODE_GRANT not in grants:
        raise invalid_metadata(f"grant_types must have {CODE_GRANT}.")
    return ClientMetadata(
        members, tuple(allowed), tuple(each for each in GRANTS if each in grants)
    )


def invalid_metadata(description: str) -> OAuthError:
    """Return the error for wrong metadata of a client."""
    return OAuthError("invalid_client_metadata", description)


# -- documents -------------------------------------------------------------------------
# Client ID metadata documents: a client's id is the URL of its own description.
#
# draft-ietf-oauth-client-id-metadata-document-00.

MAX_DOCUMENT_URL_LENGTH: Final = 2_000
MIN_AGE_S: Final = 60
MAX_AGE_S: Final = 24 * 60 * 60
DEFAULT_AGE_S: Final = 60 * 60
"""Seconds for which a document is kept."""

_JSON: Final = re.compile(
    r"application/(?:[a-z0-9!#$&^_.-]+\+)?json[ \t]*(?:;.*)?", re.IGNORECASE | re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDocument:
    """The content of the document at `url`; `host` has its port, if that is not 443."""

    url: str
    host: str
    name: str
    redirects: tuple[str, ...]
    grants: tuple[str, ...]


def is_document_url(client_id: str) -> bool:
    """Whether a client's id claims to be the URL of a document."""
    return client_id.startswith("https://")


def document_url_problem(client_id: str) -> str | None:
    """Return why no document can be at this id, in a sentence, else None (§3)."""
    if len(client_id) > MAX_DOCUMENT_URL_LENGTH:
        return f"It has more than {MAX_DOCUMENT_URL_LENGTH} characters."
    if not is_document_url(client_id):
        return "It does not begin with https://."
    try:
        path = read_web_url(client_id).path
    except ValueError as error:
        return str(error)
    if path in {"", "/"}:
        return "It has no path."
    if {".", ".."} & set(re.split(r"[/\\]", unquote(path))):
        return "Its path has a segment of dots."
    return None


def read_document(
    url: str, content_type: str, body: bytes, schemes: Collection[str]
) -> ClientDocument:
    """Return the document that was fetched from `url`.

    `schemes` are private-use schemes of redirects.  Raises OAuthError
    (`invalid_client`), with a sentence, if the body is no JSON of at most 16 KiB,
    describes another client, has no name, wants a secret, or has no allowed redirect.
    """
    if not _JSON.fullmatch(content_type.strip()):
        raise _invalid_client("The document is not of the type application/json.")
    try:
        metadata = read_client_metadata(body, schemes)
    except OAuthError as error:
        raise _invalid_client(
            f"The document cannot be used. {error.description}"
        ) from None
    _check_client(metadata, url)
    host = read_web_url(url).authority
    return ClientDocument(
        url=url,
        host=host,
        name=display_name(metadata.members.client_name, host),
        redirects=metadata.redirects,
        grants=metadata.grants,
    )


def _check_client(metadata: ClientMetadata, url: str) -> None:
    if metadata.members.client_id != url:
        raise _invalid_client("client_id of the document is not its own address.")
    if metadata.members.client_name is None:
        raise _invalid_client("The document has no client_name.")
    # Everybody who can read the document could read the secret (§4.1).
    if str(metadata.members.token_endpoint_auth_method).startswith("client_secret"):
        raise _invalid_client("A client with a document cannot have a secret.")


def _invalid_client(description: str) -> OAuthError:
    return OAuthError("invalid_client", description)


def cache_seconds(cache_control: str | None) -> int:
    """Return for how many seconds a document is kept (Cache-Control, RFC 9111 §5.2).

    It is 60 to 86,400: the value of `max-age`, an hour without one, and 60 for
    `no-store`, `no-cache` and values that cannot be read.
    """
    ages: list[int] = []
    for directive in (cache_control or "").lower().split(","):
        name, _, value = directive.strip().partition("=")
        if name in {"no-store", "no-cache"}:
            ages.append(0)
        elif name == "max-age":
            # int() accepts this many digits.
            age = re.fullmatch(r'"?([0-9]{1,99})"?', value)
            ages.append(int(age[1]) if age else 0)
    return max(MIN_AGE_S, min([*ages, MAX_AGE_S])) if ages else DEFAULT_AGE_S


# -- registration ----------------------------------------------------------------------
# Dynamic client registration (RFC 7591) that stores nothing.
#
# A client's id is its registration, signed by us: a program that sends its id also
# sends its registration.

MAX_REDIRECTS: Final = 10
MAX_CLIENT_ID_LENGTH: Final = 2_000

_MAC_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a client says of itself, as far as it is used here; nobody has checked it.

    `issued` is in seconds of the Unix epoch.
    """

    name: str
    redirects: tuple[str, ...]
    grants: tuple[str, ...]
    issued: int


_REGISTRATION: Final = TypeAdapter(Registration)


def read_registration(
    body: bytes, schemes: Collection[str], *, issued: int
) -> Registration:
    """Return the registration for a request's JSON (RFC 7591 §3.1).

    Redirects that are not allowed are left out; `schemes` are the allowed private-use
    schemes.  Raises OAuthError: `invalid_redirect_uri` if none is left,
    `invalid_client_metadata` if the JSON has another form or is too large.
    """
    members, redirects, grants = read_client_metadata(body, schemes)
    if len(members.redirect_uris or ()) > MAX_REDIRECTS:
        raise invalid_metadata(f"redirect_uris must have {MAX_REDIRECTS} URIs at most.")
    fallback = redirect_host(redirects[0]) or redirects[0].partition(":")[0]
    return Registration(
        name=display_name(members.client_name, fallback),
        redirects=redirects,
        grants=grants,
        issued=issued,
    )


def client_id_of(registration: Registration, secret: str) -> str:
    """Return the id of a client: its registration, and an HMAC-SHA256 of it.

    Raises OAuthError (`invalid_client_metadata`) if it has over 2,000 characters.
    """
    text = jsonrpc.canonical(registration)
    client_id = CLIENT + base64url(text + _client_mac(text, secret))
    if len(client_id) > MAX_CLIENT_ID_LENGTH:
        raise invalid_metadata("redirect_uris and client_name are too long together.")
    return client_id


def registration_of(client_id: str, secrets: Sequence[str]) -> Registration | None:
    """Return the registration in an id, None unless one of the secrets signed it."""
    if len(client_id) > MAX_CLIENT_ID_LENGTH or not client_id.startswith(CLIENT):
        return None
    try:
        signed = decode_base64url(client_id.removeprefix(CLIENT))
    except ValueError:
        return None
    text, mac = signed[:-_MAC_BYTES], signed[-_MAC_BYTES:]
    if any(hmac.compare_digest(_client_mac(text, secret), mac) for secret in secrets):
        return _REGISTRATION.validate_json(text)
    return None


def registration_answer(registration: Registration, client_id: str) -> JsonObject:
    """Return the JSON of the 201 that answers a registration (RFC 7591 §3.2.1)."""
    return {
        "client_id": client_id,
        "client_id_issued_at": registration.issued,
        "client_name": registration.name,
        "redirect_uris": list(registration.redirects),
        "grant_types": list(registration.grants),
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


def _client_mac(text: bytes, secret: str) -> bytes:
    return hmac.digest(derived_key(secret, "client"), text, "sha256")


# -- metadata --------------------------------------------------------------------------
# What clients read before their first request: RFC 9728 and RFC 8414.


ID_JAG_PROFILE: Final = "urn:ietf:params:oauth:grant-profile:id-jag"
# "none" comes first, because some clients read only the first one.
_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")


def resource_metadata(resource: str, issuers: Sequence[str]) -> JsonObject:
    """Return the metadata of a server at the address `resource` (RFC 9728 §2).

    `issuers` are the authorization servers whose tokens it accepts; clients should use
    the first of them.
    """
    return {
        "resource": resource,
        "authorization_servers": list(issuers),
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
    }


def server_metadata(
    issuer: str,
    endpoints: Mapping[str, str],
    *,
    documents: bool,
    registration: bool,
    algorithms: Collection[str] = (),
    companies: bool = False,
) -> JsonObject:
    """Return the metadata of our authorization server (RFC 8414 §2).

    `endpoints` has the URLs of `authorize`, `token`, `revoke` and, with `registration`,
    `register`.  `documents` says whether clients with documents are accepted,
    `algorithms` which signatures of programs are, `companies` whether assertions of
    companies about people (ID-JAG) are.
    """
    metadata: JsonObject = {
        "issuer": issuer,
        "authorization_endpoint": endpoints["authorize"],
        "token_endpoint": endpoints["token"],
        "revocation_endpoint": endpoints["revoke"],
    }
    if registration:
        metadata["registration_endpoint"] = endpoints["register"]
    if algorithms:
        metadata |= {
            "token_endpoint_auth_methods_supported": [*_METHODS, "private_key_jwt"],
            "token_endpoint_auth_signing_alg_values_supported": [*algorithms],
        }
    if companies:
        metadata |= {
            "grant_types_supported": [*GRANTS, "client_credentials", JWT_BEARER],
            "authorization_grant_profiles_supported": [ID_JAG_PROFILE],
        }
    return {
        **_abilities(),
        **metadata,
        "client_id_metadata_document_supported": documents,
    }


def _abilities() -> JsonObject:
    return {
        "scopes_supported": [*SCOPES, OFFLINE],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [*GRANTS, "client_credentials"],
        "token_endpoint_auth_methods_supported": list(_METHODS),
        "revocation_endpoint_auth_methods_supported": list(_METHODS),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }
