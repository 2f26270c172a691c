"""Subscriptions to events: their type, where they begin, and the events they get.

Polls, streams, the waiting tool and webhooks read in the same way.  The position of a
subscriber is the number of the last occurrence that it was told of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mcp_app.catalog.runnable import ArgumentsRefused
from mcp_app.catalog.snapshot import EventEntry
from mcp_app.interface.call_record import Outcome
from mcp_app.protocol import cursors, events, jsonrpc, results
from mcp_app.protocol.cursors import Cursor
from mcp_app.protocol.envelope import notification_message
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.events import Dialect, EventError, Occurred, dialect_of
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server import call as calls
from mcp_app.server import coercion
from mcp_app.server.finding import find_entry
from mcp_app.server.outcome import forbidden_text, with_outcome
from mcp_app.server.request import Request
from mcp_app.server.run import Run

STREAM: Final = "events/stream"
LISTING: Final = "events"
MAX_LOOK: Final = 1_000
"""Occurrences that are looked at for one answer, at most."""
MAX_AGE_MS: Final = 2**53
"""Larger ages are cut to this one."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """An event type with arguments that fit, `bound` as its runnable takes them."""

    entry: EventEntry
    arguments: JsonObject
    bound: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Batch:
    """The next events of a subscriber, and its position after them.

    It is `truncated` if the subscriber has missed events.
    """

    events: Sequence[Occurred]
    position: int
    has_more: bool
    truncated: bool = False


def dialect_for(request: Request) -> Dialect:
    """Return the dialect in which the client is answered."""
    return dialect_of(request.client.capabilities)


async def find_subscription(run: Run, params: JsonObject) -> Subscription:
    """Return the subscription of a request; raise if the caller may not have it.

    A hidden event type gets the same error as an unknown one.
    """
    name, dialect = coercion.string_member(params, "name"), dialect_for(run.request)
    refuse = partial(EventError, dialect, "not_found", kind="event")
    entry: EventEntry = find_entry(run, "events", name, refuse)
    arguments = coercion.object_member(params, "arguments")
    arguments, violations = coercion.accepted_arguments(
        entry, arguments, coerce=run.request.adapters.coerce
    )
    try:
        if violations:
            raise ArgumentsRefused(violations)
        bound = entry.runnable.bind(arguments)
    except ArgumentsRefused as error:
        lines = [f"{each.path}: {each.message}" for each in error.violations]
        text = f"The event {entry.identity}: {'; '.join(lines)}"
        raise with_outcome(InvalidParams(text), Outcome.ARGUMENTS) from None
    if not await run.request.allows_arguments(entry.definition, arguments):
        text = forbidden_text(entry)
        refusal = EventError(dialect, "forbidden", text, reason="arguments")
        raise with_outcome(refusal, Outcome.FORBIDDEN)
    return Subscription(entry, arguments, bound)


# -- positions -------------------------------------------------------------------------


async def first_position(
    request: Request, entry: EventEntry, params: JsonObject
) -> tuple[int, bool]:
    """Return the position to begin at, and whether earlier events were missed.

    Without a cursor, or with an unusable one, begin now; neither is an error.
    """
    age_ms = age_member(params)
    cursor = params.get("cursor")
    outbox, topic = request.adapters.events, entry.definition.topic
    if cursor is None:
        return (await outbox.current_state(topic)).newest, False
    if type(cursor) is not str:
        raise InvalidParams("params.cursor must be a string.")
    position = _open_position(request, entry, cursor)
    state = await outbox.current_state(topic, position or 0)
    if position is None or position > state.newest:
        return state.newest, True
    first = position
    if age_ms is not None and first < state.last[topic]:
        first = max(first, await outbox.last_before(topic, first, age_ms))
    return first, first > position


def age_member(params: JsonObject) -> int | None:
    """Return `maxAgeMs`, None if it is absent."""
    age_ms = params.get("maxAgeMs")
    if age_ms is None:
        return None
    if type(age_ms) is int and age_ms >= 0:
        return min(age_ms, MAX_AGE_MS)
    raise InvalidParams("params.maxAgeMs must be a whole number of at least 0.")


def _open_position(request: Request, entry: EventEntry, text: str) -> int | None:
    slug, keys = request.catalog.server.slug, request.adapters.cursor_keys
    try:
        cursor = cursors.open_cursor(text, keys, server=slug, listing=LISTING)
    except InvalidParams:
        return None
    return cursor.position if cursor.name == entry.identity else None


def cursor_at(request: Request, entry: EventEntry, position: int) -> str:
    """Return a position as a cursor; it survives restarts."""
    cursor = Cursor(request.catalog.server.slug, LISTING, position, entry.identity)
    return cursors.seal_cursor(cursor, request.adapters.cursor_keys[0])


# -- messages of streams ---------------------------------------------------------------


def stream_message(request: Request, name: str, params: JsonObject) -> bytes:
    """Return a notification of a stream, such as "heartbeat"."""
    marked = results.subscription_meta(request.id, params)
    return jsonrpc.write(notification_message(f"notifications/events/{name}", marked))


def event_message(request: Request, entry: EventEntry, event: Occurred) -> bytes:
    """Return the notification of an event."""
    cursor = cursor_at(request, entry, event.number)
    wire = events.event_to_wire(event, entry.identity, cursor)
    return stream_message(request, "event", wire)


# -- reading ---------------------------------------------------------------------------


async def read_batch(
    run: Run, subscription: Subscription, position: int, limit: int
) -> Batch:
    """Return the events for a subscriber after a position, `limit` at most.

    If there is nothing new, no rows are read.
    """
    outbox, topic = run.request.adapters.events, subscription.entry.definition.topic
    state = await outbox.current_state(topic)
    if position >= state.last[topic]:
        # If all rows of a topic were deleted, its last number is unknown.
        missed = position < state.floor
        return Batch((), max(position, state.newest), False, missed)
    batch: list[Occurred] = []
    truncated = False
    for _look in range(MAX_LOOK // events.MAX_POLL_EVENTS):
        rows, floor = await outbox.load(topic, position, events.MAX_POLL_EVENTS)
        truncated |= position < floor
        occurrences = await choose_events(run, subscription, rows)
        truncated |= any(each.is_gap for each in occurrences)
        batch += [each for each in occurrences if not each.is_gap]
        if len(batch) > limit:
            return Batch(batch[:limit], batch[limit - 1].number, True, truncated)
        position = rows[-1].number if rows else position
        if position >= state.last[topic] or not rows:
            return Batch(batch, max(position, state.newest), False, truncated)
        if len(batch) == limit:
            break
    return Batch(batch, position, True, truncated)


async def choose_events(
    run: Run, subscription: Subscription, rows: Sequence[Occurred]
) -> Sequence[Occurred]:
    """Return the events that the subscriber gets, in the form that it gets."""
    entry = subscription.entry
    addressed = [row for row in rows if _is_addressed(run.request, entry, row)]
    if not addressed:
        return ()
    arguments: dict[str, Any] = {**subscription.bound, "occurrences": addressed}
    return await calls.run_user_code(run, entry, entry.runnable, arguments)


def _is_addressed(request: Request, entry: EventEntry, event: Occurred) -> bool:
    """Whether an event is for this user, and was not caused by the caller itself."""
    principal = request.principal
    if event.audience is not None and principal.user_id not in event.audience:
        return False
    if entry.definition.own or not event.cause:
        return True
    return event.cause != events.cause_of(principal.key)
