"""Waits for tasks, for clients without tasks: in the call or in `get_task_result`.

If such a client calls a tool that can run as a task, the call becomes a task.  Its
request waits as long as clients usually do, and answers with the result.  If there is
none by then, the answer says how to get the result later.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Final

from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.interface.call_record import ANSWERED, Outcome
from mcp_app.interface.context import Answer
from mcp_app.interface.definitions import OurTool, ToolHints
from mcp_app.interface.errors import (
    ClientRefused,
    TimedOut,
    ToolError,
    TooManyQuestions,
)
from mcp_app.interface.questions import ToolOutput
from mcp_app.interface.server import GET_TASK_RESULT
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InternalError, InvalidParams, TaskFailed
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.results import STILL_RUNS_MEMBER
from mcp_app.protocol.tasks import (
    CANCELLED,
    DECISION_TEXTS,
    INPUT_REQUIRED,
    RELATED_TASK,
    TaskRecord,
    progress_text,
    read_json,
)
from mcp_app.server.approving import ending_as_begun, waits_for_decision
from mcp_app.server.context import call_core_of
from mcp_app.server.conversation import RequestState
from mcp_app.server.outcome import Encoded, Failed
from mcp_app.server.questions import PreparedQuestion, can_answer
from mcp_app.server.request import Request
from mcp_app.server.round_trip import InputRequired, open_state
from mcp_app.server.run import End, Run
from mcp_app.server.tasks import (
    CANCELLED_TEXT,
    MAX_ID_LENGTH,
    UNKNOWN,
    create_task,
    ending_as_task,
    may_read,
)

if TYPE_CHECKING:
    from mcp_app.server.ports import Tasks

OF_TASK: Final = "task:"
"""Prefix in a request state: a task's id follows, instead of that of a round trip."""
USUAL_WAIT_S: Final = 25
NO_TASKS: Final = "Nothing runs in the background here."
REFUSED: Final = "The client refused a question of this task."
WAIT_S: Final = 30.0
"""Seconds after which a request that waits for a result looks again."""
STILL_RUNS: Final = (
    "It still runs{progress}. Call get_task_result with task={task!r} to get the"
    " result."
)
STILL_ASKS: Final = (
    "It waits for an answer that this client cannot be asked for. Call it with a client"
    " that can answer questions."
)
WAITS_FOR_DECISION: Final = (
    "Nothing has happened yet. {what} Tell the user. Later, call get_task_result with"
    " task={task!r} to get the result. Do not call the tool again."
)
_MEMBERS: Final = ("content", "structuredContent", "isError")
"""What a client of another revision gets of a stored result."""
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


async def _run_outside_of_calls(**_: object) -> ToolOutput:
    raise ToolError(NO_TASKS)


RESULT_TOOL: Final = (
    OurTool(
        name=GET_TASK_RESULT,
        title="Get the result of a task",
        description=(
            "Get the result of a call that said that it still runs. It waits for the"
            " end, and says so if there is none yet."
        ),
        input_schema=_PARAMETERS,
        hints=ToolHints(read_only=True, idempotent=True, open_world=False),
    ),
    _run_outside_of_calls,
)
"""The tool that fetches results; its calls are answered by their mode (`FETCH`)."""


async def call_and_wait(run: Run, entry: ToolEntry, arguments: JsonObject) -> Encoded:
    """Run a call as a task; return its answer, or how to get that later."""
    tasks = run.request.adapters.tasks
    assert tasks is not None  # noqa: S101 - `mode_of` looked
    is_retry = _is_retry(run.request)
    creating = asyncio.ensure_future(_task_for(run, entry, arguments, tasks))
    try:
        # A call that is cancelled must know which task it has made.
        record = await asyncio.shield(creating)
        with nullcontext() if is_retry else ending_as_task(run):
            record = await _wait(run, record, run.request.adapters.limits.task_wait)
            # If a person had to decide, a repeated call may know the same task.
            if record.has_ended and not waits_for_decision(run):
                await tasks.let_go(record)
            promises = entry.definition.output_schema is not None
            answer = _answer_with(run, record, promises=promises)
            return answer, ANSWERED if is_retry else ending_as_begun(run)
    except asyncio.CancelledError:
        if run.end is End.CANCELLED:
            await tasks.cancel(await creating, CANCELLED_TEXT)
        raise


async def _task_for(
    run: Run, entry: ToolEntry, arguments: JsonObject, tasks: Tasks
) -> TaskRecord:
    """Return the task that a retry goes on with, or a new one."""
    record = await _earlier_task(run, tasks)
    return record or await create_task(run, entry, arguments)


async def get_task_result(run: Run, _: ToolEntry, arguments: JsonObject) -> Encoded:
    """Return the result of a task, or that it still runs."""
    tasks = run.request.adapters.tasks
    if tasks is None:
        raise Failed(NO_TASKS, Outcome.TOOL_ERROR)
    record = await _earlier_task(run, tasks) or await tasks.find(arguments["task"])
    if record is None or not may_read(run.request, record):
        raise Failed(UNKNOWN, Outcome.TOOL_ERROR)
    record = await _wait(run, record, arguments.get("wait", USUAL_WAIT_S))
    return _answer_with(run, record), ANSWERED


def _is_retry(request: Request) -> bool:
    return request.session is None and request.params.get("requestState") is not None


async def _earlier_task(run: Run, tasks: Tasks) -> TaskRecord | None:
    """Return the task that a retry goes on with, once it has the answers."""
    if not _is_retry(run.request):
        return None
    state = open_state(run.request, run.request.params["requestState"])
    public_id = state.round_trip.removeprefix(OF_TASK)
    record = await tasks.find(public_id)
    if record is None or not may_read(run.request, record):
        raise InvalidParams(UNKNOWN)
    replies = run.request.params.get("inputResponses", {})
    if type(replies) is not dict:
        raise InvalidParams("params.inputResponses must be an object.")
    await tasks.answer(record, replies)
    return await tasks.find(public_id) or record


async def _wait(run: Run, record: TaskRecord, seconds: float) -> TaskRecord:
    """Return the task when it has ended, or after so many seconds.

    Its questions go to the client: on the stream of a session, else in the answer.
    """
    loop, core = asyncio.get_running_loop(), call_core_of(run)
    until = loop.time() + seconds
    try:
        while not record.has_ended and (seconds_left := until - loop.time()) > 0:
            if record.status == INPUT_REQUIRED:
                if not _can_ask(run, record):
                    # This client cannot be asked, so there is nothing to wait for.
                    break
                if run.request.revision.stateless:
                    state = RequestState(round_trip=f"{OF_TASK}{record.public_id}")
                    raise InputRequired(record.read_state().open_requests(), state)
            record = await wait_for_change(run, record, seconds_left)
            if record.progress is not None:
                message = record.message or None
                core.send_progress(record.progress, record.total, message)
    finally:
        core.close()
    return record


def _can_ask(run: Run, record: TaskRecord) -> bool:
    has_way = run.request.revision.stateless or run.reply.streams
    return has_way and may_ask(run.request, record)


def _answer_with(run: Run, record: TaskRecord, *, promises: bool = False) -> bytes:
    """Return a task's result, or that there is none yet; raise if the task failed.

    `promises` says whether the tool that was called has an output schema.
    """
    request = run.request
    if record.error:
        error = read_json(record.error)
        if error["code"] != InternalError.code:
            # The client can do something about this error, such as open a page.
            raise TaskFailed(error)
        raise Failed(error["message"], Outcome.TOOL_ERROR)
    if record.status == CANCELLED:
        raise Failed(CANCELLED_TEXT, Outcome.TOOL_ERROR)
    if not record.result:
        text = _text_meanwhile(run, record)
        # This is not an error result, because agents give up after a few of them.
        answer: JsonObject = {"content": [{"type": "text", "text": text}]}
        if promises and request.revision.structured_content:
            answer["structuredContent"] = {STILL_RUNS_MEMBER: text}
        return jsonrpc.write(request.complete_result(answer))
    if record.revision == request.revision.version:
        return record.result.encode()
    result = read_json(record.result)
    members = {name: result[name] for name in _MEMBERS if name in result}
    return jsonrpc.write(request.complete_result(members))


def _text_meanwhile(run: Run, record: TaskRecord) -> str:
    if what := DECISION_TEXTS.get(record.status):
        return WAITS_FOR_DECISION.format(what=what, task=record.public_id)
    if record.status == INPUT_REQUIRED and not _can_ask(run, record):
        return STILL_ASKS
    progress = progress_text(record)
    return STILL_RUNS.format(
        progress=f" ({progress})" if progress else "", task=record.public_id
    )


async def wait_for_change(
    run: Run, record: TaskRecord, seconds: float = math.inf
) -> TaskRecord:
    """Return the task when it has changed, or after so many seconds.

    Meanwhile the questions of the task are asked on the stream of this request.
    """
    tasks, asking = run.request.adapters.tasks, None
    assert tasks is not None  # noqa: S101 - the callers looked
    until = time.monotonic() + seconds
    if run.reply.streams and may_ask(run.request, record):
        asking = asyncio.create_task(_ask_client(run, tasks, record))
    try:
        later: TaskRecord | None = record
        while later == record:
            seconds_left = until - time.monotonic()
            later = await tasks.wait(record, min(WAIT_S, max(0.0, seconds_left)))
            if seconds_left <= 0:
                break
    finally:
        if asking is not None:
            asking.cancel()
            await asyncio.wait([asking])
    if later is None:
        raise InvalidParams(UNKNOWN)
    return later


def may_ask(request: Request, record: TaskRecord) -> bool:
    """Whether a task waits for answers, all of which this client can give."""
    client, revision = request.client, request.revision
    return record.status == INPUT_REQUIRED and all(
        can_answer(client, revision, each)
        for each in record.read_state().open_requests().values()
    )


async def _ask_client(run: Run, tasks: Tasks, record: TaskRecord) -> None:
    """Ask the questions of a task on the stream of this request."""
    meta = {RELATED_TASK: {"taskId": record.public_id}}
    questions: list[PreparedQuestion] = []
    requests = record.read_state().open_requests()
    # The answers to the first questions change the row; then the next are asked.
    for key, question in islice(
        requests.items(), run.request.adapters.limits.questions_per_person
    ):
        params = {**question["params"]}
        params["_meta"] = {**params.get("_meta", {}), **meta}
        questions.append(
            PreparedQuestion(
                key=key,
                method=question["method"],
                params=params,
                parse=_leave_unread,
                private=question["method"] == "sampling/createMessage",
            )
        )
    trip = call_core_of(run).round_trip
    try:
        replies = await trip.ask_on_stream(questions, None, in_thread=False)
        by_key = zip((each.key for each in questions), replies, strict=True)
        await tasks.answer(record, dict(by_key))
    except ClientRefused:
        await tasks.cancel(record, REFUSED)
    except InvalidParams as error:
        # The client sent an answer to a question: no error can be sent back for it.
        await tasks.cancel(record, error.message)
    except (TimedOut, TooManyQuestions):
        # If the client asks for the result again, it is asked again.
        return


def _leave_unread(answer: JsonObject) -> Answer:
    """Do not read an answer: the run of the task does, by its own question."""
    raise ValueError(f"Nobody reads {answer!r:.80} here.")
