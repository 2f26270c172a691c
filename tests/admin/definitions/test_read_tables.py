from __future__ import annotations

import json

import pytest

from mcp_app.admin.definitions.read_only import (
    arguments,
    parameters,
    render_table,
    suggestions,
)


def test_a_table_hides_nothing_and_is_no_markup() -> None:
    text = render_table(("A", "B"), [("<b>", "a\u202eb\nc")], '{"x":"\u200b"}')
    cells = '<th scope="row">&lt;b&gt;</th><td data-label="B">a⟦U+202E⟧b<br>c</td>'
    assert cells in text
    assert "⟦U+200B⟧" in text
    assert "None" in render_table(("A",), [])


@pytest.mark.parametrize("stored", ["", "{", "[]", "{}", "7"])
def test_what_is_no_schema_has_no_rows(stored: str) -> None:
    assert "<td" not in parameters(stored)


@pytest.mark.parametrize("stored", ["7", "[7]", '[{"name": "a", "suggestions": 7}]'])
def test_what_are_no_arguments_is_shown_as_json(stored: str) -> None:
    text = arguments(stored)
    assert "<td" not in text
    assert "7" in text


def test_what_is_stored_for_no_variable() -> None:
    text = suggestions(json.dumps({"gone": ["a"]}), "x:{a}")
    assert "The address pattern has no gone" in text
    # While the pattern is none, nobody knows which variables it has.
    assert "has no gone" not in suggestions(json.dumps({"gone": ["a"]}), "x:{")
