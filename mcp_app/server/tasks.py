"""From a call to a task, and from a task to the call that runs it.

If a task asks a question, its run ends, and its row keeps the question.  When all
answers are there, the function runs again from its start, as in a request of the
stateless era (`RoundTrip.ask_by_retry`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from mcp_app.interface.call_record import Outcome
from mcp_app.interface.server import GET_TASK_RESULT
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import (
    InvalidParams,
    MethodNotFound,
    MissingClientCapability,
    ProtocolError,
    Unavailable,
)
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import (
    COMPLETED,
    EXTENSION,
    FORBIDDEN,
    OPTIONAL,
    REQUIRED,
    WORKING,
    Decision,
    NewTask,
    TaskRecord,
    TaskState,
    read_json,
    task_to_wire,
)
from mcp_app.server.approving import (
    NOBODY_TO_ASK,
    approval_state,
    call_digest,
    ending_as_begun,
    waits_for_decision,
)
from mcp_app.server.conversation import RequestState
from mcp_app.server.outcome import Encoded, Failed, error_of_end, with_outcome
from mcp_app.server.round_trip import InputRequired, now_ms
from mcp_app.server.stored_callers import caller_members, caller_of

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import ToolEntry
    from mcp_app.server.ports import Tasks
    from mcp_app.server.request import Request
    from mcp_app.server.run import Run

AT_ONCE_S: Final = 0.2
"""If a task ends within this time, its client may get the result instead of a task."""
CANCELLED_TEXT: Final = "The task was cancelled."
MAX_ID_LENGTH: Final = 64
UNKNOWN: Final = "There is no such task, or it has expired."
MIN_TTL_MS: Final = 60_000
_WANTED_EXTENSION: Final[JsonObject] = {"extensions": {EXTENSION: {}}}


def requires_extension(method: str) -> MissingClientCapability:
    """Return the error for a client that did not declare tasks (2026-07-28)."""
    message = f"{method} needs a client that declares the extension {EXTENSION}."
    return MissingClientCapability(message, _WANTED_EXTENSION)


class Mode(Enum):
    """How a call of a tool is answered; `ctx.as_task` makes a `CALL` a task later."""

    CALL = "call"
    TASK = "task"
    WAIT = "wait"
    """A client without tasks waits for the task."""
    FETCH = "fetch"
    """The tool that fetches the result of a task."""
    DECIDE = "decide"
    """First find out what a person must decide (`Run.decision`)."""


def mode_of(run: Run, entry: ToolEntry) -> Mode:
    """Return how a call is answered; raise on a wrong or missing wish for a task."""
    request = run.request
    definition, is_task_run = entry.definition, request.task is not None
    if run.decision is None and (definition.approval is not None or is_task_run):
        return Mode.DECIDE
    fetches = entry.runnable.ours and entry.identity == GET_TASK_RESULT
    usual = Mode.FETCH if fetches else Mode.CALL
    if request.adapters.tasks is None or is_task_run:
        mode = usual
    elif request.takes_tasks:
        mode = _mode_with_tasks(run, entry, usual)
    else:
        mode = _mode_without_tasks(run, entry, usual)
    if waits_for_decision(run) and mode is Mode.CALL:
        raise Failed(NOBODY_TO_ASK, Outcome.TOOL_ERROR)
    return mode


def _mode_with_tasks(run: Run, entry: ToolEntry, usual: Mode) -> Mode:
    definition, revision = entry.definition, run.request.revision
    if not definition.can_be_task:
        if revision.task_requests:
            raise MethodNotFound(f"{entry.identity} does not run as a task.")
        return usual
    if waits_for_decision(run) or not revision.task_extension:
        return Mode.TASK
    at_once = definition.ask_first or definition.task == FORBIDDEN
    return usual if at_once else Mode.TASK


def _mode_without_tasks(run: Run, entry: ToolEntry, usual: Mode) -> Mode:
    definition = entry.definition
    if definition.task == REQUIRED:
        if run.request.revision.task_extension:
            raise requires_extension(entry.identity)
        raise MethodNotFound(f"{entry.identity} runs as a task: call it with task.")
    fetch_tool = run.request.catalog.tools.get(GET_TASK_RESULT)
    can_fetch = fetch_tool is not None and fetch_tool.runnable.ours
    waits = definition.task == OPTIONAL and not definition.ask_first
    waits = waits or waits_for_decision(run)
    return Mode.WAIT if can_fetch and waits else usual


async def start_task(
    run: Run,
    entry: ToolEntry,
    arguments: JsonObject,
    earlier: RequestState | None = None,
) -> Encoded:
    """Return the answer of a call that becomes a task."""
    record = await create_task(run, entry, arguments, earlier)
    with ending_as_task(run):
        return await _answer_with_task(run, record), ending_as_begun(run)


@contextmanager
def ending_as_task(run: Run) -> Iterator[None]:
    """Log a call that has become a task as a task, even if its answer fails."""
    try:
        yield
    except (Failed, InputRequired, ProtocolError) as error:
        error.ending = ending_as_begun(run)
        raise
    except asyncio.CancelledError:
        raise with_outcome(error_of_end(run), Outcome.TASK) from None


async def create_task(
    run: Run,
    entry: ToolEntry,
    arguments: JsonObject,
    earlier: RequestState | None = None,
) -> TaskRecord:
    """Store a task; raise `Failed` if the caller has too many.

    `earlier` has the answers so far.  If a person must decide first, a repeated call
    gets the same task, as long as the decision is open.
    """
    request = run.request
    tasks, decision = request.adapters.tasks, run.decision or Decision()
    assert tasks is not None  # noqa: S101 - the callers looked
    ttl_ms, approval, digest = _lifetime_ms(request), None, None
    if decision.status:
        approval = approval_state(request, entry, decision.text)
        digest = call_digest(run.request, entry, arguments)
        # The lifetime that a client asks for may be too short for a person.
        limits = request.adapters.limits
        ttl_ms = int((limits.approval_wait + limits.tasks_kept) * 1_000)
    record = await tasks.create(
        NewTask(
            server=request.catalog.server.slug,
            tool=entry.identity,
            holder=holder_of(request),
            person=request.payer,
            caller=jsonrpc.write(caller_of(request)).decode(),
            revision=request.revision.version,
            arguments=jsonrpc.write(arguments).decode(),
            state=_first_state(earlier, approval),
            rerun=entry.definition.may_rerun,
            ttl_ms=ttl_ms,
            status=decision.status or WORKING,
            call_digest=digest,
        )
    )
    if isinstance(record, str):
        raise Failed(record, Outcome.LIMITED)
    return record


async def _answer_with_task(run: Run, record: TaskRecord) -> bytes:
    request = run.request
    tasks, revision = request.adapters.tasks, request.revision
    assert tasks is not None  # noqa: S101 - there is a task
    if revision.task_extension and not waits_for_decision(run):
        # The server may choose: a client that gets the result need not ask for it.
        later = None
        with suppress(Unavailable):
            # The task is stored, even if the database cannot be reached now.
            later = await tasks.wait(record, AT_ONCE_S)
        if later is not None and later.status == COMPLETED:
            await tasks.let_go(later)
            return later.result.encode()
    wire = task_to_wire(record, revision, now_ms())
    if revision.task_requests:
        return jsonrpc.write(request.complete_result({"task": wire}))
    return jsonrpc.write(request.complete_result({**wire, "resultType": "task"}))


def holder_of(request: Request) -> str:
    """Return the key of those who may read the tasks of a caller.

    For an anonymous caller it is the session, or "" (anybody who knows the id).
    """
    if not request.principal.anonymous:
        return request.principal.key
    session = request.session
    return f"session:{session.digest}" if session is not None else ""


def tasks_of(request: Request) -> Tasks:
    """Return the store of tasks; raise if the server or the client has no tasks."""
    tasks = request.adapters.tasks
    if tasks is None or not request.catalog.has_tasks:
        raise MethodNotFound(f"Method not found: {request.method}")
    if request.revision.task_extension and not request.takes_tasks:
        raise requires_extension(request.method)
    return tasks


async def readable_tasks(
    request: Request, public_ids: Sequence[str]
) -> list[TaskRecord]:
    """Return the tasks that the caller may read; raise if it can have none."""
    tasks = tasks_of(request)
    short_ids = [each for each in public_ids if len(each) <= MAX_ID_LENGTH]
    records = await asyncio.gather(*map(tasks.find, short_ids))
    return [each for each in records if each is not None and may_read(request, each)]


def may_read(request: Request, record: TaskRecord) -> bool:
    """Whether the caller may read a task."""
    return (
        record.server == request.catalog.server.slug
        and record.holder == holder_of(request)
        and sees_task(request, record)
    )


def sees_task(request: Request, record: TaskRecord) -> bool:
    """Whether the caller sees the tool of a task, even if stopped, or it is gone."""
    catalog, name = request.catalog, record.tool
    entry = catalog.tools.get(name) or catalog.switched_off("tools", name)
    return entry is None or request.sees(entry.definition)


def _lifetime_ms(request: Request) -> int:
    """Return how long the task may live: as the client asks, within our limits."""
    max_ms = int(request.adapters.limits.tasks_kept * 1_000)
    options = request.params.get("task")
    if not request.revision.task_requests or options is None:
        return max_ms
    if type(options) is not dict:
        raise InvalidParams("params.task must be an object.")
    ttl = options.get("ttl")
    if ttl is None:
        return max_ms
    if type(ttl) not in (int, float) or not ttl > 0:
        raise InvalidParams(f"params.task.ttl is {ttl!r:.80}: it must be above 0.")
    return max(MIN_TTL_MS, int(min(max_ms, ttl)))


# -- state -----------------------------------------------------------------------------


def _first_state(earlier: RequestState | None, approval: JsonObject | None) -> str:
    if earlier is None:
        round_trip = secrets.token_hex(16)
        return _write_state(TaskState(round_trip=round_trip, approval=approval))
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
        open_digests={question["key"]: question["digest"] for question in questions},
        answered={key: tuple(each) for key, each in (state.answered or {}).items()},
    )


def replies_of(state: TaskState) -> JsonObject:
    """Return the answers to the questions of the last run, as `inputResponses`."""
    questions = (state.questions or {}).values()
    return {each["key"]: each["reply"] for each in questions if "reply" in each}


def parked_state(state: TaskState, needed: InputRequired) -> TaskState:
    """Return the state of a task whose run has ended with questions."""
    wire_keys, questions = [*(state.wire_keys or ())], {}
    # Clients know a question by its wire key, which a task uses for one question only.
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
        approval=state.approval,
    )


# -- runs ------------------------------------------------------------------------------


def request_members(record: TaskRecord) -> dict[str, Any]:
    """Return the members of the `Request` that runs a task, from the task's row."""
    replies = replies_of(record.read_state())
    return {
        **caller_members(read_json(record.caller)),
        "id": record.public_id,
        "method": "tools/call",
        "params": {
            "name": record.tool,
            "arguments": read_json(record.arguments),
            **({"inputResponses": replies} if replies else {}),
        },
        "person": record.person,
    }
