"""Clients without tasks: the call waits a while, and a tool fetches the rest.

A call of a tool that may run in the background becomes a task all the same.  Its
request waits for the end as long as clients do, and answers as any call; after that it
says how to go on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from mcp_app.catalog.outputs import content_output
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.snapshot import ToolEntry, tool_entry
from mcp_app.interface.definitions import ToolDefinition, ToolHints
from mcp_app.interface.errors import ToolError
from mcp_app.interface.questions import ToolOutput
from mcp_app.interface.server import GET_TASK_RESULT
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InternalError, InvalidParams, TaskFailed
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.results import STILL_RUNS_MEMBER
from mcp_app.protocol.tasks import (
    CANCELLED,
    INPUT_REQUIRED,
    OPTIONAL,
    TaskRecord,
    progress_text,
    read_json,
)
from mcp_app.server.context import call_core_of
from mcp_app.server.conversation import RequestState
from mcp_app.server.exchange import End, Exchange
from mcp_app.server.handlers.tasks import (
    CANCELLED_TEXT,
    MAX_ID_LENGTH,
    UNKNOWN,
    may_ask,
    may_read,
    wait_for_change,
)
from mcp_app.server.round_trip import InputRequired, open_state
from mcp_app.server.tasks import create_task

if TYPE_CHECKING:
    from mcp_app.server.exchange import Tasks

OF_TASK: Final = "task:"
"""With this and its id a state names a task in the place of a round trip."""
USUAL_WAIT_S: Final = 25
STILL_RUNS: Final = (
    "It still runs{progress}. Call get_task_result with task={task!r} to get the"
    " result."
)
STILL_ASKS: Final = (
    "It waits for an answer that this client cannot be asked for. Call it with a client"
    " that can answer questions."
)
_MEMBERS: Final = ("content", "structuredContent", "isError")
_PARAMETERS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "maxLength": MAX_ID_LENGTH,
            "description": "The id, as the call said it.",
        },
        "wait": {
            "type": "number",
            "minimum": 0,
            "maximum": 50,
            "default": USUAL_WAIT_S,
            "description": "For how many seconds to wait for the end.",
        },
    },
    "required": ["task"],
    "additionalProperties": False,
}


def result_tool(tags: frozenset[str]) -> ToolEntry:
    """Return the tool that fetches results, which bears these tags."""
    return tool_entry(
        ToolDefinition(
            name=GET_TASK_RESULT,
            title="Get the result of a task",
            description=(
                "Get the result of a call that said that it still runs. It waits for"
                " the end, and says so if there is none yet."
            ),
            input_schema=_PARAMETERS,
            hints=ToolHints(read_only=True, idempotent=True, open_world=False),
            tags=tags,
        ),
        Runnable(
            run=_run_outside_of_calls,
            style="async",
            bind=lambda arguments: arguments,
            convert=content_output,
            ours=True,
        ),
    )


async def _run_outside_of_calls(**_: object) -> ToolOutput:
    raise ToolError("Nothing runs in the background here.")


def waits_for_task(exchange: Exchange, entry: ToolEntry) -> bool:
    """Whether a call becomes a task that its request waits for."""
    definition, fetching = entry.definition, exchange.catalog.tools.get(GET_TASK_RESULT)
    return (
        definition.task == OPTIONAL
        and not definition.ask_first
        and not exchange.takes_tasks
        and exchange.task_run is None
        and exchange.adapters.tasks is not None
        and fetching is not None
        and fetching.runnable.ours
    )


async def call_and_wait(
    exchange: Exchange, entry: ToolEntry, arguments: JsonObject
) -> bytes:
    """Run a call as a task; return its answer, or how to get that later."""
    tasks = exchange.adapters.tasks
    assert tasks is not None  # noqa: S101 - `waits_for_task` looked
    creating = asyncio.ensure_future(_task_for(exchange, entry, arguments, tasks))
    try:
        # A call that is cancelled must know which task it has made.
        record = await asyncio.shield(creating)
        record = await _wait(exchange, record, exchange.adapters.limits.task_wait)
    except asyncio.CancelledError:
        if exchange.end is End.CANCELLED:
            await tasks.cancel(await creating, CANCELLED_TEXT)
        raise
    if record.has_ended:
        await tasks.let_go(record)
    promises = entry.definition.output_schema is not None
    return _answer_with(exchange, record, promises=promises)


async def _task_for(
    exchange: Exchange, entry: ToolEntry, arguments: JsonObject, tasks: Tasks
) -> TaskRecord:
    """Return the task that a retry goes on with, or a new one."""
    record = await _earlier_task(exchange, tasks)
    return record or await create_task(exchange, entry, arguments)


async def get_task_result(
    exchange: Exchange, arguments: JsonObject
) -> bytes | ToolOutput:
    """Return the result of a task, or that it still runs."""
    tasks = exchange.adapters.tasks
    if tasks is None:
        return await _run_outside_of_calls()
    earlier = await _earlier_task(exchange, tasks)
    record = earlier or await tasks.find(arguments["task"])
    if record is None or not may_read(exchange, record):
        raise ToolError(UNKNOWN)
    record = await _wait(exchange, record, arguments.get("wait", USUAL_WAIT_S))
    return _answer_with(exchange, record)


async def _earlier_task(exchange: Exchange, tasks: Tasks) -> TaskRecord | None:
    """Return the task that a retry goes on with, once it has the answers."""
    sealed = exchange.params.get("requestState")
    if exchange.session is not None or sealed is None:
        return None
    public_id = open_state(exchange, sealed).round_trip.removeprefix(OF_TASK)
    record = await tasks.find(public_id)
    if record is None or not may_read(exchange, record):
        raise InvalidParams(UNKNOWN)
    replies = exchange.params.get("inputResponses", {})
    if type(replies) is not dict:
        raise InvalidParams("params.inputResponses must be an object.")
    await tasks.answer(record, replies)
    return await tasks.find(public_id) or record


async def _wait(exchange: Exchange, record: TaskRecord, seconds: float) -> TaskRecord:
    """Return the task when it has ended, or after so many seconds.

    Its questions go to the client: on the stream of a session, else as the answer.
    """
    loop, core = asyncio.get_running_loop(), call_core_of(exchange)
    until = loop.time() + seconds
    try:
        while not record.has_ended and (left := until - loop.time()) > 0:
            if record.status == INPUT_REQUIRED:
                asks = may_ask(exchange, record)
                if asks and exchange.revision.stateless:
                    state = RequestState(round_trip=f"{OF_TASK}{record.public_id}")
                    raise InputRequired(record.read_state().open_requests(), state)
                if not (asks and exchange.outgoing.streams):
                    # Nobody can be asked here, so there is nothing to wait for.
                    break
            record = await wait_for_change(exchange, record, left)
            if record.progress is not None:
                message = record.message or None
                core.send_progress(record.progress, record.total, message)
    finally:
        core.close()
    return record


def _answer_with(
    exchange: Exchange, record: TaskRecord, *, promises: bool = False
) -> bytes:
    """Return the result of a task, or that there is none yet; raise how it failed.

    `promises` says whether the tool that was called has an output schema.
    """
    if record.error:
        error = read_json(record.error)
        if error["code"] != InternalError.code:
            # Its client can do something about it, such as open a page.
            raise TaskFailed(error)
        raise ToolError(error["message"])
    if record.status == CANCELLED:
        raise ToolError(CANCELLED_TEXT)
    if not record.result:
        done = progress_text(record)
        text = STILL_RUNS.format(
            progress=f" ({done})" if done else "", task=record.public_id
        )
        if record.status == INPUT_REQUIRED:
            text = STILL_ASKS
        # No error: agents give up after a few.
        answer: JsonObject = {"content": [{"type": "text", "text": text}]}
        if promises and exchange.revision.structured_content:
            answer["structuredContent"] = {STILL_RUNS_MEMBER: text}
        return jsonrpc.write(exchange.complete_result(answer))
    if record.revision == exchange.revision.version:
        return record.result.encode()
    result = read_json(record.result)
    known = {name: result[name] for name in _MEMBERS if name in result}
    return jsonrpc.write(exchange.complete_result(known))
