from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.editors.messages import fields_of_answer

TEXT = {"type": "text", "text": "a"}
IMAGE = {"type": "image", "upload": "d", "mimeType": "image/png"}
RESOURCE = {"uri": "x:p", "mimeType": "application/pdf", "upload": "d"}
PDF = {"type": "resource", "resource": RESOURCE}


@pytest.mark.parametrize(
    ("content", "text", "kind"),
    [
        ([TEXT], "a", None),
        ([TEXT, IMAGE], "a", "file"),
        ([TEXT, PDF], "a", "contents"),
        ([PDF], "", "contents"),
        ([{**IMAGE, "type": "audio", "mimeType": "audio/wav"}], "", "file"),
        ([{**PDF, "resource": {"uri": "x:p", "upload": "d"}}], "", "contents"),
    ],
)
def test_a_text_and_a_file(content: list[Any], text: str, kind: str | None) -> None:
    parts = fields_of_answer({"content": content})
    assert parts is not None
    assert parts["text"] == text
    assert (parts["file"] and parts["file"].kind) == kind


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"content": 7},
        {"content": []},
        {"content": [7]},
        {"content": [TEXT, TEXT]},
        {"content": [IMAGE, TEXT]},
        {"content": [TEXT, IMAGE, IMAGE]},
        {"content": [TEXT], "is_error": False},
        {"content": [{"type": "text", "text": ""}, IMAGE]},
        {"content": [{**TEXT, "annotations": {"priority": 1}}]},
        {"content": [{**IMAGE, "mimeType": "text/plain"}]},
        {"content": [{**IMAGE, "mimeType": "image/{{kind}}"}]},
        {"content": [{"type": "image", "data": "", "mimeType": "image/png"}]},
        {"content": [{"type": "image", "upload": "d"}]},
        {"content": [{"type": "resource", "resource": {"uri": "x:p", "text": "a"}}]},
        {"content": [{**PDF, "resource": {**RESOURCE, "uri": "x:{{id}}"}}]},
        {"content": [{"type": "resource_link", "uri": "x:p", "name": "p"}]},
    ],
)
def test_what_a_form_cannot_show(config: dict[str, Any]) -> None:
    assert fields_of_answer(config) is None


# -- content ---------------------------------------------------------------------------
