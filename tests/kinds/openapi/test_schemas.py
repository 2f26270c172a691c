"""Schemas of OpenAPI become JSON Schema of their own."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.kinds.openapi import schemas as module
from mcp_app.kinds.openapi.reading import DocumentError
from mcp_app.kinds.openapi.schemas import (
    Translator,
    Unusable,
    resolve_references,
    target_of,
)
from mcp_app.protocol import schemas

DOCUMENT: Any = {
    "components": {
        "schemas": {
            "Pet": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "example": "Rex", "x-a": 1},
                    "id": {"type": "integer", "readOnly": True},
                    "made": {"$ref": "#/components/schemas/Made"},
                },
                "required": ["id", "name"],
                "discriminator": {"propertyName": "name"},
                "xml": {},
            },
            "Made": {"type": "string", "readOnly": True},
            "Node": {
                "type": "object",
                "properties": {"next": {"$ref": "#/components/schemas/Node"}},
            },
            "A": {"items": {"$ref": "#/components/schemas/B"}},
            "B": {"items": {"$ref": "#/components/schemas/A"}},
            "Long": {"enum": ["a" * 100 + str(n) for n in range(400)]},
            "a/b~c d": {"type": "boolean"},
            "Bad": {"properties": {"x": {"$ref": "#/nowhere"}}},
        }
    },
    "list": [{"type": "null"}],
}


def translated(schema: Any, *, old: bool = False) -> tuple[Any, Any]:
    translator = Translator(DOCUMENT, old=old)
    made = translator.translate(schema)
    return made, translator.definitions_of(made)


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def test_what_is_dropped() -> None:
    made, definitions = translated(ref("Pet"))
    assert made == {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }
    assert definitions == {}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"nullable": True}, {}),
        (
            {"nullable": True, "allOf": [{"type": "string"}]},
            {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"minimum": 1, "exclusiveMinimum": False}, {"minimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": True}, {"exclusiveMaximum": 1}),
        ({"exclusiveMaximum": True}, {}),
        ({**ref("Made"), "description": "x"}, {"type": "string", "readOnly": True}),
    ],
)
def test_what_only_the_old_version_says(given: Any, made: Any) -> None:
    assert translated(given, old=True) == (made, {})


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": "string", "nullable": True}, {"type": "string", "nullable": True}),
        ({"exclusiveMinimum": 1}, {"exclusiveMinimum": 1}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"$recursiveAnchor": True, "items": {"$recursiveRef": "#"}}, {"items": {}}),
        (True, True),
        ({"items": False}, {"items": False}),
        (
            {**ref("a~1b~0c%20d"), "description": "x"},
            {"type": "boolean", "description": "x"},
        ),
        (
            {**ref("Made"), "type": ["string", "null"]},
            {
                "allOf": [
                    {"type": "string", "readOnly": True},
                    {"type": ["string", "null"]},
                ]
            },
        ),
        ({"anyOf": [ref("a~1b~0c d"), {"not": ref("a~1b~0c d")}]}, None),
        ({"$ref": "#/list/0"}, {"type": "null"}),
    ],
)
def test_the_new_versions(given: Any, made: Any) -> None:
    result, definitions = translated(given)
    if made is None:
        made = {"anyOf": [{"type": "boolean"}, {"not": {"type": "boolean"}}]}
    assert (result, definitions) == (made, {})


def test_what_refers_to_itself() -> None:
    made, definitions = translated({"items": ref("Node")})
    assert made == {"items": {"$ref": "#/$defs/Node"}}
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert definitions == {"Node": node}
    whole = {**made, "$defs": definitions}
    assert schemas.compile_schema(whole).is_valid([{"next": {"next": {}}}])
    assert not schemas.compile_schema(whole).is_valid([{"next": {"next": 5}}])


def test_a_circle_of_two() -> None:
    translator = Translator(DOCUMENT, old=False)
    made = translator.translate(ref("A"))
    again = translator.translate(ref("B"))
    for each in (made, again):
        definitions = translator.definitions_of(each)
        assert schemas.compile_schema({**each, "$defs": definitions}).is_valid([[]])
        assert definitions


def test_long_ones_are_definitions() -> None:
    made, definitions = translated({"items": ref("Long")})
    assert made == {"items": {"$ref": "#/$defs/Long"}}
    assert len(definitions["Long"]["enum"]) == 400


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"$ref": "#/nowhere"}, "its reference '#/nowhere' leads nowhere"),
        ({"$ref": "#/list/1"}, "leads nowhere"),
        ({"$ref": "#/list/x"}, "leads nowhere"),
        ({"$ref": "other.json#/a"}, "leads to another document"),
        ({"$ref": "https://evil.example/a"}, "leads to another"),
        ({"$ref": 5}, "leads nowhere"),
        ({"$ref": "#anchor"}, "its reference '#anchor' leads nowhere"),
        ({"$ref": "#list/0"}, "leads nowhere"),
        (ref("Bad"), "leads nowhere"),
        ({"properties": {"a": 5}}, "neither an object nor a boolean"),
    ],
)
def test_what_cannot_be_used(schema: Any, said: str) -> None:
    translator = Translator(DOCUMENT, old=False)
    for _ in range(2):
        with pytest.raises(Unusable, match=said):
            translator.translate(schema)
    assert translator.translate(ref("a~1b~0c d")) == {"type": "boolean"}


def test_a_schema_that_is_too_deep() -> None:
    schema: Any = {}
    for _ in range(200):
        schema = {"items": schema}
    with pytest.raises(Unusable, match="nested too deep"):
        translated(schema)


def test_references_count_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NODES", 1_000)
    document = {f"s{n}": {"allOf": [{"$ref": f"#/s{n - 1}"}] * 10} for n in range(1, 9)}
    translator = Translator({"s0": {}, **document}, old=False)
    with pytest.raises(DocumentError, match="references counted each time"):
        translator.translate({"$ref": "#/s8"})


def test_references_of_other_parts() -> None:
    circle: Any = {"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}, "c": {"d": 1}}
    assert resolve_references(circle, {"$ref": "#/c"}) == {"d": 1}
    assert target_of(circle, "#") is circle
    with pytest.raises(Unusable, match="circle"):
        resolve_references(circle, {"$ref": "#/a"})
    with pytest.raises(Unusable, match="no object"):
        resolve_references(circle, [])


def test_a_long_chain_of_references() -> None:
    """What refers to a hundred others in turn is no deep schema."""
    document = {f"s{n}": {"items": {"$ref": f"#/s{n + 1}"}} for n in range(100)}
    translator = Translator({**document, "s100": {"type": "integer"}}, old=False)
    made = translator.translate({"$ref": "#/s0"})
    whole = {**made, "$defs": translator.definitions_of(made)}
    schemas.check_schema(whole)
    assert schemas.compile_schema(whole).is_valid([[[]]])
    assert len(whole["$defs"]) > 1


def test_a_long_chain_that_leads_nowhere() -> None:
    document: Any = {f"s{n}": {"items": {"$ref": f"#/s{n + 1}"}} for n in range(50)}
    translator = Translator(document, old=False)
    for _ in range(2):
        with pytest.raises(Unusable, match="leads nowhere"):
            translator.translate({"$ref": "#/s0"})
    document["s50"] = {}
    assert translator.translate({"$ref": "#/s0"})
