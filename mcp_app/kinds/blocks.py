"""Content blocks from the JSON of a config.

The JSON is the protocol's (server/tools, "Tool Result"), of the types text, image,
audio, resource and resource_link.  Bytes are base64 (`data`, or `blob` of an embedded
resource), or `"upload": "<digest>"` names uploaded content.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from mcp_app.interface.definitions import annotations_from_json, icons_from_json
from mcp_app.interface.rules import uri_problem, visible
from mcp_app.kinds.kind import KindError, Uploads, refuse_unknown_members
from mcp_app.protocol.content import (
    Audio,
    Block,
    EmbeddedResource,
    Image,
    ResourceContents,
    ResourceLink,
    Text,
)
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import pretty_text

_EVERY = ("type", "annotations", "_meta")
"""Members that a block of any type may have."""


def block_from_json(value: object, uploads: Uploads) -> Block:
    """Read a content block; `KindError` says what is wrong."""
    block = require_object(value, "A content block")
    maker = _MAKERS.get(str(block.get("type")))
    if maker is None:
        raise KindError(
            f"The type of a content block must be one of {', '.join(_MAKERS)}."
        )
    try:
        return maker(block, uploads)
    except ValueError as error:
        raise KindError(str(error)) from None


def block_words(block: Any) -> str:
    """Return a block as a text for people: its text, its file, or else its JSON."""
    if isinstance(block, dict) and block.keys() == {"type", "text"}:
        return str(block["text"])
    inside = block
    if isinstance(block, dict) and block.keys() == {"type", "resource"}:
        inside = block["resource"]
    if isinstance(inside, dict) and "upload" in inside and inside.keys() <= _FILE:
        parts = [str(inside[name]) for name in ("mimeType", "uri") if name in inside]
        parts.append(_("fingerprint %(digest)s") % {"digest": inside["upload"]})
        return _("File: %(about)s") % {"about": ", ".join(parts)}
    return pretty_text(block)


_FILE = frozenset({"type", "uri", "mimeType", "upload"})
"""The members of a block that has no contents but an uploaded file."""


def require_object(value: object, what: str) -> JsonObject:
    """Return the value if it is a JSON object; raise otherwise."""
    if not isinstance(value, dict):
        raise KindError(f"{what} must be a JSON object.")
    return value


def text_member(value: JsonObject, name: str) -> str:
    """Return a member that must be a text."""
    text = value.get(name)
    if not isinstance(text, str):
        raise KindError(f"“{name}” is missing, or is not a text.")
    return text


def content_bytes(value: JsonObject, name: str, uploads: Uploads) -> bytes:
    """Return the bytes of the base64 member `name`, or of an upload."""
    if "upload" not in value:
        text = text_member(value, name)
        try:
            return b64decode(text, validate=True)
        except ValueError:
            raise KindError(f"“{name}” is not base64.") from None
    if name in value:
        raise KindError(f"Give either “{name}” or “upload”, not both.")
    digest = text_member(value, "upload")
    try:
        return uploads[digest]
    except KeyError:
        raise KindError(f"No uploaded file has the digest {visible(digest)}.") from None


def _valid_uri_member(value: JsonObject) -> str:
    uri = text_member(value, "uri")
    if problem := uri_problem(uri):
        raise KindError(problem)
    return uri


def _optional_text(value: JsonObject, name: str) -> str | None:
    return text_member(value, name) if name in value else None


def _extra_members(block: JsonObject) -> dict[str, Any]:
    annotations, meta = block.get("annotations"), block.get("_meta")
    extras: dict[str, Any] = {}
    if annotations is not None:
        extras["annotations"] = annotations_from_json(annotations)
    if meta is not None:
        extras["meta"] = require_object(meta, "“_meta”")
    return extras


def _text_block(block: JsonObject, uploads: Uploads) -> Block:
    refuse_unknown_members(block, *_EVERY, "text")
    return Text(text_member(block, "text"), **_extra_members(block))


def _media_block(block: JsonObject, uploads: Uploads) -> Block:
    refuse_unknown_members(block, *_EVERY, "data", "upload", "mimeType")
    data = content_bytes(block, "data", uploads)
    kind = Image if block["type"] == "image" else Audio
    return kind(data, text_member(block, "mimeType"), **_extra_members(block))


def _resource_block(block: JsonObject, uploads: Uploads) -> Block:
    refuse_unknown_members(block, *_EVERY, "resource")
    inner = require_object(block.get("resource"), "“resource”")
    refuse_unknown_members(inner, "uri", "mimeType", "text", "blob", "upload", "_meta")
    has_bytes = "blob" in inner or "upload" in inner
    contents = ResourceContents(
        uri=_valid_uri_member(inner),
        text=_optional_text(inner, "text"),
        blob=content_bytes(inner, "blob", uploads) if has_bytes else None,
        mime_type=_optional_text(inner, "mimeType"),
        **_extra_members(inner),
    )
    return EmbeddedResource(contents, **_extra_members(block))


def _resource_link(block: JsonObject, uploads: Uploads) -> Block:
    members = ("uri", "name", "title", "description", "mimeType", "size", "icons")
    refuse_unknown_members(block, *_EVERY, *members)
    icons, size = block.get("icons"), block.get("size")
    if size is not None and (type(size) is not int or size < 0):
        raise KindError("“size” must be a whole number of bytes.")
    return ResourceLink(
        uri=_valid_uri_member(block),
        name=text_member(block, "name"),
        title=_optional_text(block, "title"),
        description=_optional_text(block, "description"),
        mime_type=_optional_text(block, "mimeType"),
        size=size,
        icons=None if icons is None else icons_from_json(icons),
        **_extra_members(block),
    )


_MAKERS: Mapping[str, Callable[[JsonObject, Uploads], Block]] = {
    "text": _text_block,
    "image": _media_block,
    "audio": _media_block,
    "resource": _resource_block,
    "resource_link": _resource_link,
}
