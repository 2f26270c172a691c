"""tools/list, resources/list, resources/templates/list, prompts/list."""

from __future__ import annotations

from typing import Any

from mcp_app.catalog.snapshot import Entry, Page, VisibilityKey
from mcp_app.protocol import cursors, jsonrpc, results
from mcp_app.protocol.cursors import Cursor
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.exchange import Exchange

LIST_TTL_MS = 60_000
"""Streams announce changes, so clients may cache a list for a minute."""


LISTINGS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "templates",
    "prompts/list": "prompts",
}
"""The listing of the catalog that each method shows."""


async def tools(exchange: Exchange) -> bytes:
    return _page(exchange, "tools", "tools")


async def resources(exchange: Exchange) -> bytes:
    return _page(exchange, "resources", "resources")


async def templates(exchange: Exchange) -> bytes:
    return _page(exchange, "templates", "resourceTemplates")


async def prompts(exchange: Exchange) -> bytes:
    return _page(exchange, "prompts", "prompts")


def list_hint(exchange: Exchange, *, restricted: bool) -> results.CacheHint:
    """Return a hint, public if all see the same (server/utilities/caching)."""
    server = exchange.catalog.server
    public = server.public and not (restricted or server.demands)
    return results.CacheHint(LIST_TTL_MS, public)


def _page(exchange: Exchange, listing: str, member: str) -> bytes:
    entries = exchange.catalog.listings[listing]

    def visible(entry: Entry[Any, Any]) -> bool:
        return exchange.sees(entry.definition)

    by = VisibilityKey(exchange.rights.met, exchange.principal.scope)
    seen = entries.seen(by, visible)
    page = seen.page(exchange.revision, _place(exchange, listing))
    if page.result is None:
        page.result = jsonrpc.write(_result(exchange, listing, member, page))
    return page.result


def _result(exchange: Exchange, listing: str, member: str, page: Page) -> JsonObject:
    slug = exchange.catalog.server.slug
    result: JsonObject = {member: page.items}
    if page.next is not None:
        position, name = page.next
        result["nextCursor"] = cursors.seal(
            Cursor(slug, listing, position, name), exchange.adapters.cursor_keys[0]
        )
    return results.complete(
        result,
        exchange.revision,
        exchange.catalog.server_info(exchange.revision),
        list_hint(exchange, restricted=exchange.catalog.listings[listing].restricted),
    )


def _place(exchange: Exchange, listing: str) -> tuple[int, str] | None:
    given = exchange.params.get("cursor")
    if given is None:
        return None
    if type(given) is not str:
        raise InvalidParams("params.cursor must be a string.")
    cursor = cursors.open(
        given,
        exchange.adapters.cursor_keys,
        server=exchange.catalog.server.slug,
        listing=listing,
    )
    return cursor.position, cursor.name
