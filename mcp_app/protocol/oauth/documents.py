"""Client ID metadata documents: a client's id is the URL of what it says of itself.

draft-ietf-oauth-client-id-metadata-document-00.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from mcp_app.protocol.oauth.client_metadata import ClientMetadata, read_client_metadata
from mcp_app.protocol.oauth.errors import OAuthError
from mcp_app.protocol.oauth.names import shown_name
from mcp_app.protocol.oauth.web_urls import read_web_url

MOST_CHARACTERS: Final = 2_000
"""Of a document's URL."""

SHORTEST: Final = 60
LONGEST: Final = 24 * 60 * 60
USUAL: Final = 60 * 60
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
    if len(client_id) > MOST_CHARACTERS:
        return f"It has more than {MOST_CHARACTERS} characters."
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
        raise _wrong("The document is not of the type application/json.")
    try:
        metadata = read_client_metadata(body, schemes)
    except OAuthError as error:
        raise _wrong(f"The document cannot be used. {error.description}") from None
    _check_client(metadata, url)
    host = read_web_url(url).authority
    return ClientDocument(
        url=url,
        host=host,
        name=shown_name(metadata.members.get("client_name"), host),
        redirects=metadata.redirects,
        grants=metadata.grants,
    )


def _check_client(metadata: ClientMetadata, url: str) -> None:
    if metadata.members.get("client_id") != url:
        raise _wrong("client_id of the document is not its own address.")
    if not isinstance(metadata.members.get("client_name"), str):
        raise _wrong("client_name of the document is not a text.")
    method = metadata.members.get("token_endpoint_auth_method")
    # Whoever reads the document would read the secret (§4.1).
    if isinstance(method, str) and method.startswith("client_secret"):
        raise _wrong("A client with a document cannot have a secret.")


def _wrong(description: str) -> OAuthError:
    return OAuthError("invalid_client", description)


def kept_for(cache_control: str | None) -> int:
    """For how many seconds a document is kept, by its Cache-Control (RFC 9111 §5.2).

    60 to 86,400: as `max-age` says, an hour without one, 60 for `no-store`,
    `no-cache` and what cannot be read.
    """
    ages = list(_ages((cache_control or "").lower()))
    return max(SHORTEST, min([*ages, LONGEST])) if ages else USUAL


def _ages(cache_control: str) -> Iterator[int]:
    for directive in cache_control.split(","):
        name, _, value = directive.strip().partition("=")
        if name in {"no-store", "no-cache"}:
            yield 0
        elif name == "max-age":
            # As many digits as no int() minds.
            age = re.fullmatch(r'"?([0-9]{1,99})"?', value)
            yield int(age[1]) if age else 0
