"""Server cards, and the catalog in which a site lists them, as plain values.

Texts: `docs/discovery.md`, `schema.json` of experimental-ext-server-card (SEP-2127).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import SUPPORTED_VERSIONS
from mcp_app.protocol.texts import clean_text

CARD_TYPE: Final = "application/mcp-server-card+json"
CATALOG_TYPE: Final = "application/ai-catalog+json"
MAX_LINE_LENGTH: Final = 100
_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1"
# A card's name is the domain, a slash, and a slug of 64 characters at most: 200 in all.
# If the last label is a number, the host is an IPv4 address (URL Standard).
_DOMAIN: Final = re.compile(
    r"(?=.{1,135}\Z)(?:[a-z0-9-]+\.)*(?!(?:[0-9]+|0x[0-9a-f]*)\Z)[a-z0-9-]+"
)


def publisher_of(public_url: str | None) -> str | None:
    """Return the domain of a site's address; None for an IP address or no address."""
    host = urlsplit(public_url or "").hostname or ""
    return host if _DOMAIN.fullmatch(host) else None


def server_card(
    publisher: str, slug: str, url: str, about: JsonObject, needs_token: bool | None
) -> JsonObject:
    """Return the card of a server at `url`; `about` is its `Implementation`.

    `needs_token` is None if no access token is accepted, and False if programs can sign
    in: with True, clients would ask people for a token.
    """
    title = _short_line(about.get("title", "")) or slug
    header = {
        "name": "Authorization",
        "description": "Bearer, and an access token of this site.",
        "isRequired": needs_token,
        "isSecret": True,
    }
    remote = {
        "type": "streamable-http",
        "url": url,
        # The last one is the oldest revision: it has no Streamable HTTP.
        "supportedProtocolVersions": SUPPORTED_VERSIONS[:-1],
        **({} if needs_token is None else {"headers": [header]}),
    }
    return {
        **about,
        "$schema": f"{_SCHEMA}/server-card.schema.json",
        "name": f"{'.'.join(reversed(publisher.split('.')))}/{slug}",
        "title": title,
        "description": _short_line(about.get("description", "")) or title,
        "remotes": [remote],
    }


def card_catalog(publisher: str, urls: Mapping[str, str]) -> JsonObject:
    """Return the catalog of a site (AI Catalog); `urls` are those of cards, by slug."""
    entries = [
        {"identifier": f"urn:air:{publisher}:mcp:{slug}", "type": CARD_TYPE, "url": url}
        for slug, url in urls.items()
    ]
    return {"specVersion": "1.0", "entries": entries}


def _short_line(text: str) -> str:
    """Return a text as one line, cut at a word if it is too long."""
    line = " ".join(clean_text(text).split())
    if len(line) <= MAX_LINE_LENGTH:
        return line
    start = line[:MAX_LINE_LENGTH]
    return f"{start.rpartition(' ')[0] or start[:-1]}…"
