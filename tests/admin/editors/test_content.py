from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.editors.text_answer import (
    CONFIGS,
    config_of_text,
    needs_json,
    text_of_config,
)
from mcp_app.models import DefinitionRow, Resource, Tool


@pytest.mark.parametrize("model", CONFIGS)
def test_a_text_comes_back_as_it_was(model: type[DefinitionRow]) -> None:
    config = config_of_text(model, "a\n{{b}}")
    assert text_of_config(model, config) == "a\n{{b}}"


TEXT = {"type": "text", "text": "a"}


@pytest.mark.parametrize(
    ("model", "config"),
    [
        (Tool, {}),
        (Tool, {"content": [TEXT, TEXT]}),
        (Tool, {"content": [TEXT], "is_error": True}),
        (Tool, {"content": [{"type": "image", "data": "", "mimeType": "a/b"}]}),
        (Resource, {"upload": "d"}),
    ],
)
def test_richer_contents_are_no_text(
    model: type[DefinitionRow], config: dict[str, Any]
) -> None:
    assert text_of_config(model, config) is None


@pytest.mark.parametrize(
    ("model", "config", "needed"),
    [
        (Tool, None, False),
        (Tool, {}, False),
        (Tool, {"content": [TEXT]}, False),
        (Tool, {"content": [TEXT, TEXT]}, True),
        (Tool, {"upload": "d"}, True),
        (Resource, {"upload": "d"}, False),
        (Resource, {"base64": ""}, True),
    ],
)
def test_what_is_edited_as_json(
    model: type[DefinitionRow], config: dict[str, Any] | None, needed: bool
) -> None:
    assert needs_json(model, config) is needed
