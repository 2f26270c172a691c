"""Simple configs, as the text box of a form shows them.

Anything beyond one text (several blocks, images) is edited as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcp_app.admin.editors.text_answer import parts_of
from mcp_app.models import DefinitionRow, Resource, ResourceTemplate, Tool
from mcp_app.protocol.json_types import JsonObject


def _tool(text: str) -> JsonObject:
    return {"content": [{"type": "text", "text": text}]}


def _plain(text: str) -> JsonObject:
    return {"text": text}


CONFIGS: Mapping[type[DefinitionRow], Callable[[str], JsonObject]] = {
    Tool: _tool,
    Resource: _plain,
    ResourceTemplate: _plain,
}


def config_of_text(model: type[DefinitionRow], text: str) -> JsonObject:
    """Return the config that answers with one text."""
    return CONFIGS[model](text)


def text_of_config(model: type[DefinitionRow], config: JsonObject) -> str | None:
    """Return the text of a config that consists of just one text, else None."""
    text = _first_text(config)
    if text is None or CONFIGS[model](text) != config:
        return None
    return text


def needs_json(model: type[DefinitionRow], config: JsonObject | None) -> bool:
    """Return whether the easy fields of a form cannot show a config."""
    if not config or (model is Resource and config.keys() == {"upload"}):
        return False
    if model is Tool:
        return parts_of(config) is None
    return text_of_config(model, config) is None


def _first_text(value: object) -> str | None:
    """Return the first member `text` that is a string, at any depth."""
    if isinstance(value, dict):
        text = value.get("text")
        return text if isinstance(text, str) else _first_text(list(value.values()))
    if isinstance(value, list):
        found = map(_first_text, value)
        return next((text for text in found if text is not None), None)
    return None
