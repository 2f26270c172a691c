"""Dynamic client registration (RFC 7591) that stores nothing.

A client's id is what it registered, signed by us: whoever shows the id shows the
registration.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, cast

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.oauth.client_metadata import (
    invalid_metadata,
    read_client_metadata,
)
from mcp_app.protocol.oauth.names import shown_name
from mcp_app.protocol.oauth.redirects import redirect_host
from mcp_app.protocol.oauth.texts import CLIENT, base64url
from mcp_app.protocol.sealing import derived_key

MOST_REDIRECTS: Final = 10
MOST_CHARACTERS: Final = 2_000
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
    if len(metadata.members["redirect_uris"]) > MOST_REDIRECTS:
        raise invalid_metadata(
            f"redirect_uris must have {MOST_REDIRECTS} URIs at most."
        )
    return Registration(
        name=shown_name(name, _place(metadata.redirects[0])),
        redirects=metadata.redirects,
        grants=metadata.grants,
        issued=issued,
    )


def _place(redirect: str) -> str:
    """What stands for the name of a client that has none."""
    return redirect_host(redirect) or redirect.partition(":")[0]


def client_id_of(registration: Registration, secret: str) -> str:
    """The id of a client: its registration, and an HMAC-SHA256 of it.

    Raises OAuthError (`invalid_client_metadata`) beyond 2,000 characters.
    """
    text = jsonrpc.canonical(registration)
    client_id = CLIENT + base64url(text + _mac(text, secret))
    if len(client_id) > MOST_CHARACTERS:
        raise invalid_metadata("redirect_uris and client_name are too long together.")
    return client_id


def registration_of(client_id: str, secrets: Sequence[str]) -> Registration | None:
    """The registration that one of the secrets signed as this id, letter for letter."""
    try:
        signed = _decoded(client_id)
    except ValueError:
        return None
    text, mac = signed[:-_MAC_BYTES], signed[-_MAC_BYTES:]
    for secret in secrets:
        if hmac.compare_digest(_mac(text, secret), mac):
            return _read(text)
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


def _read(text: bytes) -> Registration:
    """The registration that we have written and signed."""
    members = cast("JsonObject", jsonrpc.read(text))
    return Registration(
        name=members["name"],
        redirects=tuple(members["redirects"]),
        grants=tuple(members["grants"]),
        issued=members["issued"],
    )


def _mac(text: bytes, secret: str) -> bytes:
    return hmac.digest(derived_key(secret, "client"), text, "sha256")


def _decoded(client_id: str) -> bytes:
    """The bytes of an id; raises ValueError for what is not written as we write."""
    text = client_id.removeprefix(CLIENT)
    if len(client_id) > MOST_CHARACTERS or text == client_id or not text.isascii():
        raise ValueError("This is no id of ours.")
    signed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    # Several texts decode to the same bytes; only ours is accepted.
    if base64url(signed) != text:
        raise ValueError("This is no id of ours.")
    return signed
