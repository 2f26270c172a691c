"""The answer of a text tool as its form shows it: a text, a file, or both.

Anything else (several texts, links, annotations) is edited as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_app.admin.editors.not_representable import NotRepresentable
from mcp_app.admin.editors.prompts.messages import (
    Message,
    is_media,
    message_of,
    messages_of,
)
from mcp_app.interface.rules import media_type_problem, uri_problem
from mcp_app.protocol.json_types import JsonObject


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


def parts_of(config: Mapping[str, Any]) -> Parts | None:
    """Return the parts of a config; None if the form cannot show all of it."""
    blocks = config.get("content")
    if not isinstance(blocks, list):
        return None
    try:
        rows = messages_of({"messages": [{"content": block} for block in blocks]})
    except NotRepresentable:
        return None
    parts = _shown(rows)
    return parts if parts and config_of(parts) == config else None


def _shown(rows: Sequence[Message]) -> Parts | None:
    text = rows[0].text if rows and rows[0].kind == "text" else ""
    files = rows[1:] if text else rows
    if not files:
        return Parts(text) if text else None
    return Parts(text, files[0]) if len(files) == 1 and _fits(files[0]) else None


def _fits(file: Message) -> bool:
    """Return whether the form would accept this file; it allows no placeholders."""
    if not file.upload or media_type_problem(file.mime_type):
        return False
    if file.kind == "file":
        return is_media(file.mime_type)
    return uri_problem(file.uri) is None
