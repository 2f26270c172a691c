"""How programs describe themselves, and what they read of the server before."""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import unquote

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.cursors import derived_key
from mcp_app.protocol.errors import ParseError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.oauth.addresses import (
    read_web_url,
    redirect_host,
    redirect_problem,
)
from mcp_app.protocol.oauth.requests import OFFLINE, SCOPES, OAuthError
from mcp_app.protocol.oauth.texts import CLIENT, base64url, display_name

# -- client metadata -------------------------------------------------------------------
# What registrations and documents of clients have in common (RFC 7591 §2).

MAX_METADATA_BYTES: Final = 16 * 1024
CODE_GRANT: Final = "authorization_code"
GRANTS: Final = (CODE_GRANT, "refresh_token")
"""Grants that a client without a secret can have here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMetadata:
    """A client in its own words; `members` are all that it sent.

    `redirects` are those that are allowed, `grants` those of GRANTS, both in order
    and without repetition.
    """

    members: JsonObject
    redirects: tuple[str, ...]
    grants: tuple[str, ...]


def read_client_metadata(body: bytes, schemes: Collection[str]) -> ClientMetadata:
    """The metadata of a JSON object of at most 16 KiB.

    Raises OAuthError: `invalid_client_metadata` for what is of another form, and for
    a client without the code grant; `invalid_redirect_uri` where no redirect is one
    that is allowed.
    """
    members = _read_members(body)
    return ClientMetadata(
        members=members,
        redirects=_redirects(members, schemes),
        grants=_allowed_grants(members),
    )


def _read_members(body: bytes) -> JsonObject:
    if len(body) > MAX_METADATA_BYTES:
        raise invalid_metadata(f"It has more than {MAX_METADATA_BYTES} bytes.")
    try:
        members = jsonrpc.read(body)
    except ParseError as error:
        raise invalid_metadata(error.message) from None
    if not isinstance(members, dict):
        raise invalid_metadata("It must be a JSON object.")
    return members


def _redirects(members: JsonObject, schemes: Collection[str]) -> tuple[str, ...]:
    redirects = _text_list(members, "redirect_uris", ())
    allowed = [each for each in redirects if redirect_problem(each, schemes) is None]
    if not allowed:
        raise OAuthError(
            "invalid_redirect_uri",
            f"redirect_uris has none that is allowed: {_allowed_kinds(schemes)}.",
        )
    return tuple(dict.fromkeys(allowed))


def _allowed_kinds(schemes: Collection[str]) -> str:
    """The redirects that are allowed, in words."""
    kinds = ["https", "http on 127.0.0.1, [::1] or localhost", *sorted(schemes)]
    return " or ".join(kinds)


def _allowed_grants(members: JsonObject) -> tuple[str, ...]:
    grants = _text_list(members, "grant_types", (CODE_GRANT,))
    if CODE_GRANT not in grants:
        raise invalid_metadata(f"grant_types must have {CODE_GRANT}.")
    return tuple(each for each in GRANTS if each in grants)


def _text_list(
    members: JsonObject, name: str, default: tuple[str, ...]
) -> tuple[str, ...]:
    """A member that is a list of strings; null counts as missing."""
    texts = members.get(name)
    if texts is None:
        return default
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise invalid_metadata(f"{name} must be a list of strings.")
    return tuple(texts)


def invalid_metadata(description: str) -> OAuthError:
    """What is wrong with what a client says of itself."""
    return OAuthError("invalid_client_metadata", description)


# -- documents -------------------------------------------------------------------------
# Client ID metadata documents: a client's id is the URL of what it says of itself.
#
# draft-ietf-oauth-client-id-metadata-document-00.

MAX_DOCUMENT_URL_LENGTH: Final = 2_000
"""Of a document's URL."""

MIN_AGE_S: Final = 60
MAX_AGE_S: Final = 24 * 60 * 60
DEFAULT_AGE_S: Final = 60 * 60
"""Seconds for which a document is kept."""

_JSON: Final = re.compile(
    r"application/(?:[a-z0-9!#$&^_.-]+\+)?json[ \t]*(?:;.*)?", re.IGNORECASE | re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDocument:
    """What the document at `url` says; `host` has its port, if that is not 443."""

    url: str
    host: str
    name: str
    redirects: tuple[str, ...]
    grants: tuple[str, ...]


def is_document_url(client_id: str) -> bool:
    """Whether a client's id says that it is the URL of a document."""
    return client_id.startswith("https://")


def document_url_problem(client_id: str) -> str | None:
    """Why no document can be at this id, in a sentence; None where one can (§3)."""
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
    """The document that was had from `url`.

    `schemes` are private-use schemes of redirects.  Raises OAuthError
    (`invalid_client`), with a sentence, for what is no JSON of at most 16 KiB, is
    about another client, has no name, wants a secret, or has no redirect that is
    allowed.
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
        name=display_name(metadata.members.get("client_name"), host),
        redirects=metadata.redirects,
        grants=metadata.grants,
    )


def _check_client(metadata: ClientMetadata, url: str) -> None:
    if metadata.members.get("client_id") != url:
        raise _invalid_client("client_id of the document is not its own address.")
    if not isinstance(metadata.members.get("client_name"), str):
        raise _invalid_client("client_name of the document is not a text.")
    method = metadata.members.get("token_endpoint_auth_method")
    # Whoever reads the document would read the secret (§4.1).
    if isinstance(method, str) and method.startswith("client_secret"):
        raise _invalid_client("A client with a document cannot have a secret.")


def _invalid_client(description: str) -> OAuthError:
    return OAuthError("invalid_client", description)


def cache_seconds(cache_control: str | None) -> int:
    """For how many seconds a document is kept, by its Cache-Control (RFC 9111 §5.2).

    60 to 86,400: as `max-age` says, an hour without one, 60 for `no-store`,
    `no-cache` and what cannot be read.
    """
    ages = list(_cache_ages((cache_control or "").lower()))
    return max(MIN_AGE_S, min([*ages, MAX_AGE_S])) if ages else DEFAULT_AGE_S


def _cache_ages(cache_control: str) -> Iterator[int]:
    for directive in cache_control.split(","):
        name, _, value = directive.strip().partition("=")
        if name in {"no-store", "no-cache"}:
            yield 0
        elif name == "max-age":
            # As many digits as no int() minds.
            age = re.fullmatch(r'"?([0-9]{1,99})"?', value)
            yield int(age[1]) if age else 0


# -- registration ----------------------------------------------------------------------
# Dynamic client registration (RFC 7591) that stores nothing.
#
# A client's id is what it registered, signed by us: whoever shows the id shows the
# registration.

MAX_REDIRECTS: Final = 10
MAX_CLIENT_ID_LENGTH: Final = 2_000
"""Of a client's id."""

_MAC_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a client said of itself, as far as it counts here; nobody has checked it.

    `issued` is in seconds of the Unix epoch.
    """

    name: str
    redirects: tuple[str, ...]
    grants: tuple[str, ...]
    issued: int


def read_registration(
    body: bytes, schemes: Collection[str], *, issued: int
) -> Registration:
    """The registration that a request's JSON asks for (RFC 7591 §3.1).

    Redirects that are not allowed are left out; `schemes` are the private-use schemes
    that are.  Raises OAuthError: `invalid_redirect_uri` where none is left,
    `invalid_client_metadata` for what is of another form or too much.
    """
    metadata = read_client_metadata(body, schemes)
    name = metadata.members.get("client_name")
    if not isinstance(name, str | None):
        raise invalid_metadata("client_name must be a string.")
    if len(metadata.members["redirect_uris"]) > MAX_REDIRECTS:
        raise invalid_metadata(f"redirect_uris must have {MAX_REDIRECTS} URIs at most.")
    return Registration(
        name=display_name(name, _fallback_name(metadata.redirects[0])),
        redirects=metadata.redirects,
        grants=metadata.grants,
        issued=issued,
    )


def _fallback_name(redirect: str) -> str:
    """What stands for the name of a client that has none."""
    return redirect_host(redirect) or redirect.partition(":")[0]


def client_id_of(registration: Registration, secret: str) -> str:
    """The id of a client: its registration, and an HMAC-SHA256 of it.

    Raises OAuthError (`invalid_client_metadata`) beyond 2,000 characters.
    """
    text = jsonrpc.canonical(registration)
    client_id = CLIENT + base64url(text + _client_mac(text, secret))
    if len(client_id) > MAX_CLIENT_ID_LENGTH:
        raise invalid_metadata("redirect_uris and client_name are too long together.")
    return client_id


def registration_of(client_id: str, secrets: Sequence[str]) -> Registration | None:
    """The registration that one of the secrets signed as this id, letter for letter."""
    try:
        signed = _decode_client_id(client_id)
    except ValueError:
        return None
    text, mac = signed[:-_MAC_BYTES], signed[-_MAC_BYTES:]
    for secret in secrets:
        if hmac.compare_digest(_client_mac(text, secret), mac):
            return _read_signed(text)
    return None


def registration_answer(registration: Registration, client_id: str) -> JsonObject:
    """The JSON that answers a registration, with status 201 (RFC 7591 §3.2.1)."""
    return {
        "client_id": client_id,
        "client_id_issued_at": registration.issued,
        "client_name": registration.name,
        "redirect_uris": list(registration.redirects),
        "grant_types": list(registration.grants),
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


def _read_signed(text: bytes) -> Registration:
    """The registration that we have written and signed."""
    members = cast("JsonObject", jsonrpc.read(text))
    return Registration(
        name=members["name"],
        redirects=tuple(members["redirects"]),
        grants=tuple(members["grants"]),
        issued=members["issued"],
    )


def _client_mac(text: bytes, secret: str) -> bytes:
    return hmac.digest(derived_key(secret, "client"), text, "sha256")


def _decode_client_id(client_id: str) -> bytes:
    """The bytes of an id; raises ValueError for what is not written as we write."""
    text = client_id.removeprefix(CLIENT)
    if len(client_id) > MAX_CLIENT_ID_LENGTH or text == client_id or not text.isascii():
        raise ValueError("This is no id of ours.")
    signed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    # Several texts decode to the same bytes; only ours is accepted.
    if base64url(signed) != text:
        raise ValueError("This is no id of ours.")
    return signed


# -- metadata --------------------------------------------------------------------------
# What clients read before they ask: RFC 9728 and RFC 8414.


# "none" first: some clients read no further.
_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")


def resource_metadata(resource: str, issuers: Sequence[str]) -> JsonObject:
    """The metadata of a server at the address `resource` (RFC 9728 §2).

    `issuers` are the authorization servers whose tokens it takes, the first of them
    the one that clients should ask.
    """
    return {
        "resource": resource,
        "authorization_servers": list(issuers),
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
    }


def server_metadata(
    issuer: str, endpoints: Mapping[str, str], *, documents: bool, registration: bool
) -> JsonObject:
    """The metadata of our authorization server (RFC 8414 §2).

    `endpoints` has the URLs of `authorize`, `token`, `revoke` and `register`, the
    last of which is not needed without `registration`.  `documents` says whether
    clients with documents are taken.
    """
    metadata = {
        "issuer": issuer,
        "authorization_endpoint": endpoints["authorize"],
        "token_endpoint": endpoints["token"],
        "revocation_endpoint": endpoints["revoke"],
    }
    if registration:
        metadata["registration_endpoint"] = endpoints["register"]
    return {
        **metadata,
        **_abilities(),
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
