"""The messages of a prompt as rows, and back, without loss.

A row is one message: a text, an image or audio file, the contents of a resource, or a
link to one. Anything else raises `NotRepresentable`, and staff edit it as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any, Final

from django.utils.translation import gettext

from mcp_app.admin.editors.rows import NotRepresentable
from mcp_app.protocol.json_types import JsonObject

KINDS: Final = ("text", "file", "contents", "link")
MEDIA: Final = ("image", "audio")
"""Media types that a file in a message may have, without their subtypes."""
MAX_MESSAGES: Final = 40

_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": ("upload", "mimeType"),
    "audio": ("upload", "mimeType"),
    "resource": ("resource",),
    "resource_link": ("uri", "name", "title", "description", "mimeType"),
}
_CONTENTS: Final = ("uri", "mimeType", "text", "upload")


@dataclass(frozen=True, slots=True)
class Message:
    """One row; `upload` is the digest of a file, `was` the index that was shown."""

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
    """Return whether such a file is a block of its own, which needs no URI."""
    return media_type.partition("/")[0] in MEDIA


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
    return [
        _parse_message(item, number, f"message {number + 1}")
        for number, item in enumerate(messages)
    ]


def _parse_message(item: object, number: int, where: str) -> Message:
    message = _checked_members(item, ("role", "content"), where)
    role = message.get("role", "user")
    if role not in ("user", "assistant"):
        raise NotRepresentable(f"role in {where}")
    content = message.get("content")
    kind = str(content.get("type")) if isinstance(content, dict) else ""
    if kind not in _MEMBERS:
        raise NotRepresentable(f"type in {where}")
    block = _checked_members(content, ("type", *_MEMBERS[kind]), where)
    if kind == "resource":
        inner = _checked_members(block.get("resource"), _CONTENTS, where)
        if "text" in inner and "upload" in inner:
            raise NotRepresentable(f"text and upload in {where}")
        return _message_row(inner, role, "contents", number, where)
    names = {"text": "text", "resource_link": "link"}
    return _message_row(block, role, names.get(kind, "file"), number, where)


def _checked_members(value: object, known: tuple[str, ...], where: str) -> JsonObject:
    if not isinstance(value, dict):
        raise NotRepresentable(where)
    for member in value:
        if member not in known:
            raise NotRepresentable(f"{member} in {where}")
    return value


def _message_row(
    block: JsonObject, role: str, kind: str, number: int, where: str
) -> Message:
    def member_text(member: str) -> str:
        value = block.get(member, "")
        if not isinstance(value, str) or "\r" in value:
            raise NotRepresentable(f"{member} in {where}")
        if member != "text" and (value != value.strip() or "\n" in value):
            raise NotRepresentable(f"{member} in {where}")
        return value

    return Message(
        role=role,
        kind=kind,
        text=member_text("text"),
        upload=member_text("upload"),
        mime_type=member_text("mimeType"),
        uri=member_text("uri"),
        name=member_text("name"),
        title=member_text("title"),
        description=member_text("description"),
        was=str(number),
    )


def config_of(
    rows: Iterable[Message], base: Mapping[str, Any] | None = None
) -> JsonObject:
    """Return the config of rows; a row that equals its one in `base` keeps its JSON."""
    before = base.get("messages", []) if base else []
    base_rows = messages_of(base) if base else []
    known = {row.was: (row, before[int(row.was)]) for row in base_rows}
    return {"messages": [_unchanged_or_new(row, known) for row in rows]}


def _unchanged_or_new(
    row: Message, known: Mapping[str, tuple[Message, JsonObject]]
) -> JsonObject:
    known_row, message = known.get(row.was, (None, {}))
    return message if known_row == row else message_of(row)


def replaced_files(
    before: Sequence[Message], after: Sequence[Message]
) -> Mapping[str, tuple[Message, Message]]:
    """Return the old and new rows whose file was replaced, by the old `was`.

    Rows may have been added or removed meanwhile; a diff that ignores files pairs them.
    """
    pairs = {}
    for old, new in _same_rows(before, after):
        if old.upload and new.upload and old.upload != new.upload:
            pairs[old.was] = (old, new)
    return pairs


def _same_rows(
    before: Sequence[Message], after: Sequence[Message]
) -> Iterator[tuple[Message, Message]]:
    one, other = (
        [replace(row, upload="", mime_type="") for row in rows]
        for rows in (before, after)
    )
    matcher = SequenceMatcher(a=one, b=other, autojunk=False)
    for what, *spans in matcher.get_opcodes():
        old, new = before[slice(*spans[:2])], after[slice(*spans[2:])]
        if what in ("equal", "replace") and len(old) == len(new):
            yield from zip(old, new, strict=True)


def message_of(row: Message) -> JsonObject:
    """Return the JSON of one row."""
    return {"role": row.role, "content": _content_block(row)}


def _content_block(row: Message) -> JsonObject:
    if row.kind == "text":
        return {"type": "text", "text": row.text}
    if row.kind == "file":
        kind = row.mime_type.partition("/")[0]
        kind = kind if kind in MEDIA else "image"
        return {"type": kind, "upload": row.upload, "mimeType": row.mime_type}
    if row.kind == "contents":
        inside = _without_empty(uri=row.uri, mimeType=row.mime_type)
        content = {"upload": row.upload} if row.upload else {"text": row.text}
        return {"type": "resource", "resource": {**inside, **content}}
    return {
        "type": "resource_link",
        **_without_empty(
            uri=row.uri,
            name=row.name,
            title=row.title,
            description=row.description,
            mimeType=row.mime_type,
        ),
    }


def _without_empty(**members: str) -> JsonObject:
    return {name: value for name, value in members.items() if value}
