"""The tool `wait_for_event`, for clients that know no events."""

from __future__ import annotations

import asyncio
from typing import Final

from mcp_app.interface.definitions import OurTool, ToolHints
from mcp_app.interface.errors import ToolError
from mcp_app.interface.questions import ToolOutput
from mcp_app.interface.server import WAIT_FOR_EVENT
from mcp_app.protocol.cursors import LARGEST
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.events import MAX_POLL_EVENTS, event_to_wire
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.context import call_core_of, current_call
from mcp_app.server.events import (
    LISTING,
    Subscription,
    choose_events,
    cursor_at,
    find_subscription,
    first_position,
    read_batch,
)
from mcp_app.server.finding import visible_listing
from mcp_app.server.request import Request
from mcp_app.server.run import Run

USUAL_WAIT_S: Final = 25
MAX_EVENTS: Final = 20
LOOK_S: Final = 5.0
"""Seconds between messages of progress; without any, some clients give up."""
_PARAMETERS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "maxLength": 128,
            "description": "The type of events. Leave it out to get all types with"
            " their arguments.",
        },
        "arguments": {
            "type": "object",
            "description": "Which events, by the inputSchema of the type.",
        },
        "cursor": {
            "type": "string",
            "maxLength": LARGEST,
            "description": "The cursor of the last answer: events since then.",
        },
        "wait": {
            "type": "number",
            "minimum": 0,
            "maximum": 50,
            "default": USUAL_WAIT_S,
            "description": "For how many seconds to wait for an event.",
        },
        "last": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_EVENTS,
            "description": "Get so many of the last events, without waiting.",
        },
    },
    "additionalProperties": False,
}


async def _wait_for_event(*, arguments: JsonObject) -> ToolOutput:
    call = current_call.get()
    assert call is not None  # noqa: S101 - `run_user_code` has set it
    # Events are chosen in a call of their own, beside the one that waits.
    run = Run(call.request.with_changes(task=None))
    if "name" not in arguments:
        return ToolOutput((), structured={"types": _visible_types(run.request)})
    try:
        subscription = await find_subscription(run, arguments)
        if "last" in arguments:
            return await _last_events(run, subscription, arguments["last"])
        return await _next_events(call, run, subscription, arguments)
    except ProtocolError as error:
        raise ToolError(error.message) from error


EVENT_TOOL: Final = (
    OurTool(
        name=WAIT_FOR_EVENT,
        title="Wait for an event",
        description=(
            "Wait until something happens on this site, and get what it was. Call it"
            " without a name to see what there is to wait for. Call it again with the"
            " cursor of its answer to miss nothing."
        ),
        input_schema=_PARAMETERS,
        hints=ToolHints(read_only=True, idempotent=True, open_world=False),
    ),
    _wait_for_event,
)


def _visible_types(request: Request) -> list[JsonObject]:
    listing = visible_listing(request, request.catalog.listings[LISTING])
    return [
        {
            "name": each.identity,
            "description": each.definition.description,
            "inputSchema": dict(each.definition.input_schema),
        }
        for each in listing
    ]


async def _last_events(run: Run, subscription: Subscription, limit: int) -> ToolOutput:
    outbox, entry = run.request.adapters.events, subscription.entry
    newest = (await outbox.current_state(entry.definition.topic)).newest
    rows = await outbox.load_latest(entry.definition.topic, MAX_POLL_EVENTS)
    occurrences = await choose_events(run, subscription, rows)
    events = [each for each in occurrences if not each.is_gap][-limit:]
    return ToolOutput(
        (),
        structured={
            "events": [event_to_wire(event, entry.identity) for event in events],
            "cursor": cursor_at(run.request, entry, newest),
        },
    )


async def _next_events(
    call: Run, run: Run, subscription: Subscription, params: JsonObject
) -> ToolOutput:
    loop, core, entry = (
        asyncio.get_running_loop(),
        call_core_of(call),
        subscription.entry,
    )
    began, wait = loop.time(), params.get("wait", USUAL_WAIT_S)
    position, truncated = await first_position(run.request, entry, params)
    if truncated:
        # A caller that has missed events must know it now.
        wait = 0
    while True:
        batch = await read_batch(run, subscription, position, MAX_EVENTS)
        position, rest_s = batch.position, began + wait - loop.time()
        truncated |= batch.truncated
        if batch.events or batch.truncated or rest_s <= 0:
            break
        goes_on = await run.request.adapters.events.wait(
            {entry.definition.topic}, 0 if batch.has_more else min(rest_s, LOOK_S)
        )
        if not goes_on:
            break
        core.send_progress(loop.time() - began, wait, None)
        # Rights, or the type, may have changed meanwhile.
        run = Run(await run.request.adapters.events.renew_request(run.request))
        subscription = await find_subscription(run, params)
    answer: JsonObject = {
        "events": [event_to_wire(event, entry.identity) for event in batch.events],
        "cursor": cursor_at(run.request, entry, position),
    }
    if truncated:
        answer["note"] = "Some events are left out: too many, or before the cursor."
    return ToolOutput((), structured=answer)
