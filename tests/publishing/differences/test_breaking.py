from __future__ import annotations

from typing import Any

import pytest

from mcp_app.publishing.differences import breaking_reasons
from tests.publishing.differences.contents import TEXT, schema

NUMBER = {"type": "number"}
NEEDED = {"name": "a", "required": True}


def closed(is_open: object) -> Any:
    """A schema that says whether it takes other parameters."""
    return {"input_schema": {"type": "object", "additionalProperties": is_open}}


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({"name": "a"}, {"name": "b"}, "those to “a”"),
        ({"uri": "x:a"}, {"uri": "x:b"}, "those to “x:a”"),
        ({"arguments": [{"name": "a"}]}, {"arguments": []}, "those with “a”"),
        ({"title": "a"}, {"arguments": [NEEDED]}, "those without “a”"),
        (schema(a=TEXT), schema(), "those with “a”"),
        (schema(), schema("a", a=TEXT), "those without “a”"),
        (schema(a=TEXT), schema("a", a=TEXT), "those without “a”"),
        (schema(a=NUMBER), schema(a={"type": "integer"}), "some with “a”"),
        (schema(a=TEXT), schema(a={**TEXT, "maxLength": 5}), "some with “a”"),
        (
            schema(a={**NUMBER, "minimum": 1}),
            schema(a={**NUMBER, "minimum": 2}),
            "some with “a”",
        ),
        (schema(a={"enum": [1, 2]}), schema(a={"enum": [1]}), "some with “a”"),
        (schema(a={"pattern": "a"}), schema(a={"pattern": "b"}), "some with “a”"),
        (schema(a=True), schema(a=False), "some with “a”"),
        (schema(a={"minimum": "1"}), schema(a={"minimum": 1}), "some with “a”"),
        (schema(a={"enum": 1}), schema(a={"enum": [1]}), "some with “a”"),
        (schema(a={"enum": [1]}), schema(a={"enum": [True]}), "some with “a”"),
        (schema(a={"type": [{}]}), schema(a={"type": "string"}), "some with “a”"),
        (closed(True), closed(False), "some"),
        ({"input_schema": {"type": "object"}}, closed(False), "some"),
        (schema(a=TEXT), schema("b", a=TEXT), "those without “b”"),
        ({}, {"name": "a", "arguments": [NEEDED]}, ""),
        ({"title": "a"}, {"title": "b"}, ""),
        ({"output_schema": {"a": 1}}, {"output_schema": {"a": 2}}, ""),
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
    said = breaking_reasons(before, after)
    assert len(said) == bool(reason)
    assert reason in "".join(said)
