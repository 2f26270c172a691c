"""The answer of a text tool as its form shows it: a text, a file, or both.

Anything else (several texts, links, annotations) is edited as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_app.admin.editors.messages import (
    Message,
    is_media_type,
    message_of,
    messages_of,
)
from mcp_app.admin.editors.rows import NotRepresentable
from mcp_app.interface.rules import media_type_problem, uri_problem
from mcp_app.models import DefinitionRow, Resource, Tool
from mcp_app.protocol.json_types import JsonObject

# -- content ---------------------------------------------------------------------------
# Configs that are one text, as the text box of a form shows them.


def config_of_text(model: type[DefinitionRow], text: str) -> JsonObject:
    """Return the config that answers with one text."""
    if model is Tool:
        return {"content": [{"type": "text", "text": text}]}
    return {"text": text}


def text_of_config(model: type[DefinitionRow], config: JsonObject) -> str | None:
    """Return the text of a config that consists of just one text, else None."""
    text = _first_text(config)
    if text is None or config_of_text(model, text) != config:
        return None
    return text


def needs_json(model: type[DefinitionRow], config: JsonObject | None) -> bool:
    """Return whether the easy fields of a form cannot show a config."""
    if not config or (model is Resource and config.keys() == {"upload"}):
        return False
    if model is Tool:
        return parts_of_config(config) is None
    return text_of_config(model, config) is None


def _first_text(value: object) -> str | None:
    """Return the first member `text` that is a string, at any depth."""
    if isinstance(value, dict):
        text = value.get("text")
        return text if isinstance(text, str) else _first_text(list(value.values()))
    if isinstance(value, list):
        texts = map(_first_text, value)
        return next((text for text in texts if text is not None), None)
    return None


# -- text answer -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parts:
    """`text` is "" if there is none; `file` is one message with an upload."""

    text: str = ""
    file: Message | None = None


def config_of(parts: Parts) -> JsonObject:
    """Return the config that answers with these parts, the text first."""
    rows = [Message(text=parts.text)] if parts.text else []
    if parts.file is not None:
        rows.append(parts.file)
    return {"content": [message_of(row)["content"] for row in rows]}


def parts_of_config(config: Mapping[str, Any]) -> Parts | None:
    """Return the parts of a config; None if the form cannot show all of it."""
    blocks = config.get("content")
    if not isinstance(blocks, list):
        return None
    try:
        rows = messages_of({"messages": [{"content": block} for block in blocks]})
    except NotRepresentable:
        return None
    text = "".join(row.text for row in rows if row.kind == "text")
    file = next((row for row in rows if row.kind != "text"), None)
    parts = Parts(text, file)
    if not rows or (file is not None and not _is_acceptable_file(file)):
        return None
    return parts if config_of(parts) == config else None


def _is_acceptable_file(file: Message) -> bool:
    """Return whether the form would accept this file; it allows no placeholders."""
    if not file.upload or media_type_problem(file.mime_type):
        return False
    if file.kind == "file":
        return is_media_type(file.mime_type)
    return uri_problem(file.uri) is None
