"""The handler of each method; dispatch has refused what the revision lacks.

A handler returns a result as JSON, or already encoded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.exchange import Exchange
from mcp_app.server.handlers import (
    completion,
    lifecycle,
    lists,
    prompts,
    resources,
    tools,
)

Handler = Callable[[Exchange], Awaitable[JsonObject | bytes]]

HANDLERS: Mapping[str, Handler] = {
    "initialize": lifecycle.initialize,
    "ping": lifecycle.ping,
    "server/discover": lifecycle.discover,
    "logging/setLevel": lifecycle.set_level,
    "tools/list": lists.tools,
    "tools/call": tools.call,
    "resources/list": lists.resources,
    "resources/templates/list": lists.templates,
    "resources/read": resources.read,
    "resources/subscribe": resources.subscribe,
    "resources/unsubscribe": resources.unsubscribe,
    "prompts/list": lists.prompts,
    "prompts/get": prompts.get,
    "completion/complete": completion.complete,
}
