"""What registrations and documents of clients have in common (RFC 7591 §2)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ParseError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.oauth.errors import OAuthError
from mcp_app.protocol.oauth.redirects import redirect_problem

MOST_BYTES: Final = 16 * 1024
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
    members = _members(body)
    return ClientMetadata(
        members=members,
        redirects=_redirects(members, schemes),
        grants=_grants(members),
    )


def _members(body: bytes) -> JsonObject:
    if len(body) > MOST_BYTES:
        raise invalid_metadata(f"It has more than {MOST_BYTES} bytes.")
    try:
        members = jsonrpc.read(body)
    except ParseError as error:
        raise invalid_metadata(error.message) from None
    if not isinstance(members, dict):
        raise invalid_metadata("It must be a JSON object.")
    return members


def _redirects(members: JsonObject, schemes: Collection[str]) -> tuple[str, ...]:
    redirects = _texts(members, "redirect_uris", ())
    allowed = [each for each in redirects if redirect_problem(each, schemes) is None]
    if not allowed:
        raise OAuthError(
            "invalid_redirect_uri",
            f"redirect_uris has none that is allowed: {_kinds(schemes)}.",
        )
    return tuple(dict.fromkeys(allowed))


def _kinds(schemes: Collection[str]) -> str:
    """The redirects that are allowed, in words."""
    kinds = ["https", "http on 127.0.0.1, [::1] or localhost", *sorted(schemes)]
    return " or ".join(kinds)


def _grants(members: JsonObject) -> tuple[str, ...]:
    grants = _texts(members, "grant_types", (CODE_GRANT,))
    if CODE_GRANT not in grants:
        raise invalid_metadata(f"grant_types must have {CODE_GRANT}.")
    return tuple(each for each in GRANTS if each in grants)


def _texts(members: JsonObject, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
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
