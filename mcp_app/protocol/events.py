"""Events: the shapes, the dialects and their error codes (SEP-3415).

There are two dialects: `SEP`, the extension of 2026-07-28, and `SKETCH`, its first
draft, which clients of the stateful era speak.  `DIALECTS` has the differences.
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
"""How long a client should wait before it polls again: if idle, and after events."""

ErrorName: TypeAlias = Literal[
    "not_found", "forbidden", "exhausted", "unsupported", "callback"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one family of clients reads events."""

    name: str
    codes: Mapping[ErrorName, int]
    unsubscribe_must_find: bool
    """Whether it is an error to end a subscription that does not exist."""
    posts_gaps: bool
    terminated_attempts: int
    """How often a receiver is told that its subscription is over, until it answers."""
    message_ids: bool
    """Whether `webhook-id` names the message instead of the event."""


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
    """An error of events; its code depends on the dialect ("Error Codes")."""

    def __init__(
        self, dialect: Dialect, name: ErrorName, message: str, **data: object
    ) -> None:
        super().__init__(message, data or None)
        self.code = dialect.codes[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurred:
    """Something that happened, by its number; `data` is told to subscribers.

    Only users whose keys are in `audience` are told, None means all.  `cause` is the
    digest of who caused it (`cause_of`).  `created_ms` is in milliseconds since 1970.
    """

    number: int
    event_id: str
    created_ms: int
    data: JsonObject
    audience: Sequence[str] | None = None
    cause: str = ""
    is_gap: bool = False
    """Whether it stands for many events that nobody is told of one by one."""


def cause_of(key: str) -> str:
    """Return the digest that the outbox stores of the principal who caused an event."""
    return sha256(key.encode()).hexdigest()


def error_to_wire(error: ProtocolError) -> JsonObject:
    """Return an error in the form of notifications and control bodies."""
    data = {} if error.data is None else {"data": error.data}
    return {"code": error.code, "message": error.message, **data}


def dialect_of(capabilities: Mapping[str, Any]) -> Dialect:
    """Return the dialect of a client, by its declared capabilities."""
    extensions = capabilities.get("extensions")
    declared = type(extensions) is dict and type(extensions.get(EXTENSION)) is dict
    return SEP if declared else SKETCH


def event_capabilities(revision: Revision, *, streams: bool) -> JsonObject:
    """Return the members of a server's capabilities for events.

    Clients that speak `SKETCH` look for `events` itself, not in `extensions`.
    """
    members: JsonObject = {"events": {}}
    if revision.stateless:
        members["extensions"] = {EXTENSION: {"listChanged": streams}}
    return members


def event_type_to_wire(definition: Any, delivery: Sequence[Mode]) -> JsonObject:
    """Return an event type in the form of `events/list` ("Event Discovery")."""
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
    """Return an event on the wire; push and webhooks add its `cursor`."""
    wire: JsonObject = {
        "eventId": event.event_id,
        "name": name,
        "timestamp": iso_time(event.created_ms),
        "data": event.data,
    }
    if cursor is not None:
        wire["cursor"] = cursor
    return wire
