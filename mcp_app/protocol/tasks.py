"""Tasks in the form of both revisions: the shapes, the capabilities, the times.

2025-11-25: basic/utilities/tasks.  2026-07-28: `EXTENSION`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from orjson import Fragment

from mcp_app.protocol import jsonrpc

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.protocol.revisions import Revision

EXTENSION: Final = "io.modelcontextprotocol/tasks"
RELATED_TASK: Final = "io.modelcontextprotocol/related-task"

TaskSupport: TypeAlias = Literal["forbidden", "optional", "required"]
"""Whether a tool runs in the background: never, if the client can, or always."""
FORBIDDEN: Final = "forbidden"
OPTIONAL: Final = "optional"
REQUIRED: Final = "required"
TASK_SUPPORT: tuple[TaskSupport, ...] = ("forbidden", "optional", "required")

WORKING: Final = "working"
INPUT_REQUIRED: Final = "input_required"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
CONFIRMATION: Final = "confirmation"
APPROVAL: Final = "approval"
UNDECIDED: Final = (CONFIRMATION, APPROVAL)
"""A person must decide before it runs; clients see such a task as working."""
DECISION_TEXTS: Final[Mapping[str, str]] = {
    CONFIRMATION: "It waits until its user confirms it on this site.",
    APPROVAL: "It waits until another person approves it on this site.",
}

YOUNG_MS: Final = 10_000
YOUNG_POLL_MS: Final = 1_000
POLL_MS: Final = 5_000
"""How long a client should wait before it asks again: at first, and later."""
MAX_MESSAGE_LENGTH: Final = 500
STRANGERS: Final = "@"
"""Nobody has signed in: `@` and the address are the key, `@` alone if it is unknown."""
_OF_ROWS: Final = jsonrpc.ReadLimits(jsonrpc.WRITTEN_DEPTH, nodes=sys.maxsize)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A task's copy of its call; `caller`, `arguments` and `state` are JSON texts.

    `holder` may read the task; the limits of `person` apply.  `rerun` says whether the
    task may run again if its worker dies.
    """

    server: str
    tool: str
    holder: str
    person: str
    caller: str
    revision: str
    arguments: str
    state: str
    rerun: bool
    status: str = WORKING


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask(_Call):
    """A call that becomes a task, which is kept for `ttl_ms` milliseconds.

    While a task with this `call_digest` is open, no second one is made.
    """

    ttl_ms: int
    call_digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord(_Call):
    """A task as read from its row; times are in milliseconds since 1970."""

    pk: int
    public_id: str
    message: str
    progress: float | None
    total: float | None
    result: str
    error: str
    owner: str
    created_ms: int
    updated_ms: int
    ended_ms: int | None
    expires_ms: int

    @property
    def has_ended(self) -> bool:
        return self.ended_ms is not None

    def read_state(self) -> TaskState:
        """Return the questions and answers so far."""
        return TaskState(**read_json(self.state)) if self.state else TaskState()


@dataclass(slots=True, kw_only=True)
class TaskState:
    """The questions and answers of a task, as its row stores them.

    `round_trip` names the steps of `ctx.once`.  `answered` has digest and answer of
    earlier questions, by their keys in code.  `questions` are those of the last run, by
    their keys on the wire: `key`, `digest`, `request`, and `reply` if it was answered.
    `wire_keys` are all used keys: no key is used twice ("Task Update Requests").
    `approval` is for a person's decision: its `text`, the fingerprint of the `tool`,
    the `permission` to decide, and the `refusal` that ends it (`status`, `result`).
    """

    round_trip: str = ""
    answered: dict[str, list[Any]] | None = None
    questions: dict[str, dict[str, Any]] | None = None
    wire_keys: list[str] | None = None
    approval: dict[str, Any] | None = None

    def open_requests(self) -> JsonObject:
        """Return the questions without an answer, as `inputRequests`."""
        return {
            wire_key: each["request"]
            for wire_key, each in (self.questions or {}).items()
            if "reply" not in each
        }


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision that a person must make before a call runs.

    The call's task waits in the `status`; if it is "", nobody has to decide.  A person
    reads `text` first.
    """

    status: str = ""
    text: str = ""


def is_stranger(person: str) -> bool:
    """Whether nobody has signed in: the key of such a caller is that of an address."""
    return person.startswith(STRANGERS)


def read_json(text: str) -> Any:
    """Return the value of a JSON text in a row."""
    # We wrote this text, so it may be larger than a message of a client.
    return jsonrpc.read(text.encode(), _OF_ROWS)


def declares_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client of 2026-07-28 supports tasks ("Capability Negotiation")."""
    extensions = capabilities.get("extensions")
    return type(extensions) is dict and type(extensions.get(EXTENSION)) is dict


def task_capabilities(revision: Revision, *, lists: bool) -> JsonObject:
    """Return the members of a server's capabilities for tasks.

    `lists` says whether the caller may list its tasks.
    """
    if revision.task_extension:
        return {"extensions": {EXTENSION: {}}}
    if not revision.task_requests:
        return {}
    listing: JsonObject = {"list": {}} if lists else {}
    return {"tasks": {**listing, "cancel": {}, "requests": {"tools": {"call": {}}}}}


def task_to_wire(record: TaskRecord, revision: Revision, now_ms: int) -> JsonObject:
    """Return a `Task` in the form of a revision."""
    young = now_ms - record.created_ms < YOUNG_MS and record.status == WORKING
    suffix = "Ms" if revision.task_extension else ""
    task: JsonObject = {
        "taskId": record.public_id,
        "status": WORKING if record.status in UNDECIDED else record.status,
        "createdAt": iso_time(record.created_ms),
        "lastUpdatedAt": iso_time(record.updated_ms),
        f"ttl{suffix}": record.expires_ms - record.created_ms,
        f"pollInterval{suffix}": YOUNG_POLL_MS if young else POLL_MS,
    }
    text = DECISION_TEXTS.get(record.status) or _failure_text(record)
    text = text or record.message or progress_text(record)
    if text:
        task["statusMessage"] = text[:MAX_MESSAGE_LENGTH]
    return task


def _failure_text(record: TaskRecord) -> str:
    """Return why a task has failed; "" if it has not."""
    if record.status != FAILED:
        return ""
    if record.error:
        return str(read_json(record.error)["message"])
    texts = (each.get("text") for each in read_json(record.result)["content"])
    return next(filter(None, texts), "")


def progress_text(record: TaskRecord) -> str:
    """Return the progress of a task, such as "2 of 3"; "" if it is unknown."""
    if record.progress is None:
        return ""
    of_all = "" if record.total is None else f" of {record.total:g}"
    return f"{record.progress:g}{of_all}"


def detailed_task(record: TaskRecord, revision: Revision, now_ms: int) -> JsonObject:
    """Return a `DetailedTask`: with result, error or questions, by its status."""
    task = task_to_wire(record, revision, now_ms)
    if record.result:
        # A result with `isError` is no failure here ("Task Status").
        task |= {"status": COMPLETED, "result": Fragment(record.result)}
    elif record.status == FAILED:
        task["error"] = read_json(record.error)
    elif record.status == INPUT_REQUIRED:
        task["inputRequests"] = record.read_state().open_requests()
    return task


def iso_time(milliseconds: int) -> str:
    """Return milliseconds since 1970 as a time of ISO 8601 in UTC."""
    time = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
