"""Fields of a JSON Schema, and what is read from them."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from django.http import QueryDict

from mcp_app.admin.editors.schema_fields import (
    Field,
    Unreadable,
    fields_of,
    fill_in_fields,
    values_of,
)
from mcp_app.interface.rules import visible
from mcp_app.site_time import local_date

PREFIX: Final = "argument-"
TYPES: Final[list[tuple[dict[str, Any], str, str, object]]] = [
    ({"type": "string"}, "text", '"a\\nb"', "a\nb"),
    ({"type": "string"}, "text", " ", " "),
    ({"type": "string", "contentMediaType": "text/plain"}, "long", "a\r\nb", "a\nb"),
    ({"type": "integer"}, "integer", "1" + "0" * 400, 10**400),
    ({"type": "boolean"}, "boolean", "yes", True),
    ({"type": "string", "enum": ["<b>", '"q"']}, "choice", '"q"', '"q"'),
    ({"type": "string", "enum": ["a,b", "\u202ec"]}, "choice", "\u202ec", "\u202ec"),
    ({"type": "string", "format": "uuid"}, "text", "5f", "5f"),
    ({"type": "integer", "exclusiveMinimum": 0}, "integer", "1", 1),
    ({"type": ["string", "null"]}, "text", "tea", "tea"),
    ({"type": ["string", "integer"]}, "json", "5", 5),
    ({"enum": ["a", "b", None]}, "choice", "b", "b"),
    ({"type": "integer", "enum": [1, 2]}, "choice", "2", 2),
    ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "boolean", "no", False),
    (
        {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]},
        "number",
        "9.99",
        9.99,
    ),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "json", "5", 5),
    ({"type": "string", "enum": ["", "a"]}, "json", '""', ""),
    ({"type": "string", "enum": ["a\nb"]}, "json", '"a\\nb"', "a\nb"),
]
SEVERAL: Final = {
    "type": "array",
    "items": {"type": "string", "enum": ["s", "l", "x"]},
    "uniqueItems": True,
}

TITLED: Final = [{"const": "s", "title": "Small"}, {"const": "l", "title": "L"}]


def made(**properties: object) -> list[Field]:
    fields = fields_of({"type": "object", "properties": properties}, PREFIX)
    assert fields is not None
    return fields


def sent(fields: list[Field], *texts: str) -> QueryDict:
    data = QueryDict(mutable=True)
    for field, text in zip(fields, texts, strict=True):
        data[field.name] = text
    return data


def read(fields: list[Field], *texts: str) -> dict[str, Any]:
    return values_of(fill_in_fields(fields, sent(fields, *texts)))


def refused(fields: list[Field], *texts: str) -> list[str]:
    with pytest.raises(Unreadable) as caught:
        read(fields, *texts)
    return [each.error for each in caught.value.fields]


@pytest.mark.parametrize(("about", "kind", "text", "value"), TYPES)
def test_a_property_is_read_as_its_type(
    about: dict[str, Any], kind: str, text: str, value: object
) -> None:
    fields = made(it=about)
    assert fields[0].kind == kind
    assert read(fields, text) == {"it": value}
    assert type(read(fields, text)["it"]) is type(value)
    assert read(fields, "") == {}
    assert values_of(fill_in_fields(fields, QueryDict())) == {}


def test_what_may_be_null_is_its_other_type() -> None:
    """What is required is then sent as null if nothing is typed."""
    size = {"anyOf": [SEVERAL, {"type": "null"}], "default": None, "description": "S."}
    fields = fields_of({"properties": {"a": size, "b": size}, "required": ["b"]}, "")
    assert fields is not None
    assert [(each.kind, each.about, each.left_out) for each in fields] == [
        ("choices", "S.", "")
    ] * 2
    assert all(each.may_be_null and each.has_ticks for each in fields)
    assert values_of(fields) == {"b": None}
    [day] = made(day={"type": ["string", "null"], "format": "date"})
    assert (day.kind, day.may_be_null) == ("date", True)


def test_a_list_says_what_stands_between_its_entries() -> None:
    texts = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    [field] = fields_of({"properties": {"a": texts}}, "") or []
    assert field.hint.startswith("List of texts, commas between them, ")


def test_periods_say_their_days() -> None:
    [field] = made(begins={"type": "string", "enum": ["today", "this_year"]})
    year = local_date().year
    assert field.options[1].text == f"this_year (1 Jan to 31 Dec {year})"
    assert str(year) in field.options[0].text


def test_several_choices() -> None:
    fields = made(sizes=SEVERAL)
    data = QueryDict(mutable=True)
    data.setlist(fields[0].name, ["l", "s", "forged"])
    shown = fill_in_fields(fields, data)
    assert [each.value for each in shown[0].options if each.chosen] == ["s", "l"]
    assert values_of(shown) == {"sizes": ["s", "l"]}


@pytest.mark.parametrize(
    ("about", "text", "said"),
    [
        ({"type": "string"}, '"a', ""),
        ({"type": "string"}, '"\\ud800"', "begins with a double quote"),
        ({}, '"a\\u0000b"', "The text has the character NUL (U+0000)"),
        ({}, '"\\ud800"', "surrogate"),
        ({}, "{", "The text is not JSON"),
        ({}, '{"a": 1, "a": 2}', "a"),
        ({}, "1e400", "1"),
    ],
)
def test_what_cannot_be_read_is_told_at_its_field(
    about: dict[str, Any], text: str, said: str
) -> None:
    fields = made(fine={"type": "string"}, it=about)
    if not said:
        assert read(fields, "x", text) == {"fine": "x", "it": text}
        return
    fine, wrong = refused(fields, "x", text)
    assert not fine
    assert said in wrong


def test_a_choice_that_there_is_not_is_not_sent() -> None:
    fields = made(it={"type": "string", "enum": ["a"]}, on={"type": "boolean"})
    assert read(fields, "forged", "maybe") == {}


@pytest.mark.parametrize(
    "name", ["csrfmiddlewaretoken", "__proto__", "once", "who", "ä b", "", "a" * 300]
)
def test_a_property_may_be_called_as_it_likes(name: str) -> None:
    fields = made(**{name: {"type": "string"}, "other": {"type": "string"}})
    assert (fields[0].key, fields[0].label) == (name, visible(name) or '""')
    assert fields[0].name.startswith(PREFIX)
    assert fields[0].name.isascii()
    assert len({each.name for each in fields}) == 2
    assert read(fields, "mine", "") == {name: "mine"}


def test_200_properties_and_one_that_is_like_none() -> None:
    properties: dict[str, object] = {f"p{at}": {"type": "integer"} for at in range(200)}
    fields = made(**properties, last={"type": "object"})
    assert [each.kind for each in fields] == ["integer"] * 200 + ["json"]
    assert json.loads(fields[-1].schema) == {"type": "object"}
    assert read(fields, *map(str, range(200)), "")["p199"] == 199


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {}}, "oneOf": [{"required": ["a"]}]},
        {"properties": {"a": {}}, "anyOf": [{}]},
        {"properties": {"a": {}}, "allOf": [{}]},
        {"properties": {"a": {}}, "if": {}},
        {"$ref": "#/$defs/a"},
        {"properties": ["a"]},
    ],
)
def test_of_some_schemas_only_the_whole_is_json(schema: dict[str, Any]) -> None:
    assert fields_of(schema, PREFIX) is None


def test_what_is_no_schema_has_an_area_of_json() -> None:
    for about in (True, False, None, 5, "text", ["a"]):
        [field] = made(it=about)
        assert (field.kind, json.loads(field.schema)) == ("json", about)


def test_examples_fill_it_in_and_defaults_are_told() -> None:
    schema = {
        "properties": {
            "text": {"type": "string", "examples": ["tea"], "minLength": 2},
            "number": {"type": "integer", "default": 0},
            "on": {"type": "boolean", "examples": [False]},
            "size": {"type": "string", "enum": ["s", "l"], "examples": ["l"]},
            "any": {"examples": [{"a": 1}], "description": "Any\u202ething"},
        },
        "required": ["text"],
    }
    as_text = fields_of({**schema, "required": "text"}, PREFIX) or []
    assert not any(each.required for each in as_text)
    fields = fields_of(schema, PREFIX) or []
    assert [each.required for each in fields] == [True, False, False, False, False]
    assert fields[0].value == "tea"
    assert (fields[0].limits, fields[0].left_out) == ("at least 2 characters", "")
    assert (fields[1].limits, fields[1].left_out) == ("", "0")
    chosen = [[o.value for o in each.options if o.chosen] for each in fields[2:4]]
    assert chosen == [["no"], ["l"]]
    assert json.loads(fields[4].value) == {"a": 1}
    assert fields[4].about == "Any⟦U+202E⟧thing"
    read_values = {"text": "tea", "on": False, "size": "l", "any": {"a": 1}}
    assert values_of(fields) == read_values


@pytest.mark.parametrize(
    ("about", "kind"),
    [
        ({"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "L"]}, "choice"),
        ({"type": "string", "oneOf": TITLED}, "choice"),
        ({"type": "array", "items": {"anyOf": TITLED}}, "choices"),
    ],
)
def test_the_choices_of_questions_have_titles(about: dict[str, Any], kind: str) -> None:
    [field] = made(it=about)
    assert field.kind == kind
    options = [(each.value, each.text) for each in field.options]
    assert options == [("s", "Small"), ("l", "L")]


@pytest.mark.parametrize("titles", [["Small"], ["Small", 5], [], ["S", "L", "X"]])
def test_titles_that_do_not_fit(titles: list[Any]) -> None:
    [field] = made(it={"type": "string", "enum": ["s", "l"], "enumNames": titles})
    assert field.kind in ("choice", "json")
    assert all(each.text for each in field.options)


def test_a_question_is_filled_in_with_defaults() -> None:
    properties = {
        "text": {"type": "string", "default": "tea", "examples": ["milk"]},
        "on": {"type": "boolean", "default": True},
        "size": {"type": "string", "enum": ["s", "l"], "default": "l"},
        "none": {"type": "string"},
    }
    fields = fields_of({"properties": properties}, PREFIX, is_question=True) or []
    assert values_of(fields) == {"text": "tea", "on": True, "size": "l"}
    assert [each.left_out for each in fields] == ["", "", "", ""]
