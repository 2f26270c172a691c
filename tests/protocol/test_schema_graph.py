from __future__ import annotations

import pytest

from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schema_graph import (
    DEEPEST_VALUE,
    SchemaError,
    SchemaGraph,
    every_subschema,
    secret_members,
)

LEAF = {"type": "string"}

INSIDE: list[tuple[JsonObject, list[str]]] = [
    *(({}, []), (LEAF, [])),
    ({"properties": {"a": LEAF, "b": LEAF}}, ["properties/a", "properties/b"]),
    *(({"properties": {"a": True}}, []), ({"items": LEAF}, ["items"])),
    ({"items": [LEAF, LEAF]}, ["items/0", "items/1"]),
    ({"prefixItems": [LEAF], "contains": LEAF}, ["prefixItems/0", "contains"]),
    ({"anyOf": [LEAF, False]}, ["anyOf/0"]),
    ({"not": {"not": LEAF}}, ["not", "not/not"]),
    ({"if": LEAF, "then": LEAF, "else": LEAF}, ["if", "then", "else"]),
    ({"$defs": {"a": LEAF}, "$ref": "#/$defs/a"}, ["$defs/a"]),
    ({"dependencies": {"a": ["b"], "c": LEAF}}, ["dependencies/c"]),
    ({"patternProperties": {"^a": LEAF}}, ["patternProperties/^a"]),
    # Values and unknown keywords hold no schemas.
    ({"enum": [LEAF], "const": {"items": LEAF}, "default": LEAF, "x-y": LEAF}, []),
    (
        {"properties": {"properties": {"items": LEAF}}},
        ["properties/properties", "properties/properties/items"],
    ),
    # Not what the keyword takes.
    ({"properties": [LEAF], "items": 1, "allOf": {"a": 1}}, ["properties/0", "allOf"]),
]


@pytest.mark.parametrize(("schema", "places"), INSIDE)
def test_subschemas_are_found_by_keyword(schema: JsonObject, places: list[str]) -> None:
    (root, *inner) = every_subschema(schema)
    assert root == ((), 0, schema)
    assert ["/".join(map(str, found.path)) for found in inner] == places


def test_depth_counts_schemas_around_a_schema() -> None:
    schema: JsonObject = {"properties": {"a": {"items": {"not": {}}}}}
    assert [found.depth for found in every_subschema(schema)] == [0, 1, 2, 3]


def doubled(keyword: str, levels: int) -> JsonObject:
    """A chain of definitions that each apply the next one twice."""
    definitions: JsonObject = {f"a{levels}": LEAF}
    for level in range(levels):
        next_one = {"$ref": f"#/$defs/a{level + 1}"}
        definitions[f"a{level}"] = {keyword: [next_one, next_one]}
    return {"$defs": definitions, "$ref": "#/$defs/a0"}


EXPANSIONS: list[tuple[JsonObject, int]] = [
    ({}, 1),
    ({"properties": {"a": LEAF, "b": LEAF}}, 1),
    ({"anyOf": [LEAF, LEAF]}, 3),
    ({"not": {"allOf": [LEAF, LEAF]}, "if": LEAF}, 5),
    ({"properties": {"a": {"anyOf": [LEAF, LEAF]}}}, 3),
    ({"$defs": {"a": LEAF}, "$ref": "#/$defs/a"}, 2),
    # Each level is itself, two references and twice the next: 1, 5, 13, 29, …
    (doubled("allOf", 1), 6),
    (doubled("anyOf", 16), 4 * 2**16 - 2),
]


def test_expansion_counts_what_applies_to_one_place() -> None:
    for schema, expected in EXPANSIONS:
        assert SchemaGraph(schema).expansion() == expected, schema


def branch(name: str) -> JsonObject:
    return {"properties": {name: {"$ref": "#"}}}


GROWTHS: list[tuple[JsonObject, int, int]] = [
    # A schema, what applies to its root, and to its deepest place.
    (LEAF, 1, 1),
    ({"properties": {"a": LEAF}, "items": LEAF}, 1, 1),
    ({"properties": {"a": {"anyOf": [LEAF, LEAF]}}}, 1, 3),
    ({"properties": {"a": LEAF}, "additionalProperties": LEAF}, 1, 2),
    ({"prefixItems": [LEAF], "items": {"not": LEAF}}, 1, 3),
    ({"items": [LEAF, {"not": LEAF}], "additionalItems": LEAF}, 1, 3),
    ({"items": {"$ref": "#"}}, 1, 2),
    ({"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}}, 1, 2),
    ({"anyOf": [branch("a"), branch("b"), LEAF]}, 4, 5),
    ({"anyOf": [branch("a"), branch("a")]}, 3, 2 ** (DEEPEST_VALUE + 2)),
]


def test_growth_is_what_applies_to_one_place_by_depth() -> None:
    for schema, root, deepest in GROWTHS:
        growth = SchemaGraph(schema).growth_by_depth()
        assert (growth[0], growth[-1]) == (root, deepest)
        assert list(growth) == sorted(growth)


LOCAL: list[JsonObject] = [
    {"properties": {"a": {"$ref": "#"}}},
    {"$defs": {"a b/c~": LEAF}, "$ref": "#/$defs/a%20b~1c~0"},
    {"$defs": {"a": {"$anchor": "here"}}, "$ref": "#here"},
    {"$defs": {"a": {"$dynamicAnchor": "here"}}, "$dynamicRef": "#here"},
    {"definitions": {"a": {"$id": "#here"}}, "$ref": "#here"},
    {"prefixItems": [{"$ref": "#/prefixItems/1"}, LEAF]},
    {"items": {"$recursiveRef": "#"}},
    {"x-other": {"a": LEAF}, "$ref": "#/x-other/a"},
    {"$defs": {"any": True}, "$ref": "#/$defs/any"},
    {"properties": {"$ref": {"type": "string"}}},
    {"const": {"$ref": "http://example.org/"}},
]
NOT_LOCAL = [
    *("http://example.org/schema", "https://example.org/schema#/a"),
    *("file:///etc/passwd", "ftp://example.org/x", "other.json", "/etc/passwd", ""),
    *(" #", 5),
]
NOWHERE = ["#/$defs/b", "#/$defs/a/0", "#/anyOf/1", "#/anyOf/x", "#nothing", "#/title"]
ENDLESS: list[JsonObject] = [
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}]},
    {"anyOf": [LEAF, {"not": {"$ref": "#"}}]},
    {"if": {"$dynamicRef": "#"}},
    {"dependentSchemas": {"a": {"$ref": "#"}}},
    {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    {"properties": {"a": {"$ref": "#/properties/a"}}},
]


@pytest.mark.parametrize("schema", LOCAL)
def test_local_references_are_followed(schema: JsonObject) -> None:
    assert SchemaGraph(schema).expansion() >= 1


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef"])
@pytest.mark.parametrize("reference", NOT_LOCAL)
def test_nothing_is_fetched(keyword: str, reference: object) -> None:
    with pytest.raises(SchemaError, match="nothing is fetched"):
        SchemaGraph({"properties": {"a": {keyword: reference}}})


@pytest.mark.parametrize("reference", NOWHERE)
def test_a_reference_names_a_schema(reference: str) -> None:
    schema = {"title": "x", "$defs": {"a": LEAF}, "anyOf": [LEAF]}
    with pytest.raises(SchemaError, match="leads to no schema in this document"):
        SchemaGraph({**schema, "$ref": reference})


@pytest.mark.parametrize("schema", ENDLESS)
def test_a_schema_that_applies_itself_is_refused(schema: JsonObject) -> None:
    with pytest.raises(SchemaError, match="would never end"):
        SchemaGraph(schema)


def test_a_long_chain_of_references_needs_no_recursion() -> None:
    definitions: JsonObject = {"a1999": LEAF}
    for link in range(1999):
        definitions[f"a{link}"] = {"$ref": f"#/$defs/a{link + 1}"}
    graph = SchemaGraph({"$defs": definitions, "items": {"$ref": "#/$defs/a0"}})
    assert (graph.expansion(), graph.growth_by_depth()[-1]) == (2001, 2001)


@pytest.mark.parametrize(
    "reference",
    ["#/properties/code", "#/$defs/a~1b/properties/code", "#/$defs/a%20b", "#code"],
)
def test_what_refers_to_a_secret_is_one(reference: str) -> None:
    secret = {"format": "password", "$anchor": "code"}
    schema = {
        "properties": {"code": secret, "again": {"items": {"$ref": reference}}},
        "$defs": {"a/b": {"properties": {"code": secret}}, "a b": secret},
    }
    assert {"code", "again"} <= secret_members(schema)
    assert "again" not in secret_members({**schema, "properties": {"again": {}}})
