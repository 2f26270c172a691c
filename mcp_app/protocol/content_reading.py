"""Read content blocks from outside: clients' answers, other servers' results."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar, get_args

from mcp_app.protocol.content import (
    Annotations,
    Audio,
    Block,
    EmbeddedResource,
    Image,
    ResourceContents,
    ResourceLink,
    Role,
    Text,
    ToolResult,
    ToolUse,
)
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.results import ReceivedMeta

Value = TypeVar("Value")


def read_block(wire: object) -> Block:
    """Return a content block from JSON; raise ValueError if it is none.

    Unknown members are left out.
    """
    if type(wire) is not dict:
        raise ValueError("Content must be an object with a type.")
    try:
        block = _BLOCKS[str(wire.get("type"))](wire)
        return replace(
            block,
            meta=_meta(wire),
            annotations=_annotations(_optional(wire, "annotations", dict)),
        )
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"Content of type {wire.get('type')!r} is not allowed by the protocol."
        ) from None


def _member(wire: JsonObject, name: str, kind: type[Value]) -> Value:
    value = wire[name]
    if type(value) is not kind:
        raise TypeError(name)
    return value


def _optional(wire: JsonObject, name: str, kind: type[Value]) -> Value | None:
    return None if wire.get(name) is None else _member(wire, name, kind)


def _meta(wire: JsonObject) -> ReceivedMeta | None:
    meta = wire.get("_meta")
    return ReceivedMeta(meta) if isinstance(meta, dict) else None


def _annotations(wire: JsonObject | None) -> Annotations | None:
    if wire is None:
        return None
    audience, priority = _optional(wire, "audience", list), wire.get("priority")
    if not {*(audience or ())} <= {*get_args(Role)}:
        raise ValueError("audience")
    if priority is not None and (
        type(priority) not in (int, float) or not 0 <= priority <= 1
    ):
        raise ValueError("priority")
    return Annotations(
        audience=audience,
        priority=priority,
        last_modified=_optional(wire, "lastModified", str),
    )


def _text(wire: JsonObject, name: str) -> str:
    return _member(wire, name, str)


def _bytes(wire: JsonObject, name: str) -> bytes:
    return b64decode(_text(wire, name), validate=True)


def _embedded_resource(wire: JsonObject) -> EmbeddedResource:
    resource: JsonObject = _member(wire, "resource", dict)
    return EmbeddedResource(
        ResourceContents(
            uri=_text(resource, "uri"),
            text=_text(resource, "text") if "text" in resource else None,
            blob=_bytes(resource, "blob") if "blob" in resource else None,
            mime_type=_optional(resource, "mimeType", str),
            meta=_meta(resource),
        )
    )


def _resource_link(wire: JsonObject) -> ResourceLink:
    return ResourceLink(
        _text(wire, "uri"),
        _text(wire, "name"),
        title=_optional(wire, "title", str),
        description=_optional(wire, "description", str),
        mime_type=_optional(wire, "mimeType", str),
        size=_optional(wire, "size", int),
    )


def _tool_result(wire: JsonObject) -> ToolResult:
    return ToolResult(
        _text(wire, "toolUseId"),
        [read_block(each) for each in wire["content"]],
        _optional(wire, "structuredContent", dict),
        bool(wire.get("isError")),
    )


_BLOCKS: Mapping[str, Callable[[JsonObject], Block]] = {
    "text": lambda wire: Text(_text(wire, "text")),
    "image": lambda wire: Image(_bytes(wire, "data"), _text(wire, "mimeType")),
    "audio": lambda wire: Audio(_bytes(wire, "data"), _text(wire, "mimeType")),
    "resource": _embedded_resource,
    "resource_link": _resource_link,
    "tool_use": lambda wire: ToolUse(
        _text(wire, "id"), _text(wire, "name"), _member(wire, "input", dict)
    ),
    "tool_result": _tool_result,
}
