"""Contents of rows, and what is told of two of them."""

from __future__ import annotations

from typing import Any

from mcp_app.catalog.registry import mcp
from mcp_app.models import Prompt
from mcp_app.protocol.jsonrpc import pretty_text
from mcp_app.publishing.differences import ClientView, client_view, differences

TEXT_PART = {"type": "text", "text": "a"}
IMAGE = {"type": "image", "upload": "ab", "mimeType": "image/png"}
PDF = {
    "type": "resource",
    "resource": {"uri": "x:p", "mimeType": "a/b", "upload": "cd"},
}
TEXT = {"type": "string"}


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {
        "input_schema": {
            "type": "object",
            "properties": properties,
            "required": list(required),
        }
    }


def as_told(part: str, before: Any, after: Any) -> tuple[str, str | None, str | None]:
    """Return a part with its values: what is no text stands there as JSON."""
    was, now = (
        each if each is None or isinstance(each, str) else pretty_text(each)
        for each in (before, after)
    )
    return part, was, now


def shown(content: Any) -> ClientView:
    """Return a content that answers with a text."""
    return client_view(Prompt(name="a"), content, mcp)


def told(before: Any, after: Any) -> list[tuple[str, str | None, str | None]]:
    found = differences(shown(before), shown(after))
    return [(each.part or each.field, each.before, each.after) for each in found]
