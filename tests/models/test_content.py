"""The columns that are published together: out of a row, and into one again."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.models import Server, Tool
from mcp_app.models.fields import content_of, put_content

COLUMNS = (
    "name",
    "title",
    "timeout",
    "position",
    "read_only",
    "input_schema",
    "icons",
    "config",
)


def content(**columns: Any) -> dict[str, Any]:
    return {**content_of(Tool(**columns), COLUMNS)}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, {}),
        # What has its default is left out, so that a new column changes no hash.
        ({"name": "", "position": 0, "read_only": None}, {}),
        # Empty is nothing, whatever the default is.
        ({"config": ""}, {}),
        ({"name": "a", "position": 3}, {"name": "a", "position": 3}),
        ({"read_only": False}, {"read_only": False}),
        ({"timeout": 5}, {"timeout": 5.0}),
        ({"input_schema": '{"type":  "object"}'}, {"input_schema": {"type": "object"}}),
        ({"icons": "[]"}, {"icons": []}),
        # A hand in the database.
        ({"input_schema": "{"}, {"input_schema": None}),
    ],
)
def test_of_a_row(columns: dict[str, Any], said: dict[str, Any]) -> None:
    assert content(**columns) == said


def test_a_number_of_seconds_is_as_it_comes_back() -> None:
    assert type(content(timeout=5)["timeout"]) is float


def test_only_what_is_asked_for() -> None:
    assert content_of(Tool(name="a", title="A"), ("title",)) == {"title": "A"}


def test_into_a_row_with_defaults_for_what_is_not_named() -> None:
    row = Tool(name="a", title="A", timeout=3.0, position=7, read_only=True, icons="[]")
    put_content(row, COLUMNS, {"name": "b", "input_schema": {"b": 1, "a": [None]}})
    assert (row.name, row.title, row.timeout, row.position) == ("b", "", None, 0)
    assert (row.read_only, row.icons) == (None, "")
    assert row.input_schema == '{"b":1,"a":[null]}'


@pytest.mark.parametrize(
    "said",
    [
        {"name": "a", "timeout": 0.5, "read_only": False, "icons": [{"src": "x"}]},
        {"input_schema": {}, "position": -1},
    ],
)
def test_there_and_back(said: dict[str, Any]) -> None:
    row = Tool()
    put_content(row, COLUMNS, said)
    assert content_of(row, COLUMNS) == said


def test_a_default_that_is_a_word_is_left_out_and_comes_back() -> None:
    row = Server(selection=Server.Selection.ALL)
    assert "selection" not in content_of(row, ("selection",))
    row.selection = Server.Selection.TAGS
    assert content_of(row, ("selection",)) == {"selection": "tags"}
    put_content(row, ("selection",), {})
    assert row.selection == Server.Selection.ALL
