from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from mcp_app.admin.arguments import ArgumentsField, lines_from_arguments

LINES: list[tuple[str, list[dict[str, Any]]]] = [
    ("tone", [{"name": "tone"}]),
    ("order*", [{"name": "order", "required": True}]),
    (
        "order* (Order number): The number on the bill: top right",
        [
            {
                "name": "order",
                "title": "Order number",
                "description": "The number on the bill: top right",
                "required": True,
            }
        ],
    ),
    ("a: x\nb (B)", [{"name": "a", "description": "x"}, {"name": "b", "title": "B"}]),
]


@pytest.mark.parametrize(("lines", "arguments"), LINES)
def test_lines_and_arguments_say_the_same(
    lines: str, arguments: list[dict[str, Any]]
) -> None:
    field = ArgumentsField(required=False)
    assert json.loads(field.clean(lines)) == arguments
    assert lines_from_arguments(arguments) == lines
    assert field.prepare_value(arguments) == lines


@pytest.mark.parametrize("lines", ["", "  \r\n  \r\n"])
def test_no_lines_are_no_arguments(lines: str) -> None:
    assert ArgumentsField(required=False).clean(lines) == ""


@pytest.mark.parametrize("lines", ["a\r\n\r\n b *:x "])
def test_blanks_do_not_matter(lines: str) -> None:
    with pytest.raises(ValidationError, match="is not understood"):
        ArgumentsField(required=False).clean(lines)
    assert json.loads(ArgumentsField().clean("a\r\n\r\n  b* : x ")) == [
        {"name": "a"},
        {"name": "b", "description": "x", "required": True},
    ]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("two words", "“two words” is not understood"),
        ("(Title)", "is not understood"),
        ("a\na", "The argument a is there more than once."),
        ("x.y", "“x.y” cannot name an argument"),
        ("a: \u202e", "U+202E"),
    ],
)
def test_lines_that_make_no_arguments(lines: str, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ArgumentsField().clean(lines)
    assert said in caught.value.messages[0]


def test_what_was_typed_is_shown_again() -> None:
    assert ArgumentsField().prepare_value("two words") == "two words"


def test_a_description_of_many_lines_is_shown_in_one() -> None:
    assert lines_from_arguments([{"name": "a", "description": "x\ny"}]) == "a: x y"
