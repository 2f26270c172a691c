from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.content import CONFIGS, config_of_text, text_of_config
from mcp_app.models import DefinitionRow, Prompt, Resource, Tool


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
        (Prompt, {"messages": [{"role": "assistant", "content": TEXT}]}),
        (Prompt, {"messages": [{"content": TEXT}]}),
        (Prompt, {"messages": "text"}),
    ],
)
def test_richer_contents_are_no_text(
    model: type[DefinitionRow], config: dict[str, Any]
) -> None:
    assert text_of_config(model, config) is None
