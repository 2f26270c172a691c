from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from mcp_app.models import Prompt, Tool


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ValidationError) as caught:
        Prompt(name="a b", tags="a/b, c/d", icons="[1]").clean()
    found = caught.value.message_dict
    assert {field: len(said) for field, said in found.items()} == {
        "name": 1,
        "tags": 2,
        "icons": 1,
    }


def test_json_of_a_column() -> None:
    row = Tool(name="a", config='{"a": [1]}', input_schema="{")
    assert row.json("config") == {"a": [1]}
    assert row.json("input_schema") is None
    assert row.json("icons") is None


def test_line_breaks_belong_into_descriptions_only() -> None:
    Tool(name="a", description="a\nb").clean()
    with pytest.raises(ValidationError) as caught:
        Tool(name="a", title="a\nb").clean()
    assert set(caught.value.message_dict) == {"title"}
