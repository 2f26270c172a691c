"""Reads the tools of other MCP servers again from time to time, in one process.

Their pages and the home page show what differs; no tool is made or published.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from django.contrib.auth.models import AnonymousUser
from django.db import connections
from django.utils import timezone

from mcp_app.egress.sites import upstream_sites
from mcp_app.kinds.openapi.reading import DocumentError
from mcp_app.models import OpenApiDocument
from mcp_app.publishing.upstream import look_at_server
from mcp_app.workbench.alerts import Period

logger = logging.getLogger("mcp_app.workbench")

LOOK_S: Final = 600
"""Seconds between two looks at a server."""


def watch() -> None:
    """Look at each server whose turn it is; it runs in a thread of its own."""
    if not upstream_sites():
        return
    try:
        look_at_servers(timezone.now())
    except Exception:
        logger.exception("Other MCP servers could not be looked at.")
    finally:
        connections.close_all()


def look_at_servers(now: datetime) -> None:
    """Look at each server from which tools were taken, once in `LOOK_S`."""
    sites = upstream_sites()
    rows = OpenApiDocument.objects.defer("offers").select_related("read_by")
    for row in rows.filter(site__in=[*sites], imported__isnull=False).distinct():
        if Period(now, LOOK_S, ("upstream", row.site)).claim() is None:
            continue
        try:
            look_at_server(sites[row.site], row.read_by or AnonymousUser())
        except DocumentError as error:
            logger.warning("%s", error)
