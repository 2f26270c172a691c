from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.editors.parameter import (
    MISSING,
    TYPES,
    Choice,
    Parameter,
    fits_type,
    limit_keywords,
    property_of,
)


@pytest.mark.parametrize(
    ("row", "schema"),
    [
        (Parameter("a"), {"type": "string"}),
        (
            Parameter("a", "choice", choices=(Choice("c", "Celsius"), Choice("f"))),
            {
                "type": "string",
                "oneOf": [{"const": "c", "title": "Celsius"}, {"const": "f"}],
            },
        ),
        (
            Parameter("a", "choices", choices=(Choice("c"), Choice("f")), unique=True),
            {
                "type": "array",
                "items": {"type": "string", "enum": ["c", "f"]},
                "uniqueItems": True,
            },
        ),
        # What a type does not have is not written.
        (
            Parameter("a", "boolean", least=1, most=2, pattern="x", unique=True),
            {"type": "boolean"},
        ),
        (
            Parameter("a", "number", default=0, example=0.5, least=0),
            {"type": "number", "minimum": 0, "default": 0, "examples": [0.5]},
        ),
    ],
)
def test_a_row_as_a_schema(row: Parameter, schema: dict[str, Any]) -> None:
    assert property_of(row) == schema


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        ("text", "", True),
        ("integer", 1, True),
        ("integer", 1.0, False),
        ("integer", True, False),
        ("number", 1, True),
        ("numbers", [1, 2.5], True),
        ("numbers", [True], False),
        ("texts", "a", False),
        ("boolean", False, True),
        ("boolean", 0, False),
        ("json", None, True),
    ],
)
def test_what_is_of_a_type(kind: str, value: object, fits: bool) -> None:
    assert fits_type(kind, value) is fits


def test_which_types_have_limits() -> None:
    without = {kind for kind in TYPES if limit_keywords(kind) is None}
    assert without == {"boolean", "choice", "date", "datetime", "json"}


def test_missing_is_no_value() -> None:
    assert repr(MISSING) == "MISSING"
