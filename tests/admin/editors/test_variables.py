from __future__ import annotations

import json

import pytest
from django.core.exceptions import ValidationError
from django.http import QueryDict

from mcp_app.admin.editors.variables import (
    SentVariables,
    VariablesField,
    problem_of,
    variables_of,
)

PATTERN = "shop://{kind}/{number}"
STORED = '{ "number": ["1042", " 7"] }'


def field(stored: str = STORED, pattern: str = PATTERN) -> VariablesField:
    made = VariablesField()
    made.set_stored_value(stored, pattern)
    return made


def sent(**texts: str) -> SentVariables:
    """Return what the page sends that shows STORED, with something typed."""
    data = QueryDict(mutable=True)
    data.update({"suggestions": "1", "suggestions-kind": ""})
    data.update({"suggestions-number": "1042\r\n 7"})
    data.update({f"suggestions-{name}": text for name, text in texts.items()})
    found: SentVariables = field().widget.value_from_datadict(data, None, "suggestions")
    return found


def html_of(made: VariablesField, value: object = None) -> str:
    return str(made.widget.render("suggestions", value, {"id": "id_suggestions"}))


def test_what_nobody_touched_keeps_its_bytes() -> None:
    assert field().clean(sent()) == STORED
    assert field().clean(SentVariables()) == STORED
    assert not field().has_changed(None, sent())
    assert field("").clean(SentVariables()) == ""


def test_each_variable_has_suggestions() -> None:
    text = field().clean(sent(kind="order\r\n\r\n bill "))
    assert json.loads(text) == {"number": ["1042", " 7"], "kind": ["order", "bill"]}
    assert field().has_changed(None, sent(kind="order"))
    # What differs is written as it is typed.
    text = field().clean(sent(number="1042\r\n7\r\n8"))
    assert json.loads(text) == {"number": ["1042", "7", "8"]}
    assert field().clean(sent(number=" \r\n")) == ""


def test_wrong_suggestions_name_their_variable() -> None:
    wrong = sent(kind="a\r\na", **{"no name": "b"})
    with pytest.raises(ValidationError) as caught:
        field().clean(wrong)
    assert caught.value.messages[0] == "kind: “a” is suggested more than once."
    assert "“no name” cannot name a variable" in caught.value.messages[1]
    assert field().has_changed(None, wrong)
    text = html_of(field(), wrong)
    assert 'id="id_suggestions-kind-error"' in text
    assert "kind: “a” is suggested more than once." in text
    assert problem_of("no name", " ") == ""


def test_the_names_come_from_the_pattern() -> None:
    text = html_of(field())
    assert text.index("<legend>kind") < text.index("<legend>number")
    assert "<summary>Suggestions: 2</summary>" in text
    assert "has no" not in text
    assert variables_of("x:{") == ()


def test_what_the_pattern_has_no_more_is_kept_and_told() -> None:
    text = html_of(field(pattern="shop://{id}"))
    assert "<legend>id" in text
    assert (
        "The address pattern has no number, so these suggestions are not used." in text
    )
    assert field(pattern="shop://{id}").clean(sent()) == STORED
    emptied = html_of(field(pattern="shop://{id}"), sent(number=""))
    assert "<legend>number" not in emptied


def test_a_pattern_that_is_half_typed_says_nothing_about_names() -> None:
    text = html_of(field(pattern="shop://{"))
    assert "<legend>number" in text
    assert "has no" not in text


def test_what_no_form_has_written_is_replaced_and_breaks_no_page() -> None:
    made = field('{"number": 7}')
    assert "<legend>number" in html_of(made)
    assert made.clean(SentVariables({"number": ""}, is_there=True)) == '{"number": 7}'
    assert made.clean(sent()) == '{"number":["1042","7"]}'


def test_names_are_no_markup() -> None:
    text = html_of(field(), SentVariables({"<b>": "<i>"}, is_there=True))
    for tag in "bi":
        assert f"&lt;{tag}&gt;" in text
        assert f"<{tag}>" not in text
