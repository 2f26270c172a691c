"""subscriptions/listen: which changes a stream announces (2026-07-28)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_app.protocol import jsonrpc, results
from mcp_app.protocol.envelope import notification_message, result_message
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.negotiation import SUBSCRIPTION_ID
from mcp_app.protocol.revisions import LATEST
from mcp_app.protocol.tasks import TaskRecord, detailed_task
from mcp_app.server import coercion
from mcp_app.server.finding import is_readable
from mcp_app.server.round_trip import now_ms
from mcp_app.server.tasks import readable_tasks

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.server.request import Request
    from mcp_app.server.run import Run

METHOD = "subscriptions/listen"
LISTS = {
    "toolsListChanged": "tools",
    "promptsListChanged": "prompts",
    "resourcesListChanged": "resources",
    "eventsListChanged": "events",
}
MAX_NAMES = 1_000


@dataclass(frozen=True, slots=True)
class Interest:
    """The changes that a listener wants: lists by name, resources by URI, tasks."""

    lists: frozenset[str]
    uris: frozenset[str]
    tasks: Sequence[TaskRecord] = ()


async def accept_subscription(run: Run) -> tuple[Interest, JsonObject]:
    """Return the interest of the stream, and the filter as acknowledged.

    A resource or task that the caller cannot read is left out, like one that is
    missing.
    """
    filters = coercion.object_member(run.request.params, "notifications", required=True)
    honoured: JsonObject = {}
    for member, listing in LISTS.items():
        value = filters.get(member)
        if value is not None and type(value) is not bool:
            raise InvalidParams(f"params.notifications.{member} must be a boolean.")
        if value and (listing != "events" or run.request.catalog.has_events):
            honoured[member] = True
    requested = _requested_names(filters, "resourceSubscriptions")
    uris = [uri for uri in requested if await is_readable(run, uri)]
    if "resourceSubscriptions" in filters:
        honoured["resourceSubscriptions"] = uris
    tasks: Sequence[TaskRecord] = ()
    if "taskIds" in filters:
        tasks = await readable_tasks(run.request, _requested_names(filters, "taskIds"))
        honoured["taskIds"] = [task.public_id for task in tasks]
    lists = frozenset(LISTS[member] for member in honoured if member in LISTS)
    return Interest(lists, frozenset(uris), tasks), honoured


def _requested_names(filters: JsonObject, member: str) -> list[str]:
    """Return the URIs or ids that a member of the filter names, each once."""
    names = filters.get(member, [])
    if type(names) is not list or not all(type(name) is str for name in names):
        raise InvalidParams(f"params.notifications.{member} must be a list of strings.")
    if len(names) > MAX_NAMES:
        raise InvalidParams(
            f"params.notifications.{member} has {len(names)} entries;"
            f" {MAX_NAMES} are allowed."
        )
    return list(dict.fromkeys(names))


def acknowledged_message(request: Request, honoured: JsonObject) -> bytes:
    """Return the first message of the stream."""
    params = results.subscription_meta(request.id, {"notifications": honoured})
    return jsonrpc.write(
        notification_message("notifications/subscriptions/acknowledged", params)
    )


def closed_message(request: Request) -> bytes:
    """Return the result that tells the client of a graceful end."""
    result = request.complete_result({"_meta": {SUBSCRIPTION_ID: request.id}})
    return jsonrpc.write(result_message(request.id, result))


def cancelled_message(subscription: str | int) -> bytes:
    """Return the notification that the server ends a subscription.

    If requests share a channel, it follows the result (basic/patterns/cancellation).
    """
    params = {"requestId": subscription, "reason": "The server is stopping."}
    return jsonrpc.write(notification_message("notifications/cancelled", params))


def task_message(record: TaskRecord, subscription: str | int) -> bytes:
    """Return the notification that a task has changed, with the whole task."""
    task = detailed_task(record, LATEST, now_ms())
    params = results.subscription_meta(subscription, task)
    return jsonrpc.write(notification_message("notifications/tasks", params))


def change_message(what: str, subscription: str | int | None) -> bytes:
    """Return the notification that something changed: a list by name, or a URI."""
    if what in LISTS.values():
        method, params = f"notifications/{what}/list_changed", {}
    else:
        method, params = "notifications/resources/updated", {"uri": what}
    if subscription is not None:
        params = results.subscription_meta(subscription, params)
    return jsonrpc.write(notification_message(method, params or None))
