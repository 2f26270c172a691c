"""Content blocks on the wire of each revision, held against its schema."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_app.protocol.content import (
    Annotations,
    Audio,
    Block,
    EmbeddedResource,
    Icon,
    Image,
    ResourceContents,
    ResourceLink,
    Text,
    ToolResult,
    ToolUse,
    block_to_wire,
    sampling_block_to_wire,
)
from mcp_app.protocol.revisions import REVISIONS, Revision
from tests.wire.validation import wire_validator

BYTES: Final = b"\x00\xff"
ENCODED: Final = base64.b64encode(BYTES).decode()
NOTED: Final = Annotations(
    audience=["user", "assistant"], priority=0, last_modified="2026-01-02T03:04:05Z"
)
ICON: Final = Icon(src="https://example.org/i.png", sizes=["48x48"], theme="light")
META: Final = {"example.org/a": {"b": [1]}}

BLOCKS: Final[list[Block]] = [
    Text(""),
    Text("a\0💥", annotations=NOTED, meta=META),
    Image(BYTES, "image/png", annotations=NOTED, meta=META),
    Audio(BYTES, "audio/wav"),
    ResourceLink(
        "a:b",
        "c",
        title="T",
        description="D",
        mime_type="text/plain",
        size=0,
        icons=[ICON],
        annotations=NOTED,
        meta=META,
    ),
    ResourceLink("a:b", "c"),
    EmbeddedResource(ResourceContents(uri="a:b", text="")),
    EmbeddedResource(
        ResourceContents(uri="a:b", blob=BYTES, mime_type="image/png", meta=META),
        annotations=NOTED,
        meta=META,
    ),
]


def judged(revision: Revision, content: list[dict[str, Any]]) -> list[str]:
    result: dict[str, Any] = {"content": content}
    if revision.result_type:
        result["resultType"] = "complete"
    message = {"jsonrpc": "2.0", "id": 1, "result": result}
    return wire_validator(revision.version).check(message, method="tools/call")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_blocks_fit_the_schema(revision: Revision, block: Block) -> None:
    wire = block_to_wire(block, revision)
    assert judged(revision, [wire]) == []
    known = block.type in revision.content
    assert wire["type"] == (block.type if known else "text")
    if not known:
        assert wire["text"] == block.as_text()
    assert ("annotations" in wire) == (block.annotations is not None)
    said = block.meta is not None and "_meta" in revision.fields["block"]
    assert wire.get("_meta") == (META if said else None)


def test_annotations_of_each_revision(revision: Revision) -> None:
    wire = block_to_wire(Text("a", annotations=NOTED), revision)
    expected = {"audience": ["user", "assistant"], "priority": 0}
    if revision.version >= "2025-06-18":
        expected["lastModified"] = "2026-01-02T03:04:05Z"
    assert wire["annotations"] == expected


def test_contents(revision: Revision) -> None:
    text = ResourceContents(uri="a:b", text="", meta=META).to_wire(revision)
    blob = ResourceContents(uri="a:b", blob=b"", mime_type="a/b").to_wire(revision)
    known = revision.version >= "2025-06-18"
    assert text == {"uri": "a:b", "text": "", **({"_meta": META} if known else {})}
    assert blob == {"uri": "a:b", "blob": "", "mimeType": "a/b"}


@pytest.mark.parametrize("given", [{}, {"text": "a", "blob": b"b"}])
def test_contents_are_one_of_two(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either text or blob"):
        ResourceContents(uri="a:b", **given)


# -- sampling -------------------------------------------------------------------

SAMPLED: Final[list[tuple[Block, dict[str, Any]]]] = [
    (Text("a"), {"type": "text", "text": "a"}),
    (
        Image(BYTES, "image/png"),
        {"type": "image", "data": ENCODED, "mimeType": "image/png"},
    ),
    (
        ToolUse("1", "find", {"a": 1}),
        {"type": "tool_use", "id": "1", "name": "find", "input": {"a": 1}},
    ),
    (
        ToolResult("1", [Text("a"), Audio(BYTES, "audio/wav")], {"b": 2}, True),
        {
            "type": "tool_result",
            "toolUseId": "1",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "audio", "data": ENCODED, "mimeType": "audio/wav"},
            ],
            "structuredContent": {"b": 2},
            "isError": True,
        },
    ),
    (ToolResult("1", []), {"type": "tool_result", "toolUseId": "1", "content": []}),
]


@pytest.mark.parametrize(("block", "wire"), SAMPLED)
def test_blocks_of_sampling(
    revision: Revision, block: Block, wire: dict[str, Any]
) -> None:
    found = sampling_block_to_wire(block, revision)
    if block.type in revision.sampling_content:
        assert found == wire
    else:
        assert found == {"type": "text", "text": block.as_text()}


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (EmbeddedResource(ResourceContents(uri="a:b", text="said")), "said"),
        (EmbeddedResource(ResourceContents(uri="a:b", blob=BYTES)), "<a:b>"),
        (ResourceLink("a:b", "c"), "c <a:b>"),
        (ToolUse("1", "find", {}), "[tool use 1: find]"),
        (ToolResult("1", [Text("a"), Text("b")]), "[tool result 1]\na\nb"),
    ],
)
def test_what_no_conversation_has_is_said(block: Block, text: str) -> None:
    found = sampling_block_to_wire(block, REVISIONS["2025-06-18"])
    assert found == {"type": "text", "text": text}


def test_a_block_has_a_type() -> None:
    with pytest.raises(TypeError, match="Block is abstract"):
        Block().as_text()
    with pytest.raises(TypeError, match="Block is abstract"):
        Block().members(REVISIONS["2026-07-28"])


# -- icons and annotations ------------------------------------------------------


def test_only_what_is_there_is_shown() -> None:
    assert Icon(src="data:image/png;base64,AAE=").to_wire() == {
        "src": "data:image/png;base64,AAE="
    }
    assert ICON.to_wire() == {
        "src": "https://example.org/i.png",
        "sizes": ["48x48"],
        "theme": "light",
    }
    assert Annotations().to_wire() == {}
    assert Annotations(audience=[], priority=0).to_wire() == {
        "audience": [],
        "priority": 0,
    }


@pytest.mark.parametrize(
    "src",
    [
        *("", "http://example.org", "javascript:1", "data:text/", "data:x"),
        *("file:///i.png", "ftp://x/i", "ws://x", "i.png"),
    ],
)
def test_icons_that_clients_refuse(src: str) -> None:
    with pytest.raises(ValueError, match="The src of an icon"):
        Icon(src=src)


# -- what the stateful revisions demand ------------------------------------------------


@pytest.mark.parametrize("kind", [Image, Audio])
@pytest.mark.parametrize(
    "mime_type", ["", "png", "image/", "/png", "image/p ng", "ä/b"]
)
def test_a_media_type_is_valid(
    kind: Callable[[bytes, str], Block], mime_type: str
) -> None:
    """S-PROMPT-014, S-PROMPT-015."""
    with pytest.raises(ValueError, match="is not a media type"):
        kind(b"", mime_type)


@pytest.mark.parametrize("mime_type", ["image/png", "image/svg+xml", "audio/x;a=1"])
def test_media_types(mime_type: str) -> None:
    assert Image(b"", mime_type).mime_type == mime_type


@pytest.mark.parametrize("uri", ["", "notes", "/notes", "memo:", "memo://ä", "a b:c"])
def test_a_uri_is_valid(uri: str) -> None:
    """S-PROMPT-016."""
    with pytest.raises(ValueError, match="is not an absolute URI"):
        EmbeddedResource(ResourceContents(uri=uri, text=""))
    with pytest.raises(ValueError, match="is not an absolute URI"):
        ResourceLink(uri, "name")


@pytest.mark.parametrize("version", REVISIONS)
@pytest.mark.parametrize(
    ("contents", "shown"),
    [
        (ResourceContents(uri="memo://a", text="t"), "text/plain"),
        (ResourceContents(uri="memo://a", blob=b"b"), "application/octet-stream"),
        (ResourceContents(uri="memo://a", text="t", mime_type="a/b"), "a/b"),
    ],
)
def test_an_embedded_resource_has_a_media_type(
    version: str, contents: ResourceContents, shown: str
) -> None:
    """S-PROMPT-017."""
    wire = block_to_wire(EmbeddedResource(contents), REVISIONS[version])
    assert wire["resource"]["mimeType"] == shown
