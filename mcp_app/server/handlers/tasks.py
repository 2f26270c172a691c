"""tasks/get, tasks/update, tasks/cancel; of 2025-11-25 tasks/list and tasks/result.

Tasks of other people, expired tasks and unknown tasks get the same answer.
"""

from __future__ import annotations

from typing import Final

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
    RELATED_TASK,
    TaskRecord,
    detailed_task,
    read_json,
    task_to_wire,
)
from mcp_app.server import coercion
from mcp_app.server.handlers.definitions import requested_place
from mcp_app.server.round_trip import now_ms
from mcp_app.server.run import Run
from mcp_app.server.tasks import (
    CANCELLED_TEXT,
    UNKNOWN,
    may_read,
    readable_tasks,
    tasks_of,
)
from mcp_app.server.waiting import wait_for_change

CANCELLED_BY_CLIENT: Final = "The client cancelled this task."
PAGE_SIZE: Final = 50


async def get_task(run: Run) -> JsonObject:
    """Return a task as it is now."""
    request = run.request
    record = await _find_task(run)
    if request.revision.task_requests:
        return task_to_wire(record, request.revision, now_ms())
    return request.complete_result(detailed_task(record, request.revision, now_ms()))


async def update_task(run: Run) -> JsonObject:
    """Take answers to the questions of a task; others are ignored."""
    record = await _find_task(run)
    replies = coercion.object_member(
        run.request.params, "inputResponses", required=True
    )
    await tasks_of(run.request).answer(record, replies)
    return run.request.complete_result({})


async def cancel_task(run: Run) -> JsonObject:
    """End a task; in 2025-11-25 it is an error if the task has ended already."""
    request = run.request
    record, tasks = await _find_task(run), tasks_of(request)
    cancelled = not record.has_ended and await tasks.cancel(record, CANCELLED_BY_CLIENT)
    if request.revision.task_extension:
        return request.complete_result({})
    record = await _find_task(run)
    if not cancelled:
        raise InvalidParams(f"The task has ended already: {record.status}.")
    return task_to_wire(record, request.revision, now_ms())


async def list_tasks(run: Run) -> JsonObject:
    """Return a page of the caller's tasks, the newest first."""
    request = run.request
    tasks, slug = tasks_of(request), request.catalog.server.slug
    if request.principal.anonymous:
        raise MethodNotFound("tasks/list needs a caller with a user.")
    place = requested_place(request, "tasks")
    before = None if place is None else place[0]
    # One more than a page tells whether another page follows.
    page = await tasks.list_of(slug, request.person, before, PAGE_SIZE + 1)
    readable = [each for each in page[:PAGE_SIZE] if may_read(run.request, each)]
    wires = [task_to_wire(each, request.revision, now_ms()) for each in readable]
    result: JsonObject = {"tasks": wires}
    if len(page) > PAGE_SIZE:
        cursor = Cursor(slug, "tasks", page[PAGE_SIZE - 1].pk, "")
        key = request.adapters.cursor_keys[0]
        result["nextCursor"] = cursors.seal_cursor(cursor, key)
    return result


async def wait_for_result(run: Run) -> bytes:
    """Return the result of a task's call, once the task has ended (2025-11-25).

    While the task waits for answers, its questions are asked on this stream.
    """
    record = await _find_task(run)
    while not record.has_ended:
        record = await wait_for_change(run, record)
    if record.status == CANCELLED:
        raise InternalError(CANCELLED_TEXT)
    if record.error:
        raise TaskFailed(read_json(record.error))
    result: JsonObject = read_json(record.result)
    related = {RELATED_TASK: {"taskId": record.public_id}}
    result["_meta"] = {**(result.get("_meta") or {}), **related}
    return jsonrpc.write(result)


async def _find_task(run: Run) -> TaskRecord:
    # This only raises if there are no tasks: an id is not looked at then.
    tasks_of(run.request)
    public_id = coercion.string_member(run.request.params, "taskId")
    records = await readable_tasks(run.request, [public_id])
    if not records:
        raise InvalidParams(UNKNOWN)
    return records[0]
