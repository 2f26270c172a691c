"""What is left of a schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.reduce_schemas import SCHEMAS, reduced
from tests.wire.validation import VERSIONS


@pytest.mark.parametrize(
    ("schema", "facts"),
    [
        ({"description": "A name.", "type": "string"}, {"type": "string"}),
        (
            {"properties": {"title": {"title": "T", "type": "string"}}},
            {"properties": {"title": {"type": "string"}}},
        ),
        (
            {"$defs": {"default": {"default": 1, "minimum": 0}}},
            {"$defs": {"default": {"minimum": 0}}},
        ),
        ({"const": {"description": "data"}}, {"const": {"description": "data"}}),
        ({"enum": ["title"], "required": ["title"]},) * 2,
        ({"anyOf": [{"title": "A"}, True]}, {"anyOf": [{}, True]}),
    ],
)
def test_annotations_go_and_names_stay(
    schema: dict[str, Any], facts: dict[str, Any]
) -> None:
    assert reduced(schema) == facts


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schemas_here_are_reduced(version: str) -> None:
    schema = json.loads((SCHEMAS / f"{version}.json").read_bytes())
    assert reduced(schema) == schema
