"""events/list, events/poll, events/stream (SEP-3415)."""

from __future__ import annotations

from mcp_app.catalog.snapshot import EventEntry
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
from mcp_app.server.finding import visible_listing
from mcp_app.server.handlers.definitions import list_hint, requested_place
from mcp_app.server.request import Request
from mcp_app.server.run import Run


def require_events(request: Request) -> None:
    """Raise if the server has no event type: then it lacks the extension."""
    if not request.catalog.has_events:
        raise MethodNotFound(f"Method not found: {request.method}")


async def list_events(run: Run) -> JsonObject:
    """Return a page of the event types that the caller sees."""
    request = run.request
    require_events(request)
    listing, slug = request.catalog.listings[LISTING], request.catalog.server.slug
    after = requested_place(request, "types")
    page, end = visible_listing(request, listing).entries_after(after)
    modes = delivery_modes(request)
    wires = [event_type_to_wire(each.definition, modes) for each in page]
    result: JsonObject = {"events": wires}
    if end is not None:
        key = request.adapters.cursor_keys[0]
        result["nextCursor"] = cursors.seal_cursor(Cursor(slug, "types", *end), key)
    return request.complete_result(result, list_hint(request, LISTING))


def delivery_modes(request: Request) -> list[Mode]:
    """Return how a client of this transport can hear of events."""
    push: list[Mode] = [PUSH] if request.streams and request.revision.stateless else []
    webhook: list[Mode] = [WEBHOOK] if request.adapters.webhooks is not None else []
    return [POLL, *push, *webhook]


async def open_stream(run: Run) -> tuple[EventEntry, int, bool]:
    """Return the event type, where to begin, and whether something was missed."""
    require_events(run.request)
    subscription = await find_subscription(run, run.request.params)
    position, truncated = await first_position(
        run.request, subscription.entry, run.request.params
    )
    return subscription.entry, position, truncated


async def poll_events(run: Run) -> JsonObject:
    """Return what happened since a cursor, and the next cursor."""
    request = run.request
    require_events(request)
    subscription = await find_subscription(run, request.params)
    entry = subscription.entry
    limit = request.params.get("maxEvents", USUAL_POLL_EVENTS)
    if type(limit) is not int or limit < 1:
        raise InvalidParams("params.maxEvents must be a whole number of at least 1.")
    position, truncated = await first_position(request, entry, request.params)
    batch = await read_batch(run, subscription, position, min(limit, MAX_POLL_EVENTS))
    result: JsonObject = {
        "events": [event_to_wire(event, entry.identity) for event in batch.events],
        "cursor": cursor_at(request, entry, batch.position),
        "truncated": truncated or batch.truncated,
        "hasMore": batch.has_more,
        "nextPollMs": BUSY_POLL_MS if batch.events else IDLE_POLL_MS,
    }
    return request.complete_result(result)
