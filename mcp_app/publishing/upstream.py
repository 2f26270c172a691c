"""Other MCP servers: what they offer is kept like the offers of an OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from asgiref.sync import async_to_sync
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from django.utils.translation import gettext as _

from mcp_app.egress.client import Connections
from mcp_app.egress.sites import Site
from mcp_app.interface.errors import ExternalError
from mcp_app.interface.principal import AccessRequest
from mcp_app.kinds.openapi.reading import DocumentError
from mcp_app.kinds.upstream.calls import Listing, Upstream
from mcp_app.kinds.upstream.offers import offers_of
from mcp_app.models import OpenApiDocument
from mcp_app.models.fields import digest
from mcp_app.protocol import jsonrpc
from mcp_app.publishing.openapi import count_differing, keep_offers, offers_in

LOOK_TIMEOUT_S: Final = 60
"""The time for all pages of a list."""


def list_tools_there(
    site: Site, user: AbstractBaseUser | AnonymousUser
) -> tuple[Listing, Mapping[str, Any]]:
    """Return a server's tools, and what it says of itself: `name` and `version`.

    Blocks; raises `DocumentError`.
    """
    # It reads the database, which the coroutine below must not do.
    access_request = AccessRequest.of_user(user)

    async def read_list() -> tuple[Listing, Mapping[str, Any]]:
        connections = Connections()
        try:
            upstream = Upstream(site, access_request, connections)
            async with asyncio.timeout(LOOK_TIMEOUT_S):
                return await upstream.list_tools(), upstream.server
        finally:
            await connections.close()

    message = _("%(site)s did not list its tools: %(error)s")
    details = {"site": site.title}
    try:
        return async_to_sync(read_list)()
    except ExternalError as error:
        details["error"] = error.detail
    except TimeoutError:
        details["error"] = _("all its pages took longer than %d s.") % LOOK_TIMEOUT_S
    raise DocumentError(message % details)


def look_at_server(
    site: Site, user: AbstractBaseUser | AnonymousUser
) -> tuple[OpenApiDocument, bool]:
    """Store the tools of a server, and return whether these are all that it has.

    Blocks; raises `DocumentError`, and then only `unread_since` is changed.
    """
    row = OpenApiDocument.objects.filter(site=site.key).first()
    try:
        listing, info = list_tools_there(site, user)
        offers = offers_of(listing.tools, site)
        if not offers:
            # A list may be empty while a server starts: no tool counts as gone then.
            raise DocumentError(_("%s lists no tools.") % site.title)
    except DocumentError:
        rows = OpenApiDocument.objects.filter(site=site.key, unread_since=None)
        rows.update(unread_since=timezone.now())
        raise
    if row is not None and not listing.is_complete:
        # The list was cut: a tool that was not read need not be gone.
        keys = {offer.key for offer in offers}
        offers += [each for key, each in offers_in(row).items() if key not in keys]
    if row is not None and row.title != site.title:
        # The title comes from the settings.
        row.title = site.title
        row.save(update_fields=["title"])
    row = keep_offers(
        offers,
        site,
        site.title,
        row,
        location="",
        version=info.get("version"),
        digest=digest(jsonrpc.write(listing.tools)),
        read_by=None if user.pk is None else user,
    )
    count_differing(row)
    return row, listing.is_complete
