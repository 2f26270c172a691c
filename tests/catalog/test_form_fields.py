from __future__ import annotations

from typing import Any

import pytest

from mcp_app.catalog.form_fields import UnfitForm, field_schema

TITLED = [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]

LIST: dict[str, Any] = {
    "type": "array",
    "items": {"type": "string", "enum": ["a", "b"]},
}

FITTING: list[dict[str, Any]] = [
    {"type": "string"},
    {
        **{"type": "string", "title": "Name", "description": "In full"},
        **{"minLength": 1, "maxLength": 9},
        **{"pattern": "^a", "format": "email", "default": "a"},
    },
    *({"type": "string", "format": each} for each in ("uri", "date", "date-time")),
    {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
    {"type": "number", "default": 1},
    {"type": "integer", "minimum": 0, "default": 0},
    {"type": "boolean", "default": False},
    {"type": "string", "enum": ["a", "b"], "default": "a"},
    {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
    {"type": "string", "oneOf": TITLED, "default": "b"},
    {**LIST, "minItems": 1, "maxItems": 2, "default": ["a"]},
    {"type": "array", "items": {"anyOf": TITLED}, "default": []},
]


def test_what_the_protocol_knows_stays_as_it_is() -> None:
    assert [field_schema("field", each, exact=True) for each in FITTING] == FITTING


SHORTENED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "string", "format": "uuid"}, {"type": "string"}),
    ({"type": "integer", "exclusiveMinimum": 3}, {"type": "integer"}),
    (
        {
            "type": "array",
            "items": {"type": "string", "enum": ["a"]},
            "uniqueItems": True,
        },
        {"type": "array", "items": {"type": "string", "enum": ["a"]}},
    ),
    ({"type": "number", "default": "1.5"}, {"type": "number"}),
    ({"type": "integer", "default": 1.5}, {"type": "integer"}),
]


@pytest.mark.parametrize(("schema", "kept"), SHORTENED)
def test_members_that_the_form_itself_will_check(
    schema: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert field_schema("field", schema, exact=False) == kept
    with pytest.raises(UnfitForm, match=r"The field field has .*, which this kind"):
        field_schema("field", schema, exact=True)


def test_a_pattern_stays_where_nothing_else_will_check_it() -> None:
    schema = {"type": "string", "pattern": "^a"}
    assert field_schema("field", schema, exact=True) == schema
    assert field_schema("field", schema, exact=False) == {"type": "string"}


REWRITTEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "string", "const": "a"}, {"type": "string", "enum": ["a"]}),
    (
        {"type": "array", "items": {"type": "string", "const": "a"}},
        {"type": "array", "items": {"type": "string", "enum": ["a"]}},
    ),
    (
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        {"type": "integer"},
    ),
    (
        {"anyOf": [{"type": "null"}, {"type": "string", "minLength": 1}], "title": "T"},
        {"type": "string", "minLength": 1, "title": "T"},
    ),
]


@pytest.mark.parametrize(("schema", "kept"), REWRITTEN)
def test_other_ways_to_say_the_same(
    schema: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert field_schema("field", schema, exact=False) == kept


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"type": "object"}, "is of the type 'object'; forms allow texts, numbers"),
    ({"$ref": "#/$defs/Address"}, "is of the type 'object'"),
    ({}, "is of the type 'object'"),
    ({"type": ["string", "null"]}, "is of the type ['string', 'null']"),
    ({"type": "null"}, "is of the type 'null'"),
    (
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "has several types; forms allow one.",
    ),
    ({"type": "integer", "enum": [1, 2]}, "must be texts."),
    ({"type": "number", "const": 1}, "must be texts."),
    ({"type": "string", "enum": ["a", 1]}, "must be texts."),
    ({"type": "string", "enum": "ab"}, "must be texts."),
    ({"type": "string", "oneOf": [{"const": "a"}]}, "needs a const and a title"),
    ({"type": "string", "oneOf": [{"const": 1, "title": "A"}]}, "both texts."),
    ({"type": "array", "items": {"anyOf": ["a"]}}, "needs a const and a title"),
    ({"type": "array", "items": {"type": "string"}}, "lists of given choices only."),
    ({"type": "array"}, "lists of given choices only."),
    ({"type": "string", "format": "password"}, "asks for a secret"),
    ({"type": "string", "minLength": -1}, "The minLength of the field field is -1;"),
    ({"type": "string", "maxLength": True}, "must be a whole number, 0 or more."),
    ({"type": "string", "maxLength": "9"}, "is '9'; it must be a whole number"),
    ({**LIST, "minItems": 0.5}, "The minItems of the field field is 0.5;"),
    ({**LIST, "maxItems": -2}, "The maxItems of the field field is -2;"),
    (
        {"type": "string", "enum": ["a", "b"], "default": "c"},
        "The default of the field field is 'c', but 'c' is none of its choices.",
    ),
    ({"type": "string", "oneOf": TITLED, "default": "A"}, "'A' is none of its"),
    ({"type": "string", "const": "a", "default": ""}, "'' is none of its choices."),
    (
        {**LIST, "default": ["a", "c"]},
        "The default of the field field is ['a', 'c'], but 'c' is none",
    ),
    ({"type": "array", "items": {"anyOf": TITLED}, "default": [1]}, "but 1 is none"),
]


@pytest.mark.parametrize(("schema", "sentence"), REFUSED)
def test_refused(schema: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UnfitForm) as refusal:
        field_schema("field", schema, exact=False)
    assert "the field field" in str(refusal.value).lower()
    assert sentence in str(refusal.value)


def test_forms_do_not_ask_for_secrets() -> None:
    names = "password new_password newPassword token access-token API_KEY apiKey"
    for name in (*names.split(), "client_secret", "card_number"):
        with pytest.raises(UnfitForm, match=f"The field {name} asks for a secret"):
            field_schema(name, {"type": "string"}, exact=True)
    for name in ("tokens_used", "passenger", "secretary", "key"):
        assert field_schema(name, {"type": "integer"}, exact=True)
