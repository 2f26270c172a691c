"""The address of a server as the audience of tokens (RFC 8707, section 2)."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.urls import NoReverseMatch, reverse

from mcp_app.conf import mcp_settings
from mcp_app.interface.server import DEFAULT_SLUG

METADATA = "/.well-known/oauth-protected-resource"


def audience_of(slug: str) -> str:
    """Return the public address of a server, "" without `MCP["PUBLIC_URL"]`."""
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


def canonical(url: str) -> str:
    """Return the one text of a server's addresses, "" for what is no address.

    Scheme and host in lower case; without the scheme's port, one slash at the end, and
    the `/sse` of the older transport.
    """
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        return ""
    if not host or parts.query or parts.fragment or "@" in parts.netloc:
        return ""
    host = f"[{host}]" if ":" in host else host
    if port not in (None, {"http": 80, "https": 443}.get(scheme)):
        host = f"{host}:{port}"
    path = parts.path.removesuffix("/").removesuffix("/sse")
    return f"{scheme}://{host}{path}"


def _path() -> str:
    try:
        return reverse("mcp_app:endpoint")
    except NoReverseMatch:
        return "/mcp"
