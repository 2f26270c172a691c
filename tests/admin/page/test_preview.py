from __future__ import annotations

import pytest

from mcp_app.admin.page.preview import (
    MAX_CHARACTERS,
    MAX_PICTURE_BYTES,
    look_of_block,
    look_of_content,
)
from mcp_app.protocol.content import (
    Audio,
    Block,
    EmbeddedResource,
    Image,
    ResourceContents,
    ResourceLink,
    Text,
    ToolUse,
)

PNG = b"\x89PNG\r\n\x1a\n"
CONTENTS = ResourceContents(uri="x:a", text="b")
PICTURE = ResourceContents(uri="x:a", blob=PNG, mime_type="image/png")


def test_a_text_is_shown_from_its_beginning() -> None:
    assert look_of_content("abcde", "text/plain").tokens == 2
    look = look_of_content("x" * (MAX_CHARACTERS + 1), "text/plain")
    assert (len(look.text), look.is_cut) == (MAX_CHARACTERS, True)
    assert look.tokens == MAX_CHARACTERS // 4 + 1


def test_nothing_is_hidden() -> None:
    hidden = "pay\u202etxt\U000e0041"
    shown = "pay⟦U+202E⟧txt⟦U+E0041⟧"
    assert look_of_content(hidden, "text/plain").text == shown
    assert look_of_content(hidden.encode(), "text/plain").text == shown
    assert shown in look_of_content(b"\0", f"a/{hidden}").note
    contents = ResourceContents(uri="x:a", text=hidden)
    assert look_of_block(EmbeddedResource(contents)).text == shown


@pytest.mark.parametrize(
    "kind", ["text/html", "text/csv; charset=utf-8", "application/json"]
)
def test_text_in_a_file_is_text(kind: str) -> None:
    assert look_of_content(b"<b>\xff", kind).text == "<b>�"


def test_svg_is_text() -> None:
    look = look_of_content(b"<svg onload=alert(1)>", "image/svg+xml")
    assert (look.text, look.picture) == ("<svg onload=alert(1)>", "")


def test_a_picture_is_shown() -> None:
    look = look_of_content(PNG, "image/png")
    assert look.picture == "data:image/png;base64,iVBORw0KGgo="
    assert look.note.startswith("image/png, 8")
    assert look_of_content(b"x" * (MAX_PICTURE_BYTES + 1), "image/png").picture == ""
    assert look_of_content(PNG, "application/pdf").picture == ""


@pytest.mark.parametrize(
    ("block", "text", "note"),
    [
        (Text("a"), "a", ""),
        (Image(PNG, "image/png"), "", "image/png, 8"),
        (Audio(b"a", "audio/wav"), "", "audio/wav, 1"),
        (EmbeddedResource(CONTENTS), "b", "Contents of x:a"),
        (EmbeddedResource(PICTURE), "", "Contents of x:a, image/png"),
        (ResourceLink("x:a", "n", description="d"), "n <x:a>: d", "Link to x:a"),
        (ToolUse("1", "n", {}), "[tool use 1: n]", ""),
    ],
)
def test_every_block_says_something(block: Block, text: str, note: str) -> None:
    look = look_of_block(block)
    assert look.text == text
    assert look.note.replace("\xa0", " ").startswith(note)
