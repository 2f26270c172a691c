"""tasks/get, tasks/update, tasks/cancel; of 2025-11-25 tasks/list and tasks/result.

Another person's task, one that has expired and one that never was get the same answer.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from itertools import islice
from typing import Final

from mcp_app.interface.context import Answer
from mcp_app.interface.errors import ClientRefused, TimedOut, TooManyQuestions
from mcp_app.protocol import cursors, jsonrpc
from mcp_app.protocol.cursors import Cursor
from mcp_app.protocol.errors import (
    InternalError,
    InvalidParams,
    MethodNotFound,
    TaskFailed,
)
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import (
    CANCELLED,
    INPUT_REQUIRED,
    RELATED_TASK,
    TaskRecord,
    detailed_task,
    read_json,
    task_to_wire,
)
from mcp_app.server import coercion
from mcp_app.server.context import call_core_of
from mcp_app.server.exchange import Exchange, Tasks
from mcp_app.server.questions import PreparedQuestion, can_answer
from mcp_app.server.round_trip import now_ms
from mcp_app.server.tasks import holder_of, requires_extension

UNKNOWN: Final = "There is no such task, or it has expired."
CANCELLED_BY_CLIENT: Final = "The client cancelled this task."
REFUSED: Final = "The client refused a question of this task."
CANCELLED_TEXT: Final = "The task was cancelled."
MAX_ID_LENGTH: Final = 64
PAGE_SIZE: Final = 50
WAIT_S: Final = 30.0
"""Who waits for a result looks again after so long."""


async def get_task(exchange: Exchange) -> JsonObject:
    """Return a task as it is now."""
    record = await _find_task(exchange)
    if exchange.revision.task_requests:
        return task_to_wire(record, exchange.revision, now_ms())
    return exchange.complete_result(detailed_task(record, exchange.revision, now_ms()))


async def update_task(exchange: Exchange) -> JsonObject:
    """Take answers to the questions of a task; others are ignored."""
    record = await _find_task(exchange)
    replies = coercion.object_member(exchange.params, "inputResponses", required=True)
    await _tasks_of(exchange).answer(record, replies)
    return exchange.complete_result({})


async def cancel_task(exchange: Exchange) -> JsonObject:
    """End a task; of one that has ended 2025-11-25 says so with an error."""
    record, tasks = await _find_task(exchange), _tasks_of(exchange)
    cancelled = not record.has_ended and await tasks.cancel(record, CANCELLED_BY_CLIENT)
    if exchange.revision.task_extension:
        return exchange.complete_result({})
    record = await _find_task(exchange)
    if not cancelled:
        raise InvalidParams(f"The task has ended already: {record.status}.")
    return task_to_wire(record, exchange.revision, now_ms())


async def list_tasks(exchange: Exchange) -> JsonObject:
    """Return a page of the caller's tasks, the newest first."""
    tasks, slug = _tasks_of(exchange), exchange.catalog.server.slug
    if exchange.principal.anonymous:
        raise MethodNotFound("tasks/list needs a caller with a user.")
    token, before = exchange.params.get("cursor"), None
    keys = exchange.adapters.cursor_keys
    if token is not None:
        if type(token) is not str:
            raise InvalidParams("params.cursor must be a string.")
        before = cursors.open_cursor(token, keys, server=slug, listing="tasks").position
    page = await tasks.list_of(slug, exchange.person, before, PAGE_SIZE + 1)
    readable = [each for each in page[:PAGE_SIZE] if may_read(exchange, each)]
    wires = [task_to_wire(each, exchange.revision, now_ms()) for each in readable]
    result: JsonObject = {"tasks": wires}
    if len(page) > PAGE_SIZE:
        cursor = Cursor(slug, "tasks", page[PAGE_SIZE - 1].pk, "")
        result["nextCursor"] = cursors.seal_cursor(cursor, keys[0])
    return result


async def wait_for_result(exchange: Exchange) -> bytes:
    """Return what the call of a task would have, once it has ended (2025-11-25).

    While the task waits for answers, its questions are asked on this stream.
    """
    record = await _find_task(exchange)
    while not record.has_ended:
        record = await wait_for_change(exchange, record)
    if record.status == CANCELLED:
        raise InternalError(CANCELLED_TEXT)
    if record.error:
        raise TaskFailed(read_json(record.error))
    result: JsonObject = read_json(record.result)
    related = {RELATED_TASK: {"taskId": record.public_id}}
    result["_meta"] = {**(result.get("_meta") or {}), **related}
    return jsonrpc.write(result)


async def wait_for_change(
    exchange: Exchange, record: TaskRecord, seconds: float = math.inf
) -> TaskRecord:
    """Return the task when it has changed, or after so many seconds.

    What it asks meanwhile is asked on the stream of this request.
    """
    tasks, asking = exchange.adapters.tasks, None
    assert tasks is not None  # noqa: S101 - the callers looked
    until = time.monotonic() + seconds
    if exchange.outgoing.streams and may_ask(exchange, record):
        asking = asyncio.create_task(_ask_client(exchange, tasks, record))
    try:
        later: TaskRecord | None = record
        while later == record:
            left = until - time.monotonic()
            later = await tasks.wait(record, min(WAIT_S, max(0.0, left)))
            if left <= 0:
                break
    finally:
        if asking is not None:
            asking.cancel()
            await asyncio.wait([asking])
    if later is None:
        raise InvalidParams(UNKNOWN)
    return later


def may_ask(exchange: Exchange, record: TaskRecord) -> bool:
    """Whether a task waits for answers, all of which this client can give."""
    client, revision = exchange.client, exchange.revision
    return record.status == INPUT_REQUIRED and all(
        can_answer(client, revision, each)
        for each in record.read_state().open_requests().values()
    )


async def _ask_client(exchange: Exchange, tasks: Tasks, record: TaskRecord) -> None:
    """Ask the questions of a task on the stream of this request."""
    meta = {RELATED_TASK: {"taskId": record.public_id}}
    questions: list[PreparedQuestion] = []
    requests = record.read_state().open_requests()
    # With the answers to the first the row changes, and the next are asked.
    for key, request in islice(
        requests.items(), exchange.adapters.limits.questions_per_person
    ):
        params = {**request["params"]}
        params["_meta"] = {**params.get("_meta", {}), **meta}
        questions.append(
            PreparedQuestion(
                key=key,
                method=request["method"],
                params=params,
                parse=_leave_unread,
                private=request["method"] == "sampling/createMessage",
            )
        )
    trip = call_core_of(exchange).round_trip
    try:
        replies = await trip.ask_on_stream(questions, None, in_thread=False)
        by_key = zip((each.key for each in questions), replies, strict=True)
        await tasks.answer(record, dict(by_key))
    except ClientRefused:
        await tasks.cancel(record, REFUSED)
    except InvalidParams as error:
        # An answer to a question has no answer that could say so.
        await tasks.cancel(record, error.message)
    except (TimedOut, TooManyQuestions):
        # Whoever asks for the result again is asked again.
        return


def _leave_unread(answer: JsonObject) -> Answer:
    """Do not read an answer: the run of the task does, by its own question."""
    raise ValueError(f"Nobody reads {answer!r:.80} here.")


def _tasks_of(exchange: Exchange) -> Tasks:
    """Return what keeps tasks; raise if the server or the client has none."""
    tasks = exchange.adapters.tasks
    if tasks is None or not exchange.catalog.has_tasks:
        raise MethodNotFound(f"Method not found: {exchange.method}")
    if exchange.revision.task_extension and not exchange.takes_tasks:
        raise requires_extension(exchange.method)
    return tasks


async def _find_task(exchange: Exchange) -> TaskRecord:
    _tasks_of(exchange)
    public_id = coercion.string_member(exchange.params, "taskId")
    records = await readable_tasks(exchange, [public_id])
    if not records:
        raise InvalidParams(UNKNOWN)
    return records[0]


async def readable_tasks(
    exchange: Exchange, public_ids: Sequence[str]
) -> list[TaskRecord]:
    """Return the tasks that the caller may read; raise if it can have none."""
    tasks = _tasks_of(exchange)
    possible = [each for each in public_ids if len(each) <= MAX_ID_LENGTH]
    records = await asyncio.gather(*map(tasks.find, possible))
    return [each for each in records if each is not None and may_read(exchange, each)]


def may_read(exchange: Exchange, record: TaskRecord) -> bool:
    """Whether the caller may read a task."""
    return (
        record.server == exchange.catalog.server.slug
        and record.holder == holder_of(exchange)
        and sees_task(exchange, record)
    )


def sees_task(exchange: Exchange, record: TaskRecord) -> bool:
    """Whether the tool of a task is gone, stopped, or visible to the caller."""
    catalog, name = exchange.catalog, record.tool
    entry = catalog.tools.get(name) or catalog.switched_off("tools", name)
    return entry is None or exchange.sees(entry.definition)
