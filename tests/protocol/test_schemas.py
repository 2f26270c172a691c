from __future__ import annotations

import math
import socket
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.protocol import schema_graph, schemas
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schemas import SchemaError, SchemaLimits, Violation, check_schema

ORDER = {
    "type": "object",
    "properties": {
        "customer": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "minimum": 1},
        "items": {
            "type": "array",
            "items": {"properties": {"price": {"type": "number"}}},
        },
    },
    "required": ["customer"],
    "additionalProperties": False,
}

SHORT = "The value is shorter than 1 character."
NO_INTEGER = 'The value is not of type "integer", such as 3.'
NO_NUMBER = 'The value is not of type "number", such as 1.5.'
MORE = "Additional properties are not allowed ('more' was unexpected)."
VALUES: list[tuple[object, list[tuple[str, str, str]]]] = [
    ({"customer": "a"}, []),
    ({"customer": "a", "limit": 10, "items": [{"price": 1.5}]}, []),
    ({"customer": "a", "limit": 10.0}, []),
    ({}, [("$", "required", '"customer" is a required property.')]),
    ([], [("$", "type", 'The value is not of type "object".')]),
    (
        {"customer": "", "limit": True},
        [("$.customer", "minLength", SHORT), ("$.limit", "type", NO_INTEGER)],
    ),
    ({"customer": "a", "more": 1}, [("$", "additionalProperties", MORE)]),
    (
        {"customer": "a", "items": [{}, {"price": "much"}]},
        [("$.items[1].price", "type", NO_NUMBER)],
    ),
]


def test_violations_name_the_place_the_rule_and_no_value() -> None:
    for value, expected in VALUES:
        validator = schemas.compile_schema(ORDER)
        violations = validator.violations(value)
        assert violations == [Violation(*each) for each in expected]
        assert validator.is_valid(value) is (expected == [])


def test_violations_are_ordered_by_place_and_limited() -> None:
    validator = schemas.compile_schema({"items": {"type": "string"}})
    found = validator.violations(list(range(30)))
    assert [violation.path for violation in found] == [f"$[{n}]" for n in range(20)]
    assert len(validator.violations(list(range(30)), limit=3)) == 3


def test_long_names_are_cut() -> None:
    (found,) = schemas.compile_schema({"additionalProperties": False}).violations(
        {"x" * 9999: 1}
    )
    assert len(found.message) < 600
    (found,) = schemas.compile_schema(
        {"additionalProperties": {"type": "null"}}
    ).violations({"x" * 9999: 1})
    assert len(found.path) <= 500


NO_JSON: list[object] = [math.nan, "\ud800", {"a": object()}, {1, 2}]


@pytest.mark.parametrize("value", NO_JSON)
def test_what_is_no_json_does_not_fit(value: object) -> None:
    validator = schemas.compile_schema(
        {"type": "boolean", "additionalProperties": {"minLength": 1}}
    )
    assert not validator.is_valid([value] if isinstance(value, float) else value)
    (violation,) = validator.violations(value)
    assert violation.rule in {"json", "type"}
    assert violation.message.endswith(".")
    assert not violation.message.endswith("..")


DIALECTS: list[tuple[str | None, JsonObject]] = [
    (
        "https://json-schema.org/draft/2020-12/schema",
        {"prefixItems": [{"type": "null"}]},
    ),
    ("https://json-schema.org/draft/2019-09/schema#", {"items": [{"type": "null"}]}),
    ("http://json-schema.org/draft-07/schema#", {"items": [{"type": "null"}]}),
    ("http://json-schema.org/draft-07/schema", {"if": {}, "then": {"maxItems": 0}}),
    ("http://json-schema.org/draft-06/schema#", {"const": 1}),
    ("http://json-schema.org/draft-04/schema#", {"items": [{"type": "null"}]}),
    (None, {"prefixItems": [{"type": "null"}]}),
]


def test_the_dialect_is_the_schemas_own() -> None:
    for dialect, schema in DIALECTS:
        named = schema if dialect is None else {"$schema": dialect, **schema}
        check_schema(named)
        assert not schemas.compile_schema(named).is_valid(["x"])


def test_without_a_dialect_lists_of_items_are_those_of_2020_12() -> None:
    with pytest.raises(SchemaError, match=r"wrong at \$\.items"):
        check_schema({"items": [{"type": "null"}]})


FORMATS = [
    ("email", "a@example.org", "a"),
    ("uri", "https://example.org/", "no uri"),
    ("date-time", "2026-07-28T00:00:00Z", "yesterday"),
    ("uuid", "12345678-1234-5678-1234-567812345678", "1234"),
    ("ipv6", "::1", "1.2.3.4"),
]


@pytest.mark.parametrize(("name", "good", "bad"), FORMATS)
def test_formats_are_asserted(name: str, good: str, bad: str) -> None:
    validator = schemas.compile_schema({"format": name})
    assert validator.is_valid(good)
    assert [violation.rule for violation in validator.violations(bad)] == ["format"]


def test_unknown_formats_and_keywords_are_annotations() -> None:
    check_schema({"format": "colour", "x-mcp-header": "A", "discriminator": {}})
    assert schemas.compile_schema({"format": "colour"}).is_valid("red")


def test_schemas_with_the_same_content_share_a_validator() -> None:
    one = schemas.compile_schema({"type": "string", "maxLength": 3})
    assert schemas.compile_schema({"maxLength": 3, "type": "string"}) is one
    assert schemas.compile_schema({"maxLength": 4, "type": "string"}) is not one


def test_integers_in_a_schema_are_exact() -> None:
    validator = schemas.compile_schema({"maximum": 2**64})
    assert validator.is_valid(2**64)
    assert not validator.is_valid(2**64 + 1)


REFUSED: list[tuple[object, str]] = [
    ([], "must be a JSON object"),
    (True, "must be a JSON object"),
    ({"const": math.nan}, r"not JSON: \$.const is nan"),
    ({"title": "\ud800"}, r"not JSON: \$.title has half"),
    ({"type": "text"}, r"wrong at \$.type"),
    ({"properties": {"a": {"minimum": "1"}}}, r"wrong at \$.properties.a.minimum"),
    ({"properties": {"a": 5}}, r"wrong at \$.properties.a"),
    ({"properties": []}, r"wrong at \$.properties"),
    ({"required": ["a", "a"]}, r"wrong at \$.required"),
    ({"pattern": "("}, r"wrong at \$.pattern"),
    ({"$ref": "http://127.0.0.1:1/x"}, "nothing is fetched"),
    ({"items": {"$ref": "file:///etc/passwd"}}, "nothing is fetched"),
    ({"$ref": "#/$defs/none"}, "leads to no schema"),
    ({"$ref": "#"}, "would never end"),
    ({"$schema": "http://127.0.0.1:1/dialect"}, "dialect 'http://127.0.0.1:1/dialect'"),
    ({"$schema": "http://json-schema.org/draft-03/schema#"}, "draft-03.*not supported"),
    ({"$schema": 5}, "dialect '5' is not supported"),
    (
        {"items": {"$schema": "http://json-schema.org/draft-07/schema#"}},
        r"dialect changes at \$.items",
    ),
    ({"items": {"$id": "http://example.org/"}}, r"'\$id' at \$.items would change"),
    (
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "items": {"id": "http://example.org/"},
        },
        r"'id' at \$.items would change",
    ),
    ({"title": "x" * 262_144}, "bytes; the limit is 262144"),
    ({"anyOf": [{}] * 2001}, "more than 2000 subschemas"),
]


@pytest.mark.parametrize(("schema", "sentence"), REFUSED)
def test_schemas_that_are_not_taken(schema: JsonObject, sentence: str) -> None:
    with pytest.raises(SchemaError, match=sentence) as caught:
        check_schema(schema)
    assert len(str(caught.value)) < 1000


def nested(levels: int) -> JsonObject:
    schema: JsonObject = {}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


def test_depth_and_the_other_limits_are_parameters() -> None:
    check_schema(nested(32))
    with pytest.raises(SchemaError, match="nests schemas more than 32 deep"):
        check_schema(nested(33))
    check_schema(nested(33), SchemaLimits(depth=33))
    with pytest.raises(SchemaError, match="more than 3 subschemas"):
        check_schema(nested(4), SchemaLimits(subschemas=3))
    with pytest.raises(SchemaError, match="the limit is 10"):
        check_schema(nested(3), SchemaLimits(size=10))


def test_t14_a_schema_that_doubles_is_refused_before_it_is_compiled() -> None:
    definitions: JsonObject = {"a16": {"type": "integer"}}
    for level in range(16):
        next_one = {"$ref": f"#/$defs/a{level + 1}"}
        definitions[f"a{level}"] = {"allOf": [next_one, next_one]}
    with pytest.raises(SchemaError, match="expands to more than 100000"):
        check_schema({"$defs": definitions, "$ref": "#/$defs/a0"})


def test_the_example_of_the_conformance_suite_is_taken() -> None:
    schema: JsonObject = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.org/tool",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}},
            }
        },
        "properties": {
            "address": {"$ref": "#/$defs/address"},
            "other": {"$ref": "#addressDef"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"required": ["phone"]},
        "then": {"required": ["address"]},
        "else": {"required": ["email"]},
    }
    check_schema(schema)
    validator = schemas.compile_schema(schema)
    assert validator.is_valid({"phone": "1", "address": {"street": "a"}})
    assert not validator.is_valid({"email": "1", "other": {"street": 1}})


def test_neither_a_reference_nor_a_dialect_is_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as canary:
        address = canary.getsockname()
        url = f"http://127.0.0.1:{address[1]}/schema"
        for schema in (
            *({"$ref": url}, {"items": {"$dynamicRef": url}}, {"$schema": url}),
            *({"$defs": {"a": {"$schema": url}}}, {"$id": url, "$ref": "other"}),
        ):
            with pytest.raises(SchemaError):
                check_schema(schema)
            with pytest.raises(SchemaError):
                schemas.compile_schema(schema)
        # It may still stand in values and as the schema's name.
        schemas.compile_schema({"$id": url, "const": {"$ref": url}}).is_valid(
            {"$ref": url}
        )
        canary.settimeout(0.1)
        with pytest.raises(TimeoutError):
            canary.accept()
        # A visit would have been seen.
        with socket.create_connection(address):
            canary.accept()[0].close()


def operation(name: str) -> JsonObject:
    return {
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "op": {"const": name}},
        "required": ["op"],
    }


EXPRESSION = {"anyOf": [operation("add"), operation("mul"), {"type": "number"}]}


def expression(depth: int, op: str) -> object:
    value: object = 1
    for _ in range(depth):
        value = {"op": op, "left": value}
    return value


def test_a_recursive_schema_checks_what_it_can_in_time() -> None:
    check_schema(EXPRESSION)
    validator = schemas.compile_schema(EXPRESSION)
    assert validator.is_valid(expression(8, "add"))
    (found,) = validator.violations(expression(4, "sub"))
    assert (found.path, found.rule) == ("$.op", "const")


@pytest.mark.parametrize("depth", [20, 40, 60])
@pytest.mark.parametrize("op", ["add", "sub"])
def test_a_value_that_would_take_for_ever_does_not_fit(depth: int, op: str) -> None:
    # Unchecked, 60 levels are 2^60 steps.
    validator = schemas.compile_schema(EXPRESSION)
    assert not validator.is_valid(expression(depth, op))
    (found,) = validator.violations(expression(depth, op))
    assert found == Violation(
        "$",
        "schema",
        "The value does not match the schema, or is too deep to be checked in time.",
    )


def test_recursion_that_does_not_double_has_no_limit_but_the_readers() -> None:
    schema = {
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}},
        "additionalProperties": False,
    }
    deep: object = {}
    for _ in range(63):
        deep = {"left": deep}
    assert schemas.compile_schema(schema).is_valid(deep)


def test_of_a_large_value_the_first_violation_is_named() -> None:
    validator = schemas.compile_schema({"items": {"type": "string"}})
    assert validator.violations([1] * 99_000) == [
        Violation("$[0]", "type", 'The value is not of type "string".')
    ]


def test_a_large_value_for_an_involved_schema_has_no_places_named() -> None:
    kinds = [{"properties": {"a": {"const": number}}} for number in range(1200)]
    validator = schemas.compile_schema({"items": {"anyOf": kinds}})
    (found,) = validator.violations([{"a": -1}] * 10)
    assert (found.path, found.rule) == ("$", "schema")


HOSTILE: list[tuple[JsonObject, object]] = [
    ({"pattern": "^(a+)+$"}, "a" * 5000 + "!"),
    ({"pattern": "^(a|aa)+$"}, "a" * 5000 + "!"),
    ({"pattern": "^(a+)+(?=b)\\1$"}, "a" * 5000 + "!"),
    ({"uniqueItems": True}, [{"a": n} for n in range(3000)] + [{"a": 0}]),
    ({"type": "array", "multipleOf": 0.01}, 10**4000),
    ({"not": {"multipleOf": 3}}, 3 * 10**4000),
]


def test_hostile_values_are_refused_without_a_crash() -> None:
    for schema, value in HOSTILE:
        validator = schemas.compile_schema(schema)
        assert not validator.is_valid(value)
        assert validator.violations(value)


keywords = st.sampled_from(
    ["type", "items", "properties", "anyOf", "not", "$ref", "$schema", "$defs", "enum"]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["#", "string", "#/x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(keywords | st.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(st.dictionaries(keywords, json_values, max_size=4), json_values)
def test_a_schema_is_refused_or_checks_every_value(
    schema: JsonObject, value: object
) -> None:
    try:
        check_schema(schema)
    except SchemaError:
        return
    validator = schemas.compile_schema(schema)
    assert validator.is_valid(value) is (validator.violations(value) == [])


def test_the_order_of_violations_does_not_depend_on_the_order_of_keys() -> None:
    random, names = Random(3), [f"p{number}" for number in range(10)]  # noqa: S311
    found = []
    for _ in range(5):
        random.shuffle(names)
        properties = {name: {"type": "null"} for name in names}
        value = dict.fromkeys(random.sample(names, len(names)), 1)
        found.append(
            schemas.compile_schema({"properties": properties}).violations(value)
        )
    assert all(violations == found[0] for violations in found)


SHAPES: Final[list[object]] = [
    *({"x": {"type": "string"}}, {"0": True}, [{"type": "string"}], [[]], [5], 5),
    *("text", None, True),
]


def refusal(schema: JsonObject) -> str:
    try:
        check_schema(schema)
    except SchemaError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("keyword", sorted(schema_graph._KEYWORDS))
def test_a_keyword_of_a_wrong_shape_is_named(keyword: str) -> None:
    """Whatever stands there, a person reads where the schema is wrong."""
    schemas = [
        {"type": "object", **around}
        for shape in SHAPES
        for around in ({keyword: shape}, {"properties": {"a": {keyword: shape}}})
    ]
    refusals = [*filter(None, map(refusal, schemas))]
    assert [each for each in refusals if keyword not in each] == []
    # The dialect of 2020 has no such keyword.
    assert refusals or keyword == "additionalItems"


def test_what_clients_would_read_of_an_object_of_schemas() -> None:
    schema = {"properties": {"a": {"prefixItems": {"type": "string"}}}}
    with pytest.raises(SchemaError) as error:
        check_schema(schema)
    assert str(error.value) == (
        "The schema is wrong at $.properties.a.prefixItems: the value is not of type"
        ' "array".'
    )
