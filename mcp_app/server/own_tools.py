"""Our own tools, which a server has in addition to those of the site."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mcp_app.catalog.outputs import content_output
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.snapshot import EventEntry, ResourceEntry, ToolEntry, tool_entry
from mcp_app.conf import mcp_settings
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.server import (
    GET_TASK_RESULT,
    READ_SKILL,
    WAIT_FOR_EVENT,
    ServerDefinition,
)
from mcp_app.protocol.tasks import OPTIONAL
from mcp_app.server.event_waiting import EVENT_TOOL
from mcp_app.server.searching import SEARCHING_TOOLS
from mcp_app.server.skill_reading import SKILL_TOOL
from mcp_app.server.waiting import RESULT_TOOL


def own_tools(
    server: ServerDefinition,
    tools: Sequence[ToolEntry],
    events: Sequence[EventEntry],
    skills: Sequence[ResourceEntry] = (),
) -> list[ToolEntry]:
    """Return our tools for a server with these definitions, and with their tags.

    `MCP["DISABLED_TOOLS"]` switches them off by name.  A tool of the site replaces ours
    with the same name, if ours fetches results, waits for events or reads skills.
    """
    names = {tool.identity for tool in tools}
    fetches = any(tool.definition.task_support == OPTIONAL for tool in tools)
    if not (fetches or events or skills or server.uses_search):
        return []
    tags = frozenset[str]().union(*(tool.definition.tags for tool in tools))
    search_tools = SEARCHING_TOOLS if server.uses_search else ()
    entries = [_make_entry(tags, *each) for each in search_tools]
    if fetches and GET_TASK_RESULT not in names:
        entries.append(_make_entry(tags, *RESULT_TOOL))
    if events and WAIT_FOR_EVENT not in names:
        tags = tags.union(*(event.definition.tags for event in events))
        entries.append(_make_entry(tags, *EVENT_TOOL))
    if skills and READ_SKILL not in names:
        tags = tags.union(*(skill.definition.tags for skill in skills))
        entries.append(_make_entry(tags, *SKILL_TOOL))
    disabled_tools = mcp_settings.disabled_tools
    return [entry for entry in entries if entry.identity not in disabled_tools]


def _make_entry(
    tags: frozenset[str], definition: ToolDefinition, run: Callable[..., Any]
) -> ToolEntry:
    runnable = Runnable(
        run=run,
        style="async",
        bind=lambda arguments: {"arguments": arguments},
        convert=content_output,
        ours=True,
    )
    return tool_entry(replace(definition, tags=tags), runnable)
