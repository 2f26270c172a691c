"""Which calls become tasks, what they answer then, and who may read a task."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from typing import TYPE_CHECKING, Final

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
from mcp_app.server.stored_callers import caller_of
from mcp_app.server.task_states import first_state

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
            state=first_state(earlier, approval),
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
