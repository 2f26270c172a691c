from __future__ import annotations

from typing import Any

import pytest

from mcp_app.models.fields import digest
from mcp_app.publishing.differences import breaking_reasons, differences
from tests.publishing.differences.contents import TEXT, as_told, schema, told

NUMBER = {"type": "number"}


def closed(is_open: object) -> Any:
    """A schema that says whether it takes other parameters."""
    return {"input_schema": {"type": "object", "additionalProperties": is_open}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            schema(days={**NUMBER, "maximum": 7}),
            schema(days={**NUMBER, "maximum": 14}),
            [("parameter days, largest value", "7", "14")],
        ),
        (schema(a=TEXT), schema(a=TEXT, b=TEXT), [("parameter b", None, "type: Text")]),
        (
            schema(),
            schema(a={"type": "string", "enum": ["x", "y"]}),
            [("parameter a", None, "type: Text; choices: x, y")],
        ),
        (
            schema(a={"$ref": "#/$defs/A"}),
            schema(),
            [("parameter a", {"$ref": "#/$defs/A"}, None)],
        ),
        (schema(a=TEXT), schema("a", a=TEXT), [("parameter a, required", "no", "yes")]),
        (
            schema(a=TEXT, b=TEXT, c=TEXT),
            schema(c=TEXT, a=TEXT, b=TEXT),
            [("parameter c, place", "3", "1")],
        ),
        (
            {"input_schema": {"type": "object"}},
            {"input_schema": {"type": "object", "additionalProperties": False}},
            [("the rest of the schema", None, {"additionalProperties": False})],
        ),
        ({"input_schema": {"properties": True}}, {"input_schema": {}}, []),
    ],
)
def test_differences(before: Any, after: Any, expected: Any) -> None:
    said = [as_told(*each) for each in expected]
    assert told(before, after)[: len(said)] == said


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (schema(a=TEXT), schema(), "The parameter a is gone."),
        (schema(), schema("a", a=TEXT), "The parameter a is new and required."),
        (schema(a=TEXT), schema("a", a=TEXT), "The parameter a is required now."),
        (schema(a=NUMBER), schema(a={"type": "integer"}), "type"),
        (schema(a=TEXT), schema(a={**TEXT, "maxLength": 5}), "longest text"),
        (
            schema(a={**NUMBER, "minimum": 1}),
            schema(a={**NUMBER, "minimum": 2}),
            "smallest value",
        ),
        (schema(a={"enum": [1, 2]}), schema(a={"enum": [1]}), "choices"),
        (schema(a={"pattern": "a"}), schema(a={"pattern": "b"}), "pattern"),
        (schema(a=True), schema(a=False), "schema"),
        (schema(a={"minimum": "1"}), schema(a={"minimum": 1}), "smallest value"),
        (schema(a={"enum": 1}), schema(a={"enum": [1]}), "choices"),
        (schema(a={"enum": [1]}), schema(a={"enum": [True]}), "choices"),
        (schema(a={"type": [{}]}), schema(a={"type": "string"}), "type"),
        (closed(True), closed(False), "additionalProperties"),
        ({"input_schema": {"type": "object"}}, closed(False), "additionalProperties"),
        (schema(a=TEXT), schema("b", a=TEXT), "required"),
        (schema(), schema(a=TEXT), ""),
        (schema("a", a=TEXT), schema(a=TEXT), ""),
        (schema(a={"type": "integer"}), schema(a=NUMBER), ""),
        (schema(a={**TEXT, "maxLength": 5}), schema(a={**TEXT, "maxLength": 6}), ""),
        (schema(a={**TEXT, "maxLength": 5}), schema(a=TEXT), ""),
        (schema(a={"enum": [1]}), schema(a={"enum": [1, 2]}), ""),
        (schema(a={"enum": [1, "x"]}), schema(a={"enum": [1.0, "x"]}), ""),
        (schema(a=TEXT), schema(a={**TEXT, "description": "d"}), ""),
        (schema(a=TEXT, b=TEXT), schema(b=TEXT, a=TEXT), ""),
        (closed(False), closed(True), ""),
        (closed(False), {"input_schema": {"type": "object"}}, ""),
        (schema("b", a=TEXT), schema(a=TEXT), ""),
    ],
)
def test_what_breaks_old_calls(before: Any, after: Any, reason: str) -> None:
    found = differences(before, after)
    assert found
    said = breaking_reasons(found)
    assert len(said) == bool(reason)
    assert reason in "".join(said)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            schema(a={"default": 1}),
            schema(a={"default": True}),
            ("parameter a, value if left out", "1", "yes"),
        ),
        (
            schema(a={"default": "1"}),
            schema(a={"default": 1}),
            ("parameter a, value if left out", '"1"', "1"),
        ),
        (
            schema(a={"enum": [1, {"x": [1]}]}),
            schema(a={"enum": [1, {"x": [1.0]}]}),
            ("parameter a, choices", [1, {"x": [1]}], [1, {"x": [1.0]}]),
        ),
        (
            schema(a={"type": "string", "title": "A"}),
            schema(a={"title": "A", "type": "string"}),
            ("parameter a", "type: Text; title: A", "title: A; type: Text"),
        ),
        (
            schema("a", "b", a=TEXT, b=TEXT),
            schema("b", "a", a=TEXT, b=TEXT),
            (
                "the rest of the schema",
                {"required": ["a", "b"]},
                {"required": ["b", "a"]},
            ),
        ),
        (
            schema("gone"),
            schema(),
            ("the rest of the schema", {"required": ["gone"]}, {"required": []}),
        ),
        (
            {"input_schema": {"type": "object"}},
            {"input_schema": {"type": "object", "properties": {}}},
            ("input_schema", {"type": "object"}, {"type": "object", "properties": {}}),
        ),
        (
            {"input_schema": True},
            {"input_schema": False},
            ("input_schema", "yes", "no"),
        ),
    ],
)
def test_what_differs_a_little(
    before: Any, after: Any, expected: tuple[str, Any, Any]
) -> None:
    assert told(before, after) == [as_told(*expected)]


def test_as_few_parameters_as_can_be_are_said_to_have_moved() -> None:
    names = [f"p{number}" for number in range(4_000)]
    shuffled = [names[7], *names[:7], *names[8:]]
    found = told(*(schema(**dict.fromkeys(each, TEXT)) for each in (names, shuffled)))
    assert found == [("parameter p7, place", "8", "1")]
    shuffled.sort(key=digest)
    found = told(*(schema(**dict.fromkeys(each, TEXT)) for each in (names, shuffled)))
    assert 3_700 < len(found) < 4_000
