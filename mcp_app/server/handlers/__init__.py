"""The handler of each method; dispatch has refused what the revision lacks.

A handler returns a result as JSON, or already encoded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.exchange import Exchange
from mcp_app.server.handlers import definitions, lifecycle, tools

Handler = Callable[[Exchange], Awaitable[JsonObject | bytes]]

HANDLERS: Mapping[str, Handler] = {
    "initialize": lifecycle.initialize,
    "ping": lifecycle.ping,
    "server/discover": lifecycle.discover,
    "logging/setLevel": lifecycle.set_level,
    "tools/list": definitions.tools,
    "tools/call": tools.call,
    "resources/list": definitions.resources,
    "resources/templates/list": definitions.templates,
    "resources/read": definitions.read,
    "resources/subscribe": definitions.subscribe,
    "resources/unsubscribe": definitions.unsubscribe,
    "prompts/list": definitions.prompts,
    "prompts/get": definitions.get,
    "completion/complete": definitions.complete,
}
