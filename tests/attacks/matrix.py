"""What clients can send, on which transport, in which revision; and what they cannot.

`ROWS` has every method, every notification, answers, and what HTTP has besides.  A cell
is a transport, a revision and a row: it exists unless `CANNOT` has it, with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, TypeAlias

from mcp_app.protocol.revisions import REVISIONS, STATEFUL, STATELESS

JsonObject: TypeAlias = dict[str, Any]
Cell: TypeAlias = tuple[str, str, str]

HTTP: Final = "streamable HTTP"
WSGI: Final = "WSGI"
SSE: Final = "HTTP+SSE"
STDIO: Final = "stdio"
TRANSPORTS: Final = (HTTP, WSGI, SSE, STDIO)

URI: Final = "test://static-text"
LISTED: Final[JsonObject] = {"notifications": {"resourceSubscriptions": [URI]}}
ARGUMENT: Final[JsonObject] = {
    "ref": {"type": "ref/prompt", "name": "greets"},
    "argument": {"name": "name", "value": "A"},
}

REQUESTS: Final[Mapping[str, JsonObject]] = {
    "initialize": {},
    "ping": {},
    "server/discover": {},
    "logging/setLevel": {"level": "debug"},
    "tools/list": {},
    "tools/call": {"name": "open_to_all", "arguments": {}},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": URI},
    "resources/subscribe": {"uri": URI},
    "resources/unsubscribe": {"uri": URI},
    "prompts/list": {},
    "prompts/get": {"name": "greets", "arguments": {"name": "Ada"}},
    "completion/complete": ARGUMENT,
    "subscriptions/listen": LISTED,
}
"""Every method, with parameters that are right."""
NOTIFICATIONS: Final = (
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
)
CANCELS: Final = "notifications/cancelled"
ANSWER: Final = "an answer"
REFUSAL: Final = "an answer that is an error"
BY_CALL_TOOL: Final = "tools/call of call_tool"
BY_CALL_READING_TOOL: Final = "tools/call of call_reading_tool"
BATCH: Final = "a batch"
GET: Final = "GET"
RESUME: Final = "GET with the id of an event"
DELETE: Final = "DELETE"
ROWS: Final = (
    *REQUESTS,
    *NOTIFICATIONS,
    *(BY_CALL_TOOL, BY_CALL_READING_TOOL),
    *(ANSWER, REFUSAL, BATCH, GET, RESUME, DELETE),
)

Reasons: TypeAlias = Mapping[str, frozenset[Cell]]


def cells(
    transports: Iterable[str], versions: Iterable[str], rows: Iterable[str]
) -> frozenset[Cell]:
    return frozenset(product(transports, versions, rows))


_NEW: Final = tuple(STATELESS)
_OLD: Final = tuple(STATEFUL)
_NEW_METHODS: Final = ("server/discover", "subscriptions/listen")
_GONE_METHODS: Final = (
    *("initialize", "ping", "logging/setLevel"),
    *("resources/subscribe", "resources/unsubscribe"),
)
_FOR_STREAMS: Final = (
    *("logging/setLevel", "resources/subscribe", "resources/unsubscribe"),
    "subscriptions/listen",
)
_WITHOUT_BATCHES: Final = [name for name, each in REVISIONS.items() if not each.batches]
_NO_EVENT_IDS: Final = [name for name, each in REVISIONS.items() if not each.resumable]

CANNOT: Final[Reasons] = {
    "The revision has no such method.": (
        cells(TRANSPORTS, _OLD, _NEW_METHODS)
        | cells((HTTP, WSGI, STDIO), _NEW, _GONE_METHODS)
    ),
    "HTTP+SSE is of the stateful era.": cells([SSE], _NEW, ROWS),
    "What is told on a stream needs one.": cells([WSGI], REVISIONS, _FOR_STREAMS),
    "No stream is kept open, so nobody is asked.": cells(
        [WSGI], _OLD, (ANSWER, REFUSAL, GET, RESUME)
    ),
    "The stateless era asks in its results, and has POST alone.": cells(
        (HTTP, WSGI, STDIO), _NEW, (ANSWER, REFUSAL, GET, RESUME, DELETE)
    ),
    "The revision has no batches.": cells(TRANSPORTS, _WITHOUT_BATCHES, [BATCH]),
    "Events of this revision have no ids.": cells(
        [HTTP], set(_NO_EVENT_IDS) & set(_OLD), [RESUME]
    ),
    "One stream is the session: none comes back, and its end is the DELETE.": cells(
        [SSE], _OLD, (RESUME, DELETE)
    ),
    "Pipes have neither methods of HTTP nor sessions that others could name.": cells(
        [STDIO], REVISIONS, (GET, RESUME, DELETE)
    ),
}
"""Cells that do not exist: their own caller is refused."""

OWN: Final = "own"
OTHER_USER: Final = "other user"
OTHER_CLIENT: Final = "other client"
ANONYMOUS: Final = "anonymous"
REVOKED: Final = "revoked"
CLOSED: Final = "closed"
LACKING: Final = "closed by the settings"
APP: Final = "app of mine"
APP_ELSEWHERE: Final = "app at another server"
APP_ENDED: Final = "ended app"
ISSUED: Final = "issuer's user"
"""The same user, with a token of an external issuer."""
STRANGERS: Final = (OTHER_USER, OTHER_CLIENT, APP, ISSUED)
SHUT_OUT: Final = (ANONYMOUS, REVOKED, APP_ELSEWHERE, APP_ENDED, CLOSED, LACKING)
CALLERS: Final = (OWN, *STRANGERS, *SHUT_OUT)
OWNERS: Final = (OWN, APP, ISSUED)
"""Who may do all that there is, each with what is their own."""

NO_SUCH_CALLER: Final[Mapping[tuple[str, str], str]] = {
    **{
        (STDIO, caller): "The pipes are the principal's own: nobody else has them."
        for caller in (*STRANGERS, REVOKED, APP_ELSEWHERE, APP_ENDED)
    },
    (STDIO, ANONYMOUS): "The process ends before it takes a line.",
    (STDIO, CLOSED): "The process ends before it takes a line.",
    (STDIO, LACKING): "Whoever may start the command is let in by the system.",
}


def exists(transport: str, version: str, row: str) -> bool:
    cell = (transport, version, row)
    return not any(cell in some for some in CANNOT.values())


def pairs(*transports: str) -> Iterator[tuple[str, str]]:
    """Yield each transport with each revision that it serves at all."""
    for transport, version in product(transports, REVISIONS):
        if any(exists(transport, version, row) for row in ROWS):
            yield transport, version


@dataclass(frozen=True, slots=True)
class Named:
    """What messages name of somebody: a running call, and a question that is open."""

    call: str | int = "nothing runs"
    question: str | int = "nobody asked"


def _called(name: str) -> JsonObject:
    """Return a call of the tool that `tools/call` has, by one that calls others."""
    params = {"name": name, "arguments": REQUESTS["tools/call"]}
    return {"id": f"id of {name}", "method": "tools/call", "params": params}


def message(row: str, named: Named) -> JsonObject | list[JsonObject] | None:
    base: JsonObject = {"jsonrpc": "2.0"}
    cancelled = {**base, "method": CANCELS, "params": {"requestId": named.call}}
    ping = {**base, "id": "id of a batch", "method": "ping"}
    error = {"code": -32603, "message": "No."}
    told = {"progressToken": "none", "progress": 1}
    more: dict[str, JsonObject | list[JsonObject]] = {
        CANCELS: cancelled,
        "notifications/progress": {"method": "notifications/progress", "params": told},
        ANSWER: {"id": named.question, "result": {"roots": []}},
        REFUSAL: {"id": named.question, "error": error},
        BATCH: [cancelled, ping],
        BY_CALL_TOOL: _called("call_tool"),
        BY_CALL_READING_TOOL: _called("call_reading_tool"),
    }
    if row in REQUESTS:
        more[row] = {"id": f"id of {row}", "method": row, "params": REQUESTS[row]}
    elif row in NOTIFICATIONS:
        more.setdefault(row, {"method": row})
    found = more.get(row)
    return {**base, **found} if isinstance(found, dict) else found
