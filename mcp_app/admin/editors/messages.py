"""The messages of a prompt as rows, and back, without loss.

A row is one message: a text, an image or audio file, the contents of a resource, or a
link to one. Anything else raises `NotRepresentable`, and staff edit it as JSON. The
answer of a text tool has the same rows: a text, a file, or both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext

from mcp_app.admin.editors.rows import (
    NotRepresentable,
    area_text,
    check_same,
    stored_or_written,
)
from mcp_app.interface.rules import media_type_problem, uri_problem
from mcp_app.protocol.json_types import JsonObject

MESSAGE_MEDIA: Final = ("image", "audio")
"""Media types that a file in a message may have, without their subtypes."""
MAX_MESSAGES: Final = 40

_EMPTY: Final = {"role": "user"}
"""Members with the values that mean the same as a missing member."""
_MEMBERS: Final = {
    "upload": "upload",
    "mime_type": "mimeType",
    "uri": "uri",
    "name": "name",
    "title": "title",
    "description": "description",
}
"""Attributes of a `Message` that are one line, and the JSON members for them."""


@dataclass(frozen=True, slots=True)
class Message:
    """One row; `upload` is the digest of a file, `was` the index in the stored list."""

    role: str = "user"
    kind: str = "text"
    text: str = ""
    upload: str = ""
    mime_type: str = ""
    uri: str = ""
    name: str = ""
    title: str = ""
    description: str = ""
    was: str = field(default="", compare=False)


def is_media_type(media_type: str) -> bool:
    """Return whether a file of this type is an image or audio block, without a URI."""
    return media_type.partition("/")[0] in MESSAGE_MEDIA


def messages_of(config: Mapping[str, Any]) -> list[Message]:
    """Return the rows that show the config of a prompt; raise `NotRepresentable`."""
    if not isinstance(config, dict):
        raise NotRepresentable(gettext("it is not a JSON object"))
    for member in config:
        if member != "messages":
            raise NotRepresentable(member)
    messages = config.get("messages", [])
    if not isinstance(messages, list):
        raise NotRepresentable("messages")
    if len(messages) > MAX_MESSAGES:
        raise NotRepresentable(f"{len(messages)} messages")
    return [_parse_message(item, number) for number, item in enumerate(messages)]


def _parse_message(item: Any, number: int) -> Message:
    block: Any
    where = f"message {number + 1}"
    match item:
        case {"content": {"type": "text", **block}}:
            kind = "text"
        case {"content": {"type": "image" | "audio", **block}}:
            kind = "file"
        case {"content": {"type": "resource", "resource": {**block}}}:
            kind = "contents"
        case {"content": {"type": "resource_link", **block}}:
            kind = "link"
        case _:
            raise NotRepresentable(where)
    texts = {
        column: area_text(block.get(member, "")).replace("\n", " ")
        for column, member in _MEMBERS.items()
    }
    texts["text"] = str(block.get("text", "")).replace("\r", "")
    role = "assistant" if item.get("role") == "assistant" else "user"
    row = Message(role=role, kind=kind, was=str(number), **texts)
    check_same(item, message_of(row), _EMPTY, where)
    return row


def config_of(
    rows: Iterable[Message], base: Mapping[str, Any] | None = None
) -> JsonObject:
    """Return the config of rows; a row with the same meaning keeps its JSON."""
    before = (base or {}).get("messages", ())
    stored_messages = {str(number): message for number, message in enumerate(before)}
    return {
        "messages": [
            stored_or_written(stored_messages.get(row.was, {}), message_of(row), _EMPTY)
            for row in rows
        ]
    }


def message_of(row: Message) -> JsonObject:
    """Return the JSON of one row."""
    lines = {
        member: getattr(row, column)
        for column, member in _MEMBERS.items()
        if getattr(row, column)
    }
    content: JsonObject = {"type": "resource_link", **lines}
    if row.kind == "text":
        content = {"type": "text", "text": row.text}
    elif row.kind == "file":
        kind = row.mime_type.partition("/")[0]
        kind = kind if kind in MESSAGE_MEDIA else "image"
        content = {"type": kind, "upload": row.upload, "mimeType": row.mime_type}
    elif row.kind == "contents":
        text = {} if row.upload else {"text": row.text}
        content = {"type": "resource", "resource": {**lines, **text}}
    return {"role": row.role, "content": content}


def config_of_answer(text: str, file: Message | None) -> JsonObject:
    """Return the config of a tool that answers with these, the text first."""
    rows = [Message(text=text)] if text else []
    rows += [] if file is None else [file]
    return {"content": [message_of(row)["content"] for row in rows]}


def fields_of_answer(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return `text` and `file` of an answer; None if it has other content."""
    blocks = config.get("content")
    if not blocks or not isinstance(blocks, list):
        return None
    try:
        rows = messages_of({"messages": [{"content": block} for block in blocks]})
    except NotRepresentable:
        return None
    text = "".join(row.text for row in rows if row.kind == "text")
    file = next((row for row in rows if row.kind != "text"), None)
    is_whole = config_of_answer(text, file) == config
    is_usable = file is None or _is_acceptable_file(file)
    return {"text": text, "file": file} if is_whole and is_usable else None


def _is_acceptable_file(file: Message) -> bool:
    """Return whether the form would accept this file; it allows no placeholders."""
    if not file.upload or media_type_problem(file.mime_type):
        return False
    if file.kind == "file":
        return is_media_type(file.mime_type)
    return uri_problem(file.uri) is None
