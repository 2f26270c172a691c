"""The tools of ours that a server has beside those of the site."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.conf import mcp_settings
from mcp_app.interface.server import GET_TASK_RESULT, ServerDefinition
from mcp_app.protocol.tasks import OPTIONAL
from mcp_app.server.searching import search_tools
from mcp_app.server.waiting import result_tool


def own_tools(server: ServerDefinition, tools: Sequence[ToolEntry]) -> list[ToolEntry]:
    """Return our tools for a server that has these; they bear the tags of all.

    `MCP["DISABLED_TOOLS"]` switches them off by name.  A tool of the site that is
    called as the one that fetches results stands in its place.
    """
    fetches = any(each.definition.task == OPTIONAL for each in tools) and all(
        each.identity != GET_TASK_RESULT for each in tools
    )
    if not (fetches or server.uses_search):
        return []
    tags = frozenset[str]().union(*(each.definition.tags for each in tools))
    own = [*search_tools(tags)] if server.uses_search else []
    if fetches:
        own.append(result_tool(tags))
    return [each for each in own if each.identity not in mcp_settings.disabled_tools]
