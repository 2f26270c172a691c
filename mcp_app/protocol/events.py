"""Events: the shapes, the dialects and their error codes (SEP-3415).

The extension of 2026-07-28, and the sketch that came before it and that clients of the
stateful era speak.  What differs between the two stands in `DIALECTS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.tasks import iso_time

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.protocol.revisions import Revision

EXTENSION: Final = "io.modelcontextprotocol/events"

Mode: TypeAlias = Literal["poll", "push", "webhook"]
POLL: Final = "poll"
PUSH: Final = "push"
WEBHOOK: Final = "webhook"

MAX_POLL_EVENTS: Final = 200
USUAL_POLL_EVENTS: Final = 50
IDLE_POLL_MS: Final = 5_000
BUSY_POLL_MS: Final = 2_000
"""How long a client should wait before it polls again: in quiet times, after events."""

ErrorName: TypeAlias = Literal[
    "not_found", "forbidden", "exhausted", "unsupported", "callback"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one family of clients reads events."""

    name: str
    codes: Mapping[ErrorName, int]
    unsubscribe_must_find: bool
    """Whether to end a subscription that is not there is an error."""
    posts_gaps: bool
    terminated_attempts: int
    """How often a receiver is told that a subscription is over, if it does not hear."""
    message_ids: bool
    """Whether `webhook-id` names the message; else the event."""


_ERRORS: Final[tuple[ErrorName, ...]] = (
    *("not_found", "forbidden", "exhausted", "unsupported", "callback"),
)
SEP: Final = Dialect(
    name="sep",
    codes=dict(zip(_ERRORS, range(-32023, -32028, -1), strict=True)),
    unsubscribe_must_find=True,
    posts_gaps=True,
    terminated_attempts=3,
    message_ids=True,
)
SKETCH: Final = Dialect(
    name="sketch",
    codes=dict(zip(_ERRORS, range(-32011, -32016, -1), strict=True)),
    unsubscribe_must_find=False,
    posts_gaps=False,
    terminated_attempts=1,
    message_ids=False,
)
DIALECTS: Final[Mapping[str, Dialect]] = {each.name: each for each in (SEP, SKETCH)}


class EventError(ProtocolError):
    """An error of events; its code is the dialect's ("Error Codes")."""

    def __init__(
        self, dialect: Dialect, name: ErrorName, message: str, **data: object
    ) -> None:
        super().__init__(message, data or None)
        self.code = dialect.codes[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurred:
    """Something that happened, by its number; `data` is what is told of it.

    `created_ms` is in milliseconds since 1970.
    """

    number: int
    event_id: str
    created_ms: int
    data: JsonObject
    audience: Sequence[str] | None = None
    cause: str = ""
    is_gap: bool = False
    """Whether it stands for too many to name each, of which nobody is told."""


def cause_of(key: str) -> str:
    """Return what stands in the outbox for the key of who made something happen."""
    return sha256(key.encode()).hexdigest()


def error_to_wire(error: ProtocolError) -> JsonObject:
    """Return an error as notifications and control bodies have it."""
    data = {} if error.data is None else {"data": error.data}
    return {"code": error.code, "message": error.message, **data}


def dialect_of(capabilities: Mapping[str, Any]) -> Dialect:
    """Return the dialect of a client, by what it declares."""
    extensions = capabilities.get("extensions")
    declared = type(extensions) is dict and type(extensions.get(EXTENSION)) is dict
    return SEP if declared else SKETCH


def event_capabilities(revision: Revision, *, streams: bool) -> JsonObject:
    """Return the members of a server's capabilities that say that it has events.

    Clients that read the sketch look for a key at the top.
    """
    members: JsonObject = {"events": {}}
    if revision.stateless:
        members["extensions"] = {EXTENSION: {"listChanged": streams}}
    return members


def event_type_to_wire(definition: Any, delivery: Sequence[Mode]) -> JsonObject:
    """Return an event type as `events/list` has it ("Event Discovery")."""
    wire: JsonObject = {
        "name": definition.name,
        "description": definition.description,
        "delivery": list(delivery),
        "inputSchema": {"type": "object", **definition.input_schema},
        "payloadSchema": {"type": "object", **definition.payload_schema},
    }
    if definition.meta:
        wire["_meta"] = dict(definition.meta)
    return wire


def event_to_wire(event: Occurred, name: str, cursor: str | None = None) -> JsonObject:
    """Return an event; push and webhooks give each its `cursor`."""
    wire: JsonObject = {
        "eventId": event.event_id,
        "name": name,
        "timestamp": iso_time(event.created_ms),
        "data": event.data,
    }
    if cursor is not None:
        wire["cursor"] = cursor
    return wire
