"""events/list, events/poll, events/stream (SEP-3415)."""

from __future__ import annotations

from typing import Any

from mcp_app.catalog.snapshot import EventEntry, Place
from mcp_app.protocol import cursors
from mcp_app.protocol.cursors import Cursor
from mcp_app.protocol.errors import InvalidParams, MethodNotFound
from mcp_app.protocol.events import (
    BUSY_POLL_MS,
    IDLE_POLL_MS,
    MAX_POLL_EVENTS,
    POLL,
    PUSH,
    USUAL_POLL_EVENTS,
    WEBHOOK,
    Mode,
    event_to_wire,
    event_type_to_wire,
)
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.events import (
    LISTING,
    cursor_at,
    find_subscription,
    first_position,
    read_batch,
)
from mcp_app.server.exchange import Exchange
from mcp_app.server.finding import visible_listing
from mcp_app.server.handlers.definitions import list_hint


def require_events(exchange: Exchange) -> None:
    """Raise if the server has no event type: then it lacks the extension."""
    if not exchange.catalog.has_events:
        raise MethodNotFound(f"Method not found: {exchange.method}")


async def list_events(exchange: Exchange) -> JsonObject:
    """Return a page of the event types that the caller sees."""
    require_events(exchange)
    listing, slug = exchange.catalog.listings[LISTING], exchange.catalog.server.slug
    after = _place_of(exchange, exchange.params.get("cursor"))
    page, end = visible_listing(exchange, listing).entries_after(after)
    modes = delivery_modes(exchange)
    wires = [event_type_to_wire(each.definition, modes) for each in page]
    result: JsonObject = {"events": wires}
    if end is not None:
        key = exchange.adapters.cursor_keys[0]
        result["nextCursor"] = cursors.seal_cursor(Cursor(slug, "types", *end), key)
    restricted = listing.is_restricted
    return exchange.complete_result(result, list_hint(exchange, restricted=restricted))


def _place_of(exchange: Exchange, token: Any) -> Place | None:
    if token is None:
        return None
    if type(token) is not str:
        raise InvalidParams("params.cursor must be a string.")
    slug, keys = exchange.catalog.server.slug, exchange.adapters.cursor_keys
    cursor = cursors.open_cursor(token, keys, server=slug, listing="types")
    return cursor.position, cursor.name


def delivery_modes(exchange: Exchange) -> list[Mode]:
    """Return how a client of this transport can hear of events."""
    push: list[Mode] = (
        [PUSH] if exchange.streams and exchange.revision.stateless else []
    )
    webhook: list[Mode] = [WEBHOOK] if exchange.adapters.webhooks is not None else []
    return [POLL, *push, *webhook]


async def open_stream(exchange: Exchange) -> tuple[EventEntry, int, bool]:
    """Return the event type, where to begin, and whether something was missed."""
    require_events(exchange)
    subscription = await find_subscription(exchange, exchange.params)
    position, truncated = await first_position(
        exchange, subscription.entry, exchange.params
    )
    return subscription.entry, position, truncated


async def poll_events(exchange: Exchange) -> JsonObject:
    """Return what happened since a cursor, and the next cursor."""
    require_events(exchange)
    subscription = await find_subscription(exchange, exchange.params)
    entry = subscription.entry
    most = exchange.params.get("maxEvents", USUAL_POLL_EVENTS)
    if type(most) is not int or most < 1:
        raise InvalidParams("params.maxEvents must be a whole number of at least 1.")
    position, truncated = await first_position(exchange, entry, exchange.params)
    batch = await read_batch(
        exchange, subscription, position, min(most, MAX_POLL_EVENTS)
    )
    result: JsonObject = {
        "events": [event_to_wire(each, entry.identity) for each in batch.events],
        "cursor": cursor_at(exchange, entry, batch.position),
        "truncated": truncated or batch.truncated,
        "hasMore": batch.has_more,
        "nextPollMs": BUSY_POLL_MS if batch.events else IDLE_POLL_MS,
    }
    return exchange.complete_result(result)
