"""The tools of ours that a server has beside those of the site."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.conf import mcp_settings
from mcp_app.interface.server import ServerDefinition
from mcp_app.protocol.tasks import OPTIONAL
from mcp_app.server.searching import search_tools
from mcp_app.server.waiting import result_tool


def own_tools(
    server: ServerDefinition, tools: Sequence[ToolEntry], tags: frozenset[str]
) -> list[ToolEntry]:
    """Return our tools for a server that has these tools with these tags.

    `MCP["DISABLED_TOOLS"]` switches them off by name.  A tool of the site that is
    called as the one that fetches results stands in its place.
    """
    own = [*search_tools(tags)] if server.uses_search else []
    if any(each.definition.task == OPTIONAL for each in tools):
        result = result_tool(tags)
        if all(each.identity != result.identity for each in tools):
            own.append(result)
    return [each for each in own if each.identity not in mcp_settings.disabled_tools]
