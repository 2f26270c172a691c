from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mcp_app.admin.editors.parameter_forms import (
    MAX_PARAMETERS,
    parameters_of,
    schema_of,
    summaries,
)
from mcp_app.admin.editors.parameter_values import TYPES, Choice, Parameter
from mcp_app.admin.editors.rows import NotRepresentable
from mcp_app.protocol import schemas

CHOICES = (Choice("c", "Celsius"), Choice("f"))

TABLES: list[list[Parameter]] = [
    [],
    *([Parameter(name="a", type=kind)] for kind in TYPES if "choice" not in kind),
    [Parameter(name="a", type="choice", choices=CHOICES)],
    [Parameter(name="a", type="choice", choices=(Choice("x y"), Choice("é")))],
    [
        Parameter(
            name="a",
            type="choices",
            choices=CHOICES,
            unique=True,
            least=1,
            most=2,
            default=["c"],
            example=["c", "f"],
        )
    ],
    [
        Parameter(
            name="a",
            required=True,
            description="One\ntwo",
            default="x",
            example="",
            least=0,
            most=80,
            pattern="^x?$",
        ),
        Parameter(name="b", type="number", least=-1.5, most=3, default=0),
        Parameter(name="c", type="json", default=None, example={"a": [1]}),
        Parameter(name="d", type="boolean", required=True, default=False),
        Parameter(name="e", type="integers", default=[1, 2], unique=True),
    ],
]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_comes_back_from_its_schema(table: list[Parameter]) -> None:
    schema = schema_of(table)
    schemas.check_schema(schema)
    assert parameters_of(schema) == table
    assert parameters_of(json.loads(json.dumps(schema))) == table


SHOWN: list[dict[str, Any]] = [
    {},
    {"type": "object"},
    {"type": "object", "properties": {}, "required": []},
    {"required": ["b", "a"], "properties": {"a": {}, "b": {}}, "type": "object"},
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "description": "d",
        "additionalProperties": False,
        "properties": {
            "z": {"maximum": 14, "type": "integer", "default": 3, "minimum": 1},
            "a": {"examples": ["x"], "title": "T", "type": "string"},
            "c": {"enum": ["a", "b"], "type": "string"},
            "d": {"type": "string", "oneOf": [{"title": "A", "const": "a"}]},
            "e": {
                "items": {"anyOf": [{"const": "a", "title": "A"}], "type": "string"},
                "type": "array",
            },
            "f": {"uniqueItems": False, "type": "array", "items": {"type": "number"}},
        },
        "type": "object",
        "required": ["c", "a"],
    },
]


@pytest.mark.parametrize("schema", SHOWN)
def test_an_unedited_schema_stays_as_it_is_in_its_order(schema: dict[str, Any]) -> None:
    again = schema_of(parameters_of(schema), schema)
    for member, value in schema.items():
        assert json.dumps(again[member]) == json.dumps(value)
    if schema.keys() >= {"type", "properties"}:
        # Members that every schema has come with the first save.
        assert sorted(again) == sorted(schema)


def test_only_what_was_edited_is_written_anew() -> None:
    schema = SHOWN[-1]
    table = parameters_of(schema)
    table[1] = replace(table[1], most=5)
    again = schema_of([table[1], *table[2:], table[0]], schema)
    assert list(again["properties"]) == ["a", "c", "d", "e", "f", "z"]
    assert again["properties"]["a"] == {
        "title": "T",
        "type": "string",
        "maxLength": 5,
        "examples": ["x"],
    }
    assert json.dumps(again["properties"]["z"]) == json.dumps(schema["properties"]["z"])
    assert again["required"] == ["c", "a"]
    assert (again["description"], again["additionalProperties"]) == ("d", False)


def test_a_renamed_parameter_keeps_its_json_and_its_place() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"maxLength": 5, "type": "string"}, "b": {}},
        "required": ["b", "a"],
    }
    first, second = parameters_of(schema)
    again = schema_of([replace(first, name="x"), second], schema)
    assert json.dumps(again["properties"]) == (
        '{"x": {"maxLength": 5, "type": "string"}, "b": {}}'
    )
    assert again["required"] == ["b", "x"]


def test_names_that_change_places_do_not_change_their_schemas() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
    }
    first, second = parameters_of(schema)
    again = schema_of([replace(first, name="b"), replace(second, name="a")], schema)
    assert again["properties"] == {"b": {"type": "string"}, "a": {"type": "integer"}}
    assert "required" not in again


BEYOND: list[tuple[dict[str, Any], str]] = [
    ({"oneOf": []}, "oneOf"),
    ({"$defs": {}}, "$defs"),
    ({"patternProperties": {}}, "patternProperties"),
    ({"x-own": 1}, "x-own"),
    ({"type": "array"}, "type"),
    ({"properties": []}, "properties"),
    ({"required": "a"}, "required"),
    ({"required": ["a"], "properties": {}}, "required"),
    ({"additionalProperties": {}}, "additionalProperties"),
    ({"properties": {f"p{n}": {} for n in range(MAX_PARAMETERS + 1)}}, "41 properties"),
    ({"properties": {"a": True}}, "a"),
]
LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
LIMITED = {"type": "string", "enum": ["a"], "minLength": 1}
BEYOND_IN_A: dict[str, list[dict[str, Any]]] = {
    "$ref": [{"$ref": "#/x"}],
    "oneOf": [
        {"oneOf": [{"type": "string"}]},
        {"type": "string", "enum": ["a"], "oneOf": [{"const": "a"}]},
        {"type": "string", "oneOf": [{"const": 1}]},
        {"type": "string", "oneOf": [{"const": "a", "title": "A", "x": 1}]},
    ],
    "anyOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}],
    "type": [
        {"type": "object", "properties": {}},
        {"type": "array", "items": {"type": "object", "properties": {}}},
        {"type": ["string", "null"]},
        {"type": "object"},
        {"type": "string", "format": "uuid"},
        {"type": "array"},
        {"enum": ["a"]},
    ],
    "minLength": [{"type": "array", "items": LIMITED}],
    "exclusiveMinimum": [
        {"type": kind, "exclusiveMinimum": 1} for kind in ("string", "integer")
    ],
    "maxLength": [{"type": "integer", "maxLength": 1}],
    "minimum": [{"type": "integer", "minimum": value} for value in ("1", True)],
    "description": [{"description": value} for value in (1, " x", "x\ry")],
    "pattern": [
        {"type": "boolean", "pattern": "x"},
        {"type": "string", "pattern": "x\ny"},
    ],
    "default": [
        {"type": "string", "default": 1},
        {"type": "string", "default": None},
        *({"type": "integer", "default": value} for value in (True, 1.0, 1.5)),
        {"type": "boolean", "default": 0},
        *({**LIST, "default": value} for value in ("a", [1])),
        {"type": "array", "items": {"type": "number"}, "default": [True]},
    ],
    "examples": [
        {"type": "string", "examples": value} for value in (["a", "b"], "a", [1])
    ],
    "uniqueItems": [{**LIST, "uniqueItems": 1}],
    "enum": [
        {"type": "string", "enum": value}
        for value in ([], "ab", [1], [""], [" x"], ["x\ny"], ["x\u2028y"], ["x = y"])
    ],
    "x-mcp-header": [{"type": "string", "x-mcp-header": "X"}, {"x-mcp-header": None}],
}


@pytest.mark.parametrize(("schema", "reason"), BEYOND)
def test_what_a_table_cannot_show(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotRepresentable) as caught:
        parameters_of(schema)
    assert str(caught.value) == reason


@pytest.mark.parametrize("member", BEYOND_IN_A)
def test_what_a_row_cannot_show(member: str) -> None:
    for about in BEYOND_IN_A[member]:
        with pytest.raises(NotRepresentable) as caught:
            parameters_of({"properties": {"a": about}})
        assert str(caught.value) == f"{member} in a", about


def test_a_schema_that_no_table_shows_is_summed_up() -> None:
    schema = {
        "properties": {
            "a": {"type": "string", "format": "date", "description": "Day"},
            "b": {"oneOf": []},
            "c": {"type": ["string", "null"]},
            "d": {"type": "object", "description": 1},
            "e": True,
        },
        "required": ["a", "d"],
    }
    assert summaries(schema) == [
        Parameter("a", "Date", True, "Day"),
        Parameter("b", "JSON", False, ""),
        Parameter("c", "JSON", False, ""),
        Parameter("d", "Several fields", True, ""),
        Parameter("e", "JSON", False, ""),
    ]
    assert summaries({"properties": {"a": {}}, "required": "a"}) == [
        Parameter("a", "JSON", False, "")
    ]
    assert summaries({"properties": 1}) == []
