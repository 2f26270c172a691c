"""The address and the name of a server in client configurations."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.urls import NoReverseMatch, reverse

from mcp_app.conf import mcp_settings
from mcp_app.interface.server import DEFAULT_SLUG

LOCAL: Final = "http://127.0.0.1:8000"


def server_url(slug: str, site: str = LOCAL) -> str:
    """Return the URL of a server: the public one, or else the one at this site."""
    base = (mcp_settings.public_url or site).rstrip("/")
    if not urlsplit(base).path:
        base += _path()
    return base if slug == DEFAULT_SLUG else f"{base}/{slug}"


def server_name(slug: str) -> str:
    """Return a name that distinguishes this site's server from others."""
    site = str(settings.ROOT_URLCONF).partition(".")[0].replace("_", "-")
    return site if slug == DEFAULT_SLUG else f"{site}-{slug}"


def _path() -> str:
    try:
        return reverse("mcp_app:endpoint")
    except NoReverseMatch:
        return "/mcp"
