"""The name of a server in client configurations."""

from __future__ import annotations

from django.conf import settings

from mcp_app.interface.server import DEFAULT_SLUG


def server_name(slug: str) -> str:
    """Return a name that distinguishes this site's server from others."""
    site = str(settings.ROOT_URLCONF).partition(".")[0].replace("_", "-")
    return site if slug == DEFAULT_SLUG else f"{site}-{slug}"
