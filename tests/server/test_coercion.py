"""Which strings are read as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server import coercion
from mcp_app.server.coercion import (
    object_member,
    read_strings,
    string_member,
    strings_member,
)

DEFINITIONS: Final[dict[str, Any]] = {
    "Party": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
    },
    "Node": {
        "type": "object",
        "properties": {
            "value": {"type": "number"},
            "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        },
    },
    "Colour": {"enum": ["red", "1"], "type": "string"},
    "Loop": {"$ref": "#/$defs/Loop"},
    "a/b~c": {"type": "integer"},
}


def read(schema: object, value: object, name: str = "x") -> object:
    whole = {"properties": {name: schema}, "$defs": DEFINITIONS}
    return read_strings(whole, {name: value})[name]


INTEGER: Final = {"type": "integer"}
STRING: Final = {"type": "string"}
READ: Final[list[object]] = [
    *(False, INTEGER, {"type": ["number", "null"]}, {"enum": [7, 8]}, {"const": 7}),
    {"anyOf": [INTEGER, {"type": "null"}]},
    {"oneOf": [INTEGER, {"$ref": "#/$defs/Party"}]},
    {"allOf": [INTEGER, {"description": "How many."}]},
    {"$ref": "#/$defs/Party"},
    {"$ref": "#/$defs/Party", "description": "Who comes."},
    *({"$ref": "#/$defs/a~1b~0c"}, {"$ref": "#/%24defs/Party"}),
    {"$ref": "#/properties/x/not", "not": {"type": "integer"}},
]
LEFT: Final[list[object]] = [
    *(True, {}, STRING, {"type": ["integer", "string"]}, {"enum": [7, "seven"]}),
    *({"const": "7"}, {"anyOf": [INTEGER, STRING]}, {"anyOf": [INTEGER, {}]}),
    {"oneOf": [{"$ref": "#/$defs/Colour"}, INTEGER]},
    *({"$ref": "#/$defs/Colour"}, {"$ref": "#/$defs/Loop"}),
    {"$ref": "#/$defs/Unknown"},
    {"$ref": "#/$defs/Party/properties/name"},
    *({"$ref": "#anchor"}, {"$ref": "https://example.org/schema"}, {"$ref": 7}),
]


@pytest.mark.parametrize("schema", READ, ids=repr)
def test_read_where_no_string_can_be(schema: object) -> None:
    assert read(schema, "7") == 7


@pytest.mark.parametrize("schema", LEFT, ids=repr)
def test_left_alone_where_a_string_may_be(schema: object) -> None:
    assert read(schema, "7") == "7"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18446744073709551617", 18446744073709551617),
        *(('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'), ("NaN", "NaN"), ("[1", "[1")),
    ],
)
def test_it_is_read_exactly(text: str, value: object) -> None:
    assert read({"type": ["integer", "object"]}, text) == value


PARTY: Final = {"$ref": "#/$defs/Party"}
WITHIN: Final[list[tuple[object, object, object]]] = [
    (PARTY, {"name": "7", "size": "7"}, {"name": "7", "size": 7}),
    (PARTY, '{"name": "7", "size": "7"}', {"name": "7", "size": 7}),
    (PARTY, {"other": "7"}, {"other": "7"}),
    ({"type": "array", "items": INTEGER}, ["1", "x", 2], [1, "x", 2]),
    ({"type": "array", "items": INTEGER}, '["1", "2"]', [1, 2]),
    ({"type": "array", "prefixItems": [STRING], "items": INTEGER}, "[3, 4]", [3, 4]),
    ({"type": "array", "prefixItems": [STRING, INTEGER]}, ["1", "2"], ["1", 2]),
    ({"type": "array"}, ["1"], ["1"]),
    ({"type": "object", "additionalProperties": INTEGER}, {"a": "1"}, {"a": 1}),
    (
        {"patternProperties": {"^a": INTEGER}, "additionalProperties": INTEGER},
        {"a": "1", "b": "1"},
        {"a": "1", "b": "1"},
    ),
    (
        {"$ref": "#/$defs/Node"},
        {"value": "1", "next": '{"value": "2", "next": "null"}', "children": "[]"},
        {"value": 1, "next": {"value": 2, "next": None}, "children": []},
    ),
    # One alternative may have a string there.
    (
        {"anyOf": [PARTY, {"properties": {"size": STRING}}]},
        {"size": "7"},
        {"size": "7"},
    ),
    # Both apply.
    ({"allOf": [PARTY, {"properties": {"more": INTEGER}}]}, {"more": "7"}, {"more": 7}),
]


def test_within_objects_and_lists() -> None:
    for schema, value, expected in WITHIN:
        assert read(schema, value) == expected, schema


def test_odd_schemas_and_unknown_arguments() -> None:
    given = {"x": "7"}
    odd_schemas: list[object] = [True, {}, {"properties": []}, {"properties": {}}]
    for odd in odd_schemas:
        assert read_strings(odd, given) == given
    others = {"properties": {}, "additionalProperties": INTEGER}
    assert read_strings(others, given) == {"x": 7}
    assert read_strings({"$ref": "#/$defs/P", "$defs": {"P": others}}, given) == {
        "x": 7
    }


def test_deep_values() -> None:
    value: Any = "1"
    for _ in range(60):
        value = {"next": value}
    assert read({"$ref": "#/$defs/Node"}, value)


CHOICE: Final = {"oneOf": [{"properties": {"a": INTEGER}} for _ in range(50)]}


@pytest.mark.parametrize(
    ("schema", "few", "many"),
    [
        ({"items": INTEGER}, ["1"] * 9, ["1"] * 99),
        ({"items": INTEGER}, "[1,1,1,1]", f"[{','.join('1' * 500)}]"),
        ({"items": INTEGER}, ["[1]"] * 9, ["[1, 2, 3, 4, 5]"] * 50),
        ({"items": CHOICE}, [{"a": "1"}], [{"a": "1"}] * 9),
    ],
    ids=["texts", "one text", "texts of lists", "alternatives"],
)
def test_t13_what_would_take_long_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, schema: JsonObject, few: object, many: object
) -> None:
    monkeypatch.setattr(coercion, "MOST_STEPS", 500)
    shape = {"type": ["array", "object"], **schema}
    assert read(shape, few) != few
    assert read(shape, many) == many


# -- parameters ------------------------------------------------------------------------


Read = Callable[..., Any]

PARAMETERS_READ: Final[list[tuple[Read, dict[str, Any], dict[str, Any], Any]]] = [
    (string_member, {"a": ""}, {}, ""),
    (string_member, {"a": "x"}, {}, "x"),
    (object_member, {}, {}, {}),
    (object_member, {"a": {}}, {"required": True}, {}),
    (object_member, {"a": {"b": 1}}, {}, {"b": 1}),
    (strings_member, {}, {}, {}),
    (strings_member, {"a": {"b": "1", "": ""}}, {}, {"b": "1", "": ""}),
]


def test_read() -> None:
    for read, params, options, value in PARAMETERS_READ:
        assert read(params, "a", **options) == value, read


REFUSED: Final[list[tuple[Read, dict[str, Any], dict[str, Any], str]]] = [
    (string_member, {}, {}, "params.a must be a string."),
    (string_member, {"a": None}, {}, "params.a must be a string."),
    (string_member, {"a": 7}, {"path": "params.b"}, "params.b.a must be a string."),
    (object_member, {}, {"required": True}, "params.a must be an object."),
    (object_member, {"a": None}, {"required": True}, "params.a must be an object."),
    (object_member, {"a": []}, {"path": "x"}, "x.a must be an object."),
    (strings_member, {"a": []}, {}, "params.a must be an object."),
    (strings_member, {"a": {"b": 1}}, {}, "params.a['b'] must be a string."),
    (strings_member, {"a": {"b": None}}, {"path": "x"}, "x.a['b'] must be a string."),
]


def test_refused() -> None:
    for read, params, options, message in REFUSED:
        with pytest.raises(InvalidParams) as caught:
            read(params, "a", **options)
        assert caught.value.message == message
