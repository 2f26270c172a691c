"""The addresses of servers as clients and OAuth name them.

Every origin in documents, challenges and answers is that of `MCP["PUBLIC_URL"]`, never
that of the Host header: a site with several hosts has one issuer and one audience.
Only in development, without that setting, a loopback host stands for it.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port
from django.urls import NoReverseMatch, reverse

from mcp_app.conf import mcp_settings
from mcp_app.interface.server import DEFAULT_SLUG, SSE_PART
from mcp_app.protocol.loopback import is_loopback_host
from mcp_app.protocol.oauth.resources import canonical

LOCAL: Final = "http://127.0.0.1:8000"
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
"""Where clients look for the metadata of a resource (RFC 9728, section 3.1)."""


def server_url(slug: str, site: str = LOCAL) -> str:
    """Return the URL of a server: the public one, or else the one at this site."""
    base = (mcp_settings.public_url or site).rstrip("/")
    if not urlsplit(base).path:
        base += _path()
    return base if slug == DEFAULT_SLUG else f"{base}/{slug}"


def site_origin(scheme: str, host: str) -> str | None:
    """Return the issuer of this site, None if nobody can sign in there.

    `scheme` and `host` are those of a request; they count in development alone.
    """
    if mcp_settings.public_url is not None:
        parts = urlsplit(mcp_settings.public_url)
        return f"{parts.scheme}://{parts.netloc}".lower()
    if settings.DEBUG and is_loopback_host(split_domain_port(host.lower())[0]):
        return f"{scheme}://{host}".lower()
    return None


def slug_of(resource: str, origin: str) -> str | None:
    """Return the server that a resource names, None for what is none of ours.

    `resource` is a URL; case of the host, default port, a slash at the end and the
    address of HTTP+SSE make no difference (`canonical`).
    """
    try:
        given = canonical(resource)
    except ValueError:
        return None
    base = canonical(server_url(DEFAULT_SLUG, origin))
    if given == base:
        return DEFAULT_SLUG
    slug = given.removeprefix(f"{base}/")
    return slug if slug != given and "/" not in slug and slug != SSE_PART else None


def audience_of(slug: str) -> str:
    """Return the one audience of tokens for a server (RFC 8707, section 2).

    It is "" without `MCP["PUBLIC_URL"]`; ValueError if that is no address.
    """
    return canonical(server_url(slug)) if mcp_settings.public_url else ""


def is_audience(text: str, slug: str) -> bool:
    """Whether a text is the address of a server, in whatever form."""
    try:
        return canonical(text) == audience_of(slug)
    except ValueError:
        return False


def metadata_of(slug: str) -> str:
    """Return where the metadata of a server stands at its public address, or ""."""
    parts = urlsplit(audience_of(slug))
    if not parts.netloc:
        return ""
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"


def metadata_url(origin: str, path: str) -> str:
    """Return where the metadata of the resource with this path stands.

    `path` is that of a request: strict clients compare what they asked with what they
    read.
    """
    return f"{origin}{WELL_KNOWN}{_public_path(path)}"


def _public_path(path: str) -> str:
    """Return a path as clients know it: a proxy may map another one to ours."""
    public = urlsplit(mcp_settings.public_url or "").path.rstrip("/")
    own = _path()
    if public and (path == own or path.startswith(f"{own}/")):
        return f"{public}{path.removeprefix(own)}"
    return path


def _path() -> str:
    try:
        return reverse("mcp_app:endpoint")
    except NoReverseMatch:
        return "/mcp"
