from __future__ import annotations

from typing import Any

from mcp_app.kinds.query.config import input_schema, output_schema
from mcp_app.kinds.query.shapes import LARGEST
from tests.kinds.query import shop


def test_arguments_are_those_of_the_filters() -> None:
    query = shop.query(
        {
            "fields": ["number"],
            "filters": [
                {"path": "state", "lookup": "in", "parameter": "states"},
                {
                    "path": "created",
                    "lookup": "last_days",
                    "parameter": "days",
                    "description": "How many days.",
                    "default": 7,
                },
                {"path": "note", "lookup": "isempty", "value": True},
                {
                    "path": "number",
                    "lookup": "exact",
                    "parameter": "number",
                    "required": True,
                },
            ],
        }
    )
    assert input_schema(query) == {
        "type": "object",
        "properties": {
            "states": {
                "type": "array",
                "items": {"type": "string", "enum": ["open", "sent", "back"]},
                "minItems": 1,
                "maxItems": 100,
                "description": "open: Waits to be sent; back: Came back.",
            },
            "days": {
                "type": "integer",
                "minimum": 1,
                "maximum": 3650,
                "description": "How many days.",
                "default": 7,
            },
            "number": {"type": "string", "minLength": 1, "maxLength": 200},
            "cursor": {
                "type": "string",
                "maxLength": LARGEST,
                "description": "For the next page: what the last answer has as “next”.",
            },
        },
        "additionalProperties": False,
        "required": ["number"],
    }


def test_lines_of_groups() -> None:
    measures: list[Any] = [
        {"aggregate": "count", "name": "orders"},
        {"aggregate": "sum", "path": "total", "name": "total"},
        {"aggregate": "avg", "path": "total", "name": "mean"},
        {"aggregate": "avg", "path": "weight", "name": "weight"},
        {"aggregate": "min", "path": "due", "name": "first"},
    ]
    by = ["state", "customer.name", {"path": "created", "unit": "month"}]
    query = shop.query({"answer": "groups", "group_by": by, "measures": measures})
    assert "cursor" not in input_schema(query)["properties"]
    schema = output_schema(query)
    assert schema["required"] == ["groups"]
    assert schema["properties"]["groups"]["items"]["properties"] == {
        "state": {},
        "customer_name": {"type": ["string", "null"]},
        "created_month": {"type": ["string", "null"], "format": "date"},
        "orders": {"type": "integer", "minimum": 0},
        "total": {"type": ["string", "null"]},
        "mean": {"type": ["string", "null"]},
        "weight": {},
        "first": {"type": ["string", "null"], "format": "date"},
    }
