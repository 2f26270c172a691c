"""The address of a server as the audience of tokens (RFC 8707, section 2)."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from django.urls import NoReverseMatch, reverse

from mcp_app.conf import mcp_settings
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.protocol.oauth.resources import canonical

METADATA: Final = "/.well-known/oauth-protected-resource"


def audience_of(slug: str) -> str:
    """Return the public address of a server, "" without `MCP["PUBLIC_URL"]`.

    Raises ValueError if that is no address.
    """
    base = (mcp_settings.public_url or "").rstrip("/")
    if not base:
        return ""
    if not urlsplit(base).path:
        base += _path()
    return canonical(base if slug == DEFAULT_SLUG else f"{base}/{slug}")


def metadata_of(slug: str) -> str:
    """Return the address of a server's metadata (RFC 9728, section 3.1), or ""."""
    parts = urlsplit(audience_of(slug))
    return f"{parts.scheme}://{parts.netloc}{METADATA}{parts.path}" if parts[0] else ""


def is_audience(text: str, slug: str) -> bool:
    """Whether a text is an address of a server, in whatever form."""
    try:
        return canonical(text) == audience_of(slug)
    except ValueError:
        return False


def _path() -> str:
    try:
        return reverse("mcp_app:endpoint")
    except NoReverseMatch:
        return "/mcp"
