"""The tools of ours that a server has beside those of the site."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_app.catalog.snapshot import EventEntry, ToolEntry
from mcp_app.conf import mcp_settings
from mcp_app.interface.server import GET_TASK_RESULT, WAIT_FOR_EVENT, ServerDefinition
from mcp_app.protocol.tasks import OPTIONAL
from mcp_app.server.event_waiting import event_tool
from mcp_app.server.searching import search_tools
from mcp_app.server.waiting import result_tool


def own_tools(
    server: ServerDefinition, tools: Sequence[ToolEntry], events: Sequence[EventEntry]
) -> list[ToolEntry]:
    """Return our tools for a server that has these; they bear the tags of all.

    `MCP["DISABLED_TOOLS"]` switches them off by name.  A tool of the site that is
    called as one that fetches results or waits for events stands in its place.
    """
    names = {each.identity for each in tools}
    fetches = any(each.definition.task == OPTIONAL for each in tools)
    if not (fetches or events or server.uses_search):
        return []
    tags = frozenset[str]().union(*(each.definition.tags for each in tools))
    own = [*search_tools(tags)] if server.uses_search else []
    if fetches and GET_TASK_RESULT not in names:
        own.append(result_tool(tags))
    if events and WAIT_FOR_EVENT not in names:
        own.append(event_tool(tags.union(*(each.definition.tags for each in events))))
    return [each for each in own if each.identity not in mcp_settings.disabled_tools]
