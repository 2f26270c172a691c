"""Content blocks, icons and annotations, and their form in each revision.

A block that a revision does not know becomes a text block that says the same
(server/tools and server/prompts of each revision).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from mcp_app.protocol.results import check_meta

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.protocol.revisions import Revision

Role = Literal["user", "assistant"]
Theme = Literal["light", "dark"]

_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(?:\s*;.*)?", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+")


def _check_uri(uri: str) -> None:
    if not _URI.fullmatch(uri):
        raise ValueError(f"{uri[:200]!r} is not an absolute URI (RFC 3986).")


def _without_none(**members: object) -> JsonObject:
    return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Icon:
    """`src` is an https or data URI; `sizes` are like "48x48" or "any"."""

    src: str
    mime_type: str | None = None
    sizes: Sequence[str] | None = None
    theme: Theme | None = None

    def __post_init__(self) -> None:
        # Clients must refuse every other scheme (basic, "Icons").
        if not self.src.startswith(("https://", "data:image/")):
            raise ValueError(
                "The src of an icon must be an https: or data:image/ URI, not"
                f" {self.src[:80]!r}."
            )

    def to_wire(self) -> JsonObject:
        return _without_none(
            src=self.src,
            mimeType=self.mime_type,
            sizes=None if self.sizes is None else list(self.sizes),
            theme=self.theme,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """`priority` is from 0 to 1; `last_modified` is ISO 8601."""

    audience: Sequence[Role] | None = None
    priority: float | None = None
    last_modified: str | None = None

    def to_wire(self) -> JsonObject:
        return _without_none(
            audience=list(self.audience) if self.audience is not None else None,
            priority=self.priority,
            lastModified=self.last_modified,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The members that all content blocks share."""

    type: ClassVar[str]
    annotations: Annotations | None = None
    meta: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        if self.meta is not None:
            check_meta(self.meta)

    def members(self, revision: Revision) -> JsonObject:
        """Return the block's own members in that revision."""
        raise TypeError(f"{type(self).__name__} is abstract.")

    def as_text(self) -> str:
        """Return the content as text, for a revision that does not know this type."""
        raise TypeError(f"{type(self).__name__} is abstract.")


@dataclass(frozen=True, slots=True)
class Text(Block):
    """Plain text."""

    type = "text"
    text: str

    def members(self, revision: Revision) -> JsonObject:
        return {"text": self.text}

    def as_text(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class _Media(Block):
    data: bytes
    mime_type: str

    def __post_init__(self) -> None:
        Block.__post_init__(self)
        if not _MEDIA_TYPE.fullmatch(self.mime_type):
            raise ValueError(
                f"{self.mime_type!r} is not a media type such as image/png."
            )

    def members(self, revision: Revision) -> JsonObject:
        return {"data": b64encode(self.data).decode(), "mimeType": self.mime_type}

    def as_text(self) -> str:
        return f"data:{self.mime_type};base64,{b64encode(self.data).decode()}"


@dataclass(frozen=True, slots=True)
class Image(_Media):
    """Bytes of an image; base64 on the wire."""

    type = "image"


@dataclass(frozen=True, slots=True)
class Audio(_Media):
    """Bytes of a recording; base64 on the wire."""

    type = "audio"


@dataclass(frozen=True, slots=True)
class ResourceLink(Block):
    """A resource that the client may read; `size` is in bytes."""

    type = "resource_link"
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: Sequence[Icon] | None = None

    def __post_init__(self) -> None:
        Block.__post_init__(self)
        _check_uri(self.uri)

    def members(self, revision: Revision) -> JsonObject:
        members = _without_none(
            uri=self.uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mimeType=self.mime_type,
            size=self.size,
            icons=[icon.to_wire() for icon in self.icons] if self.icons else None,
        )
        return revision.known_members("block", members)

    def as_text(self) -> str:
        label = self.title or self.name
        described = f": {self.description}" if self.description else ""
        return f"{label} <{self.uri}>{described}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceContents:
    """Contents of a resource: exactly one of `text` and `blob` (bytes)."""

    uri: str
    text: str | None = None
    blob: bytes | None = None
    mime_type: str | None = None
    meta: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        _check_uri(self.uri)
        if self.meta is not None:
            check_meta(self.meta)
        if (self.text is None) == (self.blob is None):
            raise ValueError(
                f"The contents of {self.uri} need either text or blob, not both."
            )

    def to_wire(self, revision: Revision) -> JsonObject:
        members = _without_none(
            uri=self.uri,
            mimeType=self.mime_type,
            text=self.text,
            blob=None if self.blob is None else b64encode(self.blob).decode(),
            _meta=self.meta,
        )
        return revision.known_members("contents", members)


@dataclass(frozen=True, slots=True)
class EmbeddedResource(Block):
    """A resource's contents inside a message."""

    type = "resource"
    resource: ResourceContents

    def members(self, revision: Revision) -> JsonObject:
        return {"resource": _embedded_members(self.resource, revision)}

    def as_text(self) -> str:
        return self.resource.text or f"<{self.resource.uri}>"


@dataclass(frozen=True, slots=True)
class ToolUse(Block):
    """Sampling: the model wants a tool to be called (client/sampling)."""

    type = "tool_use"
    id: str
    name: str
    input: Mapping[str, object]

    def members(self, revision: Revision) -> JsonObject:
        return {"id": self.id, "name": self.name, "input": dict(self.input)}

    def as_text(self) -> str:
        return f"[tool use {self.id}: {self.name}]"


@dataclass(frozen=True, slots=True)
class ToolResult(Block):
    """Sampling: the result of a tool that the model asked to call."""

    type = "tool_result"
    tool_use_id: str
    content: Sequence[Block]
    structured: Mapping[str, object] | None = None
    is_error: bool = False

    def members(self, revision: Revision) -> JsonObject:
        return _without_none(
            toolUseId=self.tool_use_id,
            content=[block_to_wire(inner, revision) for inner in self.content],
            structuredContent=self.structured,
            isError=self.is_error or None,
        )

    def as_text(self) -> str:
        inner_text = "\n".join(block.as_text() for block in self.content)
        return f"[tool result {self.tool_use_id}]\n{inner_text}"


def block_to_wire(block: Block, revision: Revision) -> JsonObject:
    """Return a block as a member of `content` in that revision."""
    if type(block) is Text and block.annotations is None and block.meta is None:
        return {"type": "text", "text": block.text}
    return _wire_members(block, revision, revision.content)


def sampling_block_to_wire(block: Block, revision: Revision) -> JsonObject:
    """Return a block as content of a sampling message in that revision."""
    return _wire_members(block, revision, revision.sampling_content)


def _wire_members(
    block: Block, revision: Revision, known: frozenset[str]
) -> JsonObject:
    if block.type not in known:
        block = Text(block.as_text(), annotations=block.annotations, meta=block.meta)
    wire = {"type": block.type, **block.members(revision)}
    if block.annotations is not None:
        wire["annotations"] = revision.known_members(
            "annotations", block.annotations.to_wire()
        )
    if block.meta is not None and "_meta" in revision.fields["block"]:
        wire["_meta"] = dict(block.meta)
    return wire


def _embedded_members(contents: ResourceContents, revision: Revision) -> JsonObject:
    """Return contents with a media type, because no list has shown it before."""
    kind = "application/octet-stream" if contents.text is None else "text/plain"
    return {"mimeType": kind, **contents.to_wire(revision)}
