"""What may stand in the content of a row, member by member."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from mcp_app.models import PublishedRow, Server, Tool
from mcp_app.models.definitions import Source
from mcp_app.publishing.bundle.contents import content_problems

GREATEST = sys.float_info.max


def problems(row: PublishedRow, **content: Any) -> list[str]:
    return [*content_problems(row, content, "tools[3]")]


def of_tool(**content: Any) -> list[str]:
    return problems(Tool(), **content)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"name": "a", "title": "", "description": "x\ny"},
        {"timeout": 3, "position": -7, "read_only": False},
        {"timeout": GREATEST},
        {"timeout": 0.5, "position": 10**30},
        {"input_schema": {}, "icons": [], "config": {"content": []}},
    ],
)
def test_what_columns_can_hold(content: dict[str, Any]) -> None:
    assert of_tool(**content) == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("name", 7, "This must be a text."),
        ("title", None, "This must be a text."),
        ("description", ["x"], "This must be a text."),
        ("position", True, "This must be a whole number."),
        ("position", 1.0, "This must be a whole number."),
        ("timeout", True, "This must be a number, at most 1.8e308."),
        ("timeout", "3", "This must be a number, at most 1.8e308."),
        ("timeout", 10**309, "This must be a number, at most 1.8e308."),
        ("read_only", 1, "This must be true or false."),
        ("read_only", None, "This must be true or false."),
        ("input_schema", [], "This must be an object."),
        ("icons", {}, "This must be a list."),
        ("icons", None, "This must be a list."),
    ],
)
def test_what_they_cannot(name: str, value: Any, said: str) -> None:
    assert of_tool(**{name: value})[0] == f"tools[3].{name}: {said}"


@pytest.mark.parametrize("name", ["shoe", "published", "enabled", "chosen", "id"])
def test_no_other_column(name: str) -> None:
    assert of_tool(**{name: {}}) == [
        f"tools[3].{name}: No member of this name is allowed here."
    ]


def test_what_code_declares_has_fewer_columns() -> None:
    row = Tool(source=Source.CODE)
    assert problems(row, title="x") == []
    assert problems(row, config={}) == [
        "tools[3].config: No member of this name is allowed here."
    ]


def test_what_no_database_takes_is_refused_wherever_it_stands() -> None:
    (problem,) = of_tool(title="a\0b")
    assert problem.startswith("tools[3]: ")
    assert "NUL" in problem


def of_choice(chosen: Any, selection: str = "chosen") -> list[str]:
    return problems(Server(), selection=selection, chosen=chosen)


@pytest.mark.parametrize(
    "chosen", [{}, {"tools": []}, {"tools": ["a", "b"], "prompts": ["a"]}]
)
def test_a_choice(chosen: Any) -> None:
    assert of_choice(chosen) == []


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ([], [": This must be an object."]),
        ({"shoes": []}, [".shoes: No member of this name is allowed here."]),
        ({"tools": "a"}, [".tools: This must be a list of texts."]),
        ({"tools": ["a", 1]}, [".tools: This must be a list of texts."]),
        ({"tools": ["a", "a"]}, [".tools: This list has an entry twice."]),
        (
            {"prompts": 7, "tools": ["b", "b"]},
            [
                ".prompts: This must be a list of texts.",
                ".tools: This list has an entry twice.",
            ],
        ),
    ],
)
def test_no_choice(chosen: Any, said: list[str]) -> None:
    assert of_choice(chosen) == [f"tools[3].chosen{each}" for each in said]


def test_a_choice_of_a_server_that_does_not_choose() -> None:
    said = ["tools[3].chosen: This is allowed only with the selection “chosen”."]
    assert of_choice({"tools": []}, "all") == said
    assert problems(Server(), chosen={}) == said
