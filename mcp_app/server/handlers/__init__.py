"""The handler of each method; dispatch has refused what the revision lacks.

A handler returns a JSON object, bytes, or `Encoded`: bytes and how the call ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.handlers import (
    definitions,
    event_subscriptions,
    events,
    lifecycle,
    skills,
    tasks,
    tools,
)
from mcp_app.server.outcome import Encoded
from mcp_app.server.run import Run

Handler = Callable[[Run], Awaitable[JsonObject | bytes | Encoded]]

HANDLERS: Mapping[str, Handler] = {
    "initialize": lifecycle.initialize,
    "ping": lifecycle.answer_ping,
    "server/discover": lifecycle.discover_server,
    "logging/setLevel": lifecycle.set_level,
    **dict.fromkeys(definitions.LISTINGS, definitions.list_page),
    "tools/call": tools.call_tool,
    "resources/read": definitions.read_resource,
    "resources/subscribe": definitions.subscribe,
    "resources/unsubscribe": definitions.unsubscribe,
    "resources/directory/read": skills.read_directory,
    "skills/list": skills.list_skills,
    "skills/get": skills.get_skill,
    "prompts/get": definitions.get_prompt,
    "completion/complete": definitions.complete_argument,
    "events/list": events.list_events,
    "events/poll": events.poll_events,
    "events/subscribe": event_subscriptions.subscribe_events,
    "events/unsubscribe": event_subscriptions.unsubscribe_events,
    "tasks/get": tasks.get_task,
    "tasks/update": tasks.update_task,
    "tasks/cancel": tasks.cancel_task,
    "tasks/list": tasks.list_tasks,
    "tasks/result": tasks.wait_for_result,
}
