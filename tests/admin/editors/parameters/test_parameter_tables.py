from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mcp_app.admin.editors.parameter import TYPES, Choice, Parameter
from mcp_app.admin.editors.parameter_tables import (
    MAX_PARAMETERS,
    Summary,
    parameters_of,
    schema_of,
    summaries,
    with_hidden_members,
)
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
            rest={"title": "A", "deprecated": True},
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


def test_what_no_form_shows_is_kept() -> None:
    schema = {"properties": {"a": {"title": "T", "type": "string"}}}
    [row] = parameters_of(schema)
    typed = replace(row, rest={}, name="b")
    assert with_hidden_members([typed], schema) == [replace(row, name="b")]
    new = Parameter(name="c")
    assert with_hidden_members([new], schema) == [new]


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
    (
        {"properties": {f"p{n}": {} for n in range(MAX_PARAMETERS + 1)}},
        "41 properties",
    ),
]
BEYOND_IN_A: list[tuple[object, str]] = [
    (True, "a"),
    ({"$ref": "#/x"}, "$ref in a"),
    ({"oneOf": [{"type": "string"}]}, "oneOf in a"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "anyOf in a"),
    ({"type": "object", "properties": {}}, "properties in a"),
    (
        {"type": "array", "items": {"type": "object", "properties": {}}},
        "properties in the items of a",
    ),
    ({"type": ["string", "null"]}, "the type of a"),
    ({"type": "object"}, "the type of a"),
    ({"type": "string", "format": "uuid"}, "the type of a"),
    ({"type": "array"}, "the type of a"),
    ({"type": "string", "exclusiveMinimum": 1}, "exclusiveMinimum in a"),
    ({"type": "integer", "exclusiveMinimum": 1}, "exclusiveMinimum in a"),
    ({"type": "integer", "maxLength": 1}, "maxLength in a"),
    ({"type": "boolean", "pattern": "x"}, "pattern in a"),
    ({"type": "integer", "minimum": "1"}, "minimum in a"),
    ({"type": "integer", "minimum": True}, "minimum in a"),
    ({"type": "string", "description": 1}, "description in a"),
    ({"type": "string", "description": " x"}, "description in a"),
    ({"type": "string", "description": "x\ry"}, "description in a"),
    ({"type": "string", "pattern": "x\ny"}, "pattern in a"),
    ({"type": "string", "default": 1}, "default in a"),
    ({"type": "string", "default": None}, "default in a"),
    ({"type": "integer", "default": True}, "default in a"),
    ({"type": "integer", "default": 1.5}, "default in a"),
    ({"type": "boolean", "default": 0}, "default in a"),
    (
        {"type": "array", "items": {"type": "string"}, "default": [1]},
        "default in a",
    ),
    ({"type": "string", "examples": ["a", "b"]}, "examples in a"),
    ({"type": "string", "examples": "a"}, "examples in a"),
    ({"type": "string", "examples": [1]}, "examples in a"),
    (
        {"type": "array", "items": {"type": "string"}, "uniqueItems": 1},
        "uniqueItems in a",
    ),
    ({"type": "string", "enum": []}, "the choices of a"),
    ({"type": "string", "enum": "ab"}, "the choices of a"),
    ({"type": "string", "enum": [1]}, "the choices of a"),
    ({"type": "string", "enum": [""]}, "the choices of a"),
    ({"type": "string", "enum": [" x"]}, "the choices of a"),
    ({"type": "string", "enum": ["x\ny"]}, "the choices of a"),
    ({"type": "string", "enum": ["x = y"]}, "the choices of a"),
    ({"type": "string", "enum": ["a"], "oneOf": [{"const": "a"}]}, "enum in a"),
    ({"type": "string", "oneOf": [{"const": 1}]}, "the choices of a"),
    ({"type": "string", "oneOf": [{"const": "a", "x": 1}]}, "the choices of a"),
    ({"enum": ["a"]}, "enum in a"),
    (
        {
            "type": "array",
            "items": {"type": "string", "enum": ["a"], "minLength": 1},
        },
        "the type of a",
    ),
    ({"type": "string", "x-mcp-header": "X"}, "x-mcp-header in a"),
]


@pytest.mark.parametrize(("schema", "reason"), BEYOND)
def test_what_a_table_cannot_show(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotRepresentable) as caught:
        parameters_of(schema)
    assert str(caught.value) == reason


@pytest.mark.parametrize(("about", "reason"), BEYOND_IN_A)
def test_what_a_row_cannot_show(about: object, reason: str) -> None:
    with pytest.raises(NotRepresentable) as caught:
        parameters_of({"properties": {"a": about}})
    assert str(caught.value) == reason


@pytest.mark.parametrize("name", [" a", "a\nb", "a\r"])
def test_a_name_that_is_no_line(name: str) -> None:
    with pytest.raises(NotRepresentable):
        parameters_of({"properties": {name: {}}})


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
        Summary("a", "date", True, "Day"),
        Summary("b", "json", False, ""),
        Summary("c", "json", False, ""),
        Summary("d", "object", True, ""),
        Summary("e", "json", False, ""),
    ]
    assert summaries({"properties": {"a": {}}, "required": "a"}) == [
        Summary("a", "json", False, "")
    ]
    assert summaries({"properties": 1}) == []
