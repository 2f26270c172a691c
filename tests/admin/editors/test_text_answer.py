from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from mcp_app.admin.editors.text_answer import (
    SuggestionsField,
    config_of_text,
    needs_json,
    parts_of_config,
    suggestions_of_text,
    text_of_config,
    text_of_suggestions,
)
from mcp_app.models import DefinitionRow, Resource, ResourceTemplate, Tool

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
    parts = parts_of_config({"content": content})
    assert parts is not None
    assert parts.text == text
    assert (None if parts.file is None else parts.file.kind) == kind


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
    assert parts_of_config(config) is None


# -- content ---------------------------------------------------------------------------


@pytest.mark.parametrize("model", [Tool, Resource, ResourceTemplate])
def test_a_text_comes_back_as_it_was(model: type[DefinitionRow]) -> None:
    config = config_of_text(model, "a\n{{b}}")
    assert text_of_config(model, config) == "a\n{{b}}"
    assert text_of_config(model, {"upload": "d"}) is None
    assert text_of_config(model, {**config, "is_error": True}) is None


@pytest.mark.parametrize(
    ("model", "config", "needed"),
    [
        (Tool, None, False),
        (Tool, {}, False),
        (Tool, {"content": [TEXT]}, False),
        (Tool, {"content": [TEXT, TEXT]}, True),
        (Tool, {"content": [TEXT], "is_error": True}, True),
        (Tool, {"upload": "d"}, True),
        (Resource, {"upload": "d"}, False),
        (Resource, {"base64": ""}, True),
    ],
)
def test_what_is_edited_as_json(
    model: type[DefinitionRow], config: dict[str, Any] | None, needed: bool
) -> None:
    assert needs_json(model, config) is needed


# -- suggestions -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "suggestions"),
    [("", []), (" \n\t\n", []), (" a b \n\nc", ["a b", "c"])],
)
def test_each_line_is_a_suggestion(text: str, suggestions: list[str]) -> None:
    assert suggestions_of_text(text) == suggestions
    assert suggestions_of_text(text_of_suggestions(suggestions)) == suggestions


def test_a_field_takes_what_browsers_send() -> None:
    assert SuggestionsField().clean("a\r\n b\r\n") == ["a", "b"]
    with pytest.raises(ValidationError, match=r"There are 101 suggestions"):
        SuggestionsField().clean("\r\n".join(map(str, range(101))))
