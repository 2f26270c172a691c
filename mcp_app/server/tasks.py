"""From a call to a task, and from a task to the call that runs it.

A task that asks holds nothing: its run ends, the questions stand in its row, and when
all answers are there the function runs again from its start, as a request of the
stateless era does (`RoundTrip.ask_by_retry`).
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mcp_app.interface.call_record import Outcome
from mcp_app.interface.errors import ToolError
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import (
    InvalidParams,
    MethodNotFound,
    MissingClientCapability,
    Unavailable,
)
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import (
    COMPLETED,
    EXTENSION,
    REQUIRED,
    NewTask,
    TaskRecord,
    TaskState,
    read_json,
    task_to_wire,
)
from mcp_app.server.conversation import RequestState
from mcp_app.server.round_trip import now_ms
from mcp_app.server.stored_callers import caller_of, exchange_members

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import ToolEntry
    from mcp_app.server.exchange import Exchange
    from mcp_app.server.round_trip import InputRequired

AT_ONCE_S: Final = 0.2
"""A client that need not be told of a task gets a result that is there so soon."""
MIN_TTL_MS: Final = 60_000
_WANTED_EXTENSION: Final[JsonObject] = {"extensions": {EXTENSION: {}}}


def requires_extension(method: str) -> MissingClientCapability:
    """Return the error for a client that did not declare tasks (2026-07-28)."""
    message = f"{method} needs a client that declares the extension {EXTENSION}."
    return MissingClientCapability(message, _WANTED_EXTENSION)


async def call_as_task(
    exchange: Exchange, entry: ToolEntry, arguments: JsonObject
) -> bytes | None:
    """Return the answer of a call that becomes a task, None if it stays a call."""
    definition, revision = entry.definition, exchange.revision
    if exchange.adapters.tasks is None or exchange.task_run is not None:
        return None
    if not definition.can_be_task:
        if exchange.takes_tasks and revision.task_requests:
            raise _no_task(exchange, f"{entry.identity} does not run as a task.")
        return None
    if not exchange.takes_tasks:
        if definition.task != REQUIRED:
            return None
        if revision.task_extension:
            raise requires_extension(entry.identity)
        raise _no_task(exchange, f"{entry.identity} runs as a task: call it with task.")
    if definition.ask_first and revision.task_extension:
        return None
    record = await create_task(exchange, entry, arguments)
    return await answer_with_task(exchange, record)


def _no_task(exchange: Exchange, message: str) -> MethodNotFound:
    exchange.record_outcome(Outcome.INVALID, message)
    return MethodNotFound(message)


async def create_task(
    exchange: Exchange,
    entry: ToolEntry,
    arguments: JsonObject,
    earlier: RequestState | None = None,
) -> TaskRecord:
    """Store a task; raise `ToolError` if the caller has too many.

    `earlier` has the answers that the call had before.
    """
    tasks = exchange.adapters.tasks
    assert tasks is not None  # noqa: S101 - the callers looked
    record = await tasks.create(
        NewTask(
            server=exchange.catalog.server.slug,
            tool=entry.identity,
            holder=holder_of(exchange),
            person=exchange.payer,
            caller=jsonrpc.write(caller_of(exchange)).decode(),
            revision=exchange.revision.version,
            arguments=jsonrpc.write(arguments).decode(),
            state=_first_state(earlier),
            rerun=entry.definition.may_rerun,
            ttl_ms=_lifetime_ms(exchange),
        )
    )
    if isinstance(record, str):
        exchange.record_outcome(Outcome.LIMITED, record)
        raise ToolError(record)
    exchange.record_outcome(Outcome.TASK)
    return record


async def answer_with_task(exchange: Exchange, record: TaskRecord) -> bytes:
    """Return the answer of a call that has become a task."""
    tasks, revision = exchange.adapters.tasks, exchange.revision
    assert tasks is not None  # noqa: S101 - there is a task
    if revision.task_extension:
        # The server decides: who has the result at once need not ask for it.
        later = None
        with suppress(Unavailable):
            # The task is there, whether the database is or not.
            later = await tasks.wait(record, AT_ONCE_S)
        if later is not None and later.status == COMPLETED:
            await tasks.let_go(later)
            return later.result.encode()
    wire = task_to_wire(record, revision, now_ms())
    if revision.task_requests:
        return jsonrpc.write(exchange.complete_result({"task": wire}))
    return jsonrpc.write(exchange.complete_result({**wire, "resultType": "task"}))


def holder_of(exchange: Exchange) -> str:
    """Return who may read the tasks of a caller.

    Of an anonymous one that is its session; without a session whoever knows the id.
    """
    if not exchange.principal.anonymous:
        return exchange.principal.key
    session = exchange.session
    return f"session:{session.digest}" if session is not None else ""


def _lifetime_ms(exchange: Exchange) -> int:
    """Return how long the task may live: as the client asks, within our limits."""
    most = int(exchange.adapters.limits.tasks_kept * 1_000)
    wanted = exchange.params.get("task")
    if not exchange.revision.task_requests or wanted is None:
        return most
    if type(wanted) is not dict:
        raise InvalidParams("params.task must be an object.")
    ttl = wanted.get("ttl")
    if ttl is None:
        return most
    if type(ttl) not in (int, float) or not ttl > 0:
        raise InvalidParams(f"params.task.ttl is {ttl!r:.80}: it must be above 0.")
    return max(MIN_TTL_MS, int(min(most, ttl)))


# -- state -----------------------------------------------------------------------------


def _first_state(earlier: RequestState | None) -> str:
    if earlier is None:
        return _write_state(TaskState(round_trip=secrets.token_hex(16)))
    answered = {key: list(each) for key, each in earlier.answered.items()}
    return _write_state(TaskState(round_trip=earlier.round_trip, answered=answered))


def state_members(state: TaskState) -> JsonObject:
    """Return a state as JSON for the row."""
    members = {name: getattr(state, name) for name in TaskState.__slots__}
    return {name: each for name, each in members.items() if each}


def _write_state(state: TaskState) -> str:
    return jsonrpc.write(state_members(state)).decode()


def request_state_of(state: TaskState) -> RequestState:
    """Return the state of a task as that of a retry."""
    questions = (state.questions or {}).values()
    return RequestState(
        round_trip=state.round_trip,
        open_digests={each["key"]: each["digest"] for each in questions},
        answered={key: tuple(each) for key, each in (state.answered or {}).items()},
    )


def replies_of(state: TaskState) -> JsonObject:
    """Return the answers to the questions of the last run, as `inputResponses`."""
    questions = (state.questions or {}).values()
    return {each["key"]: each["reply"] for each in questions if "reply" in each}


def parked_state(state: TaskState, needed: InputRequired) -> TaskState:
    """Return the state of a task whose run has ended with questions."""
    wire_keys, questions = [*(state.wire_keys or ())], {}
    for key, request in needed.questions.items():
        wire_key, number = key, 1
        while wire_key in wire_keys:
            number += 1
            wire_key = f"{key}_{number}"
        wire_keys.append(wire_key)
        digest = needed.state.open_digests[key]
        questions[wire_key] = {"key": key, "digest": digest, "request": request}
    return TaskState(
        round_trip=state.round_trip,
        answered={key: list(each) for key, each in needed.state.answered.items()},
        questions=questions,
        wire_keys=wire_keys,
    )


# -- runs ------------------------------------------------------------------------------


def run_members(record: TaskRecord) -> dict[str, Any]:
    """Return what the row of a task knows of the `Exchange` that runs it."""
    replies = replies_of(record.read_state())
    return {
        **exchange_members(read_json(record.caller)),
        "request_id": record.public_id,
        "method": "tools/call",
        "params": {
            "name": record.tool,
            "arguments": read_json(record.arguments),
            **({"inputResponses": replies} if replies else {}),
        },
        "person": record.person,
    }
