"""The server that an option of a command names."""

from __future__ import annotations

from typing import Final

from django.core.management.base import CommandError

from mcp_app.models import Server

MAX_SLUGS: Final = 20
"""Slugs that an error names."""


def find_server(slug: str, returncode: int = 1) -> Server:
    """Return the server with this slug.

    Raises CommandError, which names those that there are.
    """
    server = Server.objects.filter(slug=slug).first()
    if server is None:
        raise CommandError(
            f"There is no MCP server {slug!r} here. {_known_slugs_message()}",
            returncode=returncode,
        )
    return server


def _known_slugs_message() -> str:
    slugs = [
        *Server.objects.order_by("pk").values_list("slug", flat=True)[: MAX_SLUGS + 1]
    ]
    if not slugs:
        return "There is none yet."
    names = ", ".join(map(repr, slugs[:MAX_SLUGS]))
    return f"There are: {names}{' and more' if len(slugs) > MAX_SLUGS else ''}."
