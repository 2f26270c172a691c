"""What code declares, with what staff changed about it laid over it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from mcp_app.catalog.row_loader import demands_of, hints_of, tags_of
from mcp_app.interface.definitions import Definition, ToolDefinition
from mcp_app.protocol.json_types import JsonObject

AnyDefinition = TypeVar("AnyDefinition", bound=Definition)

_REPLACED = ("title", "description", "timeout", "position")


def apply_overlay(definition: AnyDefinition, content: JsonObject) -> AnyDefinition:
    """Return a definition from code with the published content of its overlay.

    What the content does not name is as in code; what is demanded is so in addition.
    """
    changes: dict[str, Any] = {
        name: content[name] for name in _REPLACED if name in content
    }
    if "tags" in content:
        changes["tags"] = tags_of(content)
    demands = definition.demands.combined_with(demands_of(content))
    if demands != definition.demands:
        changes["demands"] = demands
    if isinstance(definition, ToolDefinition):
        changes["hints"] = hints_of(content, definition.hints)
        own = definition.calls_per_minute
        changes["calls_per_minute"] = content.get("calls_per_minute", own)
    return replace(definition, **changes)
