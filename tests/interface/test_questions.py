"""What the client's model said."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.interface.questions import SamplingResult
from mcp_app.protocol.content import Image, Text


@pytest.mark.parametrize(
    ("blocks", "text"),
    [
        ([], ""),
        ([Text("a")], "a"),
        ([Text("a"), Image(b"x", "image/png"), Text(" b")], "a b"),
        ([Image(b"x", "image/png")], ""),
    ],
)
def test_the_text_of_all_text_blocks(blocks: Any, text: str) -> None:
    assert SamplingResult(role="assistant", content=blocks, model="m").text == text
