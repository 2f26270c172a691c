from __future__ import annotations

from typing import Any

import pytest

from mcp_app.kinds.blocks import block_from_json
from mcp_app.kinds.kind import KindError
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
)

UPLOADS = {"d" * 64: b"\x00\xff"}

PNG = {"type": "image", "mimeType": "image/png"}
PIXELS = Image(b"\x00\xff", "image/png")


def embedded(**members: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "x:a"} | members}


def contents(**members: Any) -> EmbeddedResource:
    return EmbeddedResource(ResourceContents(uri="x:a", **members))


BLOCKS: list[tuple[dict[str, Any], Block]] = [
    ({"type": "text", "text": "a"}, Text("a")),
    (
        {
            **{"type": "text", "text": "a", "_meta": {"a": 1}},
            "annotations": {"audience": ["user"]},
        },
        Text("a", annotations=Annotations(audience=["user"]), meta={"a": 1}),
    ),
    ({**PNG, "data": "AP8="}, PIXELS),
    ({**PNG, "upload": "d" * 64}, PIXELS),
    (
        {"type": "audio", "data": "AP8=", "mimeType": "audio/wav"},
        Audio(b"\x00\xff", "audio/wav"),
    ),
    (embedded(text="t"), contents(text="t")),
    (
        embedded(blob="AP8=", mimeType="image/png"),
        contents(blob=b"\x00\xff", mime_type="image/png"),
    ),
    (embedded(upload="d" * 64), contents(blob=b"\x00\xff")),
    (
        {
            **{"type": "resource_link", "uri": "x:a", "name": "a", "size": 3},
            "icons": [{"src": "https://x"}],
        },
        ResourceLink("x:a", "a", size=3, icons=(Icon(src="https://x"),)),
    ),
]


@pytest.mark.parametrize(("value", "block"), BLOCKS)
def test_blocks(value: dict[str, Any], block: Block) -> None:
    assert block_from_json(value, UPLOADS) == block


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("text", "A content block must be a JSON object."),
        ({}, "must be one of text, image, audio, resource, resource_link"),
        ({"type": "tool_use"}, "must be one of"),
        ({"type": "text"}, "“text” is missing"),
        ({"type": "text", "text": 1}, "“text” is missing, or is not a text"),
        ({"type": "text", "text": "a", "data": ""}, "“data” is not allowed here"),
        ({"type": "text", "text": "a", "_meta": []}, "“_meta” must be"),
        ({"type": "text", "text": "a", "annotations": {"x": 1}}, "no member “x”"),
        ({"type": "image", "data": "AP8=", "mimeType": 1}, "“mimeType”"),
        ({**PNG, "data": "A"}, "not base64"),
        ({**PNG, "data": "é"}, "not base64"),
        ({**PNG, "upload": "e" * 64}, "No uploaded file has the digest"),
        ({**PNG, "upload": "d" * 64, "data": ""}, "not both"),
        ({"type": "resource"}, "“resource” must be a JSON object"),
        (embedded(), "either text or blob"),
        (embedded(uri="a", text="t"), "not an absolute URI"),
        ({"type": "resource_link", "uri": "x:a"}, "“name” is missing"),
        ({"type": "resource_link", "uri": "x:a", "name": "a", "size": -1}, "“size”"),
    ],
)
def test_what_is_no_block(value: object, said: str) -> None:
    with pytest.raises(KindError) as caught:
        block_from_json(value, UPLOADS)
    assert said in caught.value.message
