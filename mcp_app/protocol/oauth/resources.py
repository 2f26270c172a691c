"""The address of a server as the audience of a token (RFC 8707)."""

from __future__ import annotations

from typing import Final

from mcp_app.protocol.oauth.web_urls import read_web_url

MOST_CHARACTERS: Final = 2_000


def canonical(resource: str) -> str:
    """The one form in which addresses of servers are compared.

    Scheme and host are in lower case; the scheme's own port, one `/` at the end and
    then `/sse` are gone.  Raises ValueError, with a sentence, for more than 2,000
    characters, a query, and what `read_web_url` does not take.
    """
    if len(resource) > MOST_CHARACTERS:
        raise ValueError(f"It has more than {MOST_CHARACTERS} characters.")
    url = read_web_url(resource)
    if url.query is not None:
        raise ValueError("It has a query (?).")
    path = url.path.removesuffix("/").removesuffix("/sse")
    return f"{url.scheme}://{url.authority}{path}"
