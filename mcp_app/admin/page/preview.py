"""Content of clients' answers as a page shows it: text, a picture, or a note.

All of it is plain text, which templates escape (SECURITY.md, stored XSS).
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, replace
from typing import Final

from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.protocol.content import (
    Audio,
    Block,
    EmbeddedResource,
    Image,
    ResourceLink,
    Text,
)

MAX_CHARACTERS: Final = 64 * 1024
MAX_PICTURE_BYTES: Final = 2 * 1024 * 1024
PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif")
"""Media types in which no browser runs scripts; SVG is shown as text."""
_TEXTS: Final = ("application/json", "application/xml", "image/svg+xml")


@dataclass(frozen=True, slots=True)
class Look:
    """One content as a page shows it; `picture` is a data URI."""

    text: str = ""
    picture: str = ""
    note: str = ""
    tokens: int = 0
    is_cut: bool = False


def look_of_content(content: str | bytes, media_type: str) -> Look:
    """Return the preview of a resource's contents."""
    if isinstance(content, str):
        return _text_look(content)
    bare = media_type.partition(";")[0].strip()
    if bare.startswith("text/") or bare in _TEXTS:
        return _text_look(content.decode(errors="replace"))
    values = {"type": visible(media_type), "size": filesizeformat(len(content))}
    note = _("%(type)s, %(size)s") % values
    if media_type in PICTURES and len(content) <= MAX_PICTURE_BYTES:
        encoded = b64encode(content).decode()
        return Look(picture=f"data:{media_type};base64,{encoded}", note=note)
    return Look(note=note)


def look_of_block(block: Block) -> Look:
    """Return the preview of one block of a message or an answer."""
    if isinstance(block, Text):
        return _text_look(block.text)
    if isinstance(block, Image | Audio):
        return look_of_content(block.data, block.mime_type)
    if isinstance(block, EmbeddedResource):
        inner = block.resource
        content = (inner.blob if inner.text is None else inner.text) or ""
        look = look_of_content(content, inner.mime_type or "application/octet-stream")
        note = _("Contents of %(uri)s") % {"uri": inner.uri}
        return replace(look, note=", ".join(filter(None, (note, look.note))))
    if isinstance(block, ResourceLink):
        note = _("Link to %(uri)s") % {"uri": block.uri}
        return Look(text=visible(block.as_text()), note=note)
    return _text_look(block.as_text())


def _text_look(text: str) -> Look:
    return Look(
        text=visible(text[:MAX_CHARACTERS], None),
        # An estimate: about 4 characters each, rounded up.
        tokens=-(-len(text) // 4),
        is_cut=len(text) > MAX_CHARACTERS,
    )
