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
    if server is not None:
        return server
    rows = Server.objects.order_by("pk").values_list("slug", flat=True)
    slugs = [repr(each) for each in rows[: MAX_SLUGS + 1]]
    more = " and more" if len(slugs) > MAX_SLUGS else ""
    known = f"There are: {', '.join(slugs[:MAX_SLUGS])}{more}."
    raise CommandError(
        f"There is no MCP server {slug!r} here."
        f" {known if slugs else 'There is none yet.'}",
        returncode=returncode,
    )
