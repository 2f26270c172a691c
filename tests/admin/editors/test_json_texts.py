from __future__ import annotations

import json
import re

import pytest

from mcp_app.admin.editors.json_texts import (
    check_schema_text,
    formatted_text,
    is_same_json,
    parse_strict_json,
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n"a": 1,\n}', "Line"),
        ('{\n"a" 1}', "Line 2: This is not JSON. A colon is missing."),
        ('{"a": 1\n"b": 2}', "Line 2: This is not JSON. A comma or a closing bracket"),
        ("{\n\n a: 1}", "Line 3: This is not JSON. A name in double quotes is"),
        ('{"a":\n}', "This is not JSON. A value is missing."),
        ("{}\n{}", "Line 2: This is not JSON. Text follows after the JSON."),
        ('{"a": "x}', "Line 1: This is not JSON. A text has no closing quote."),
        ('{"a": "x\ty"}', "Line 1: This is not JSON. A text has a line break or a"),
        ('{"a": "\\x"}', "Line 1: This is not JSON. A backslash is followed"),
        ('{"a": 1, "a": 2}', "An object has the key 'a' twice"),
        ("[" * 100_000, "The text nests arrays"),
    ],
)
def test_the_line_of_what_is_no_json(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_strict_json(text)


def test_what_is_json_is_read() -> None:
    assert parse_strict_json('{"a": [1.0]}') == {"a": [1.0]}


def deep(levels: int) -> str:
    schema = "{}"
    for _ in range(levels):
        schema = f'{{"not": {schema}}}'
    return f'{{"type": "object", "properties": {{"a": {schema}}}}}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{\n  "type": "object",\n  "require": ["a"]\n}',
            "Line 3: “require” is not a schema keyword. Did you mean “required”?",
        ),
        (
            '{"type": "object", "properties": {\n"a": {"type": "string",\n'
            '"maxLenght": 3}}}',
            "Line 3: “maxLenght” is not a schema keyword. Did you mean “maxLength”?",
        ),
        (
            '{"type": "object", "allOf": [{},\n{"propertys": {}}]}',
            "Line 2: “propertys” is not a schema keyword. Did you mean “properties”?",
        ),
        (
            '{"type": "object", "properties": {\n"a": {"$ref": "https://x.example/y"}}}',
            "The reference 'https://x.example/y' is not local.",
        ),
        (deep(40), "Line 1: The schema nests schemas more than 32 deep, at $.prop"),
        (
            '{"type": "object", "properties": {\n"a": {},\n"b": {"minimum": "1"}}}',
            "Line 3: The schema is wrong at $.properties.b.minimum:",
        ),
        ('{"$ref": "#/nothing"}', "leads to no schema in this document"),
        ("[]", "This must be a JSON object."),
        ("{", "This is not JSON"),
    ],
)
def test_what_is_wrong_with_a_schema(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        check_schema_text(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "object", "x-own": 1, "discriminator": {}, "example": {"a": 1}}',
        '{"type": "object", "properties": {"require": {}, "maxLenght": {}}}',
        '{"type": "object", "properties": {"a": {"enum": [{"require": [1, "}"]}]}}}',
        '{"$defs": {"a": {"type": "string"}}, "properties": {"b": {"$ref": '
        '"#/$defs/a"}}}',
    ],
)
def test_names_that_only_look_like_keywords(text: str) -> None:
    assert check_schema_text(text) == json.loads(text)


def test_json_of_one_line_is_shown_in_many() -> None:
    assert formatted_text('{"b":1,"a":[]}') == '{\n  "b": 1,\n  "a": []\n}'
    own = '{"a":\r\n 1}'
    assert formatted_text(own) == '{"a":\n 1}'
    assert formatted_text("{") == "{"
    assert formatted_text("") == ""


def test_the_same_json_has_the_same_order() -> None:
    assert is_same_json('{"a": 1}', '{ "a":1 }')
    assert not is_same_json('{"a": 1, "b": 2}', '{"b": 2, "a": 1}')
    assert is_same_json("{", "{")
    assert not is_same_json("{", "{}")
