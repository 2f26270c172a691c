from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from mcp_app.kinds.kind import KindError
from mcp_app.kinds.placeholders import (
    check_placeholders,
    fill_placeholders,
    names_in_value,
    value_as_text,
)
from mcp_app.protocol.errors import InvalidParams

NAMES = ("order", "tone", "a-b")


@pytest.mark.parametrize(
    ("value", "there"),
    [
        ("", False),
        ("plain { text } with %s and {order}", False),
        ("{{order}}", True),
        ("{{ order }} {{a-b}}", True),
        ({"a": [{"b": "{{tone}}"}]}, True),
        ('{"id":"{{order}}","data":{"x":{}}}', True),
        (7, False),
        (None, False),
    ],
)
def test_placeholders_are_found_in_all_strings(value: object, there: bool) -> None:
    assert check_placeholders(value, NAMES, "argument") is there


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ordr}}", "{{ordr}} is not an argument. Did you mean {{order}}?"),
        ("{{zzz}}", "{{zzz}} is not an argument. Available: order, tone, a-b."),
        ("{{ x.__class__ }}", "“{{ x.__class__ }}” is not understood."),
        ("{% debug %}", "“{% debug %}” is not understood."),
        ("{{x|safe}}", "“{{x|safe}}” is not understood."),
        ("{{order", "“{{order” is not understood."),
        ("{{}}", "“{{}}” is not understood."),
        ("{{order\n}}", "is not understood."),
        ("{{order()}}", "is not understood."),
        ("{{{{order}}}}", "is not understood."),
    ],
)
def test_everything_else_in_double_braces_is_refused(text: str, said: str) -> None:
    with pytest.raises(KindError) as caught:
        check_placeholders({"deep": [text]}, NAMES, "argument")
    assert said in caught.value.message


def test_a_placeholder_in_a_name_is_refused() -> None:
    with pytest.raises(KindError, match="stands in a name"):
        check_placeholders([{"b": {"c {{a}}": "x"}}], ["a"], "parameter")


def test_a_text_without_names_says_so() -> None:
    with pytest.raises(KindError, match=r"is not a variable\. There are no variables"):
        check_placeholders("{{x}}", (), "variable")


@pytest.mark.parametrize(
    ("value", "values", "expected"),
    [
        ("Order {{order}}!", {"order": "7"}, "Order 7!"),
        ("{{order}}{{ order }}", {"order": "7"}, "77"),
        ("{{order}}", {}, ""),
        ("{{order}}", {"order": None}, ""),
        ("{{order}}", {"order": 7.5}, "7.5"),
        ("{{order}}", {"order": {"a": [True]}}, '{"a":[true]}'),
        ("{{order}} {{tone}}", {"order": "{{tone}}", "tone": "x"}, "{{tone}} x"),
        ("{{order}}", {"order": "{{order}}"}, "{{order}}"),
        ("{{order}}", {"order": "\\1 \\g<0> {0} %s"}, "\\1 \\g<0> {0} %s"),
        ({"a": ["{{order}}", 1, None]}, {"order": "x"}, {"a": ["x", 1, None]}),
    ],
)
def test_filling_is_a_single_pass(
    value: object, values: dict[str, Any], expected: object
) -> None:
    assert fill_placeholders(value, values) == expected


@override_settings(MCP={"LIMITS": {"text": 10}})
def test_all_filled_texts_together_have_a_limit() -> None:
    assert fill_placeholders("{{a}}", {"a": "x" * 10}) == "x" * 10
    for value in ("{{a}}b", ["{{a}}", "{{b}}"], "{{a}}{{a}}"):
        with pytest.raises(InvalidParams, match="longer than 10"):
            fill_placeholders(value, {"a": "x" * 10, "b": "y"})
    assert (
        fill_placeholders("a text without placeholders", {})
        == "a text without placeholders"
    )


def test_the_limit_holds_before_anything_is_built() -> None:
    with pytest.raises(InvalidParams):
        fill_placeholders("{{a}}" * 100_000, {"a": "x" * 4_000_000})


def test_values_as_text() -> None:
    assert [*map(value_as_text, ("é", True, None, [1]))] == ["é", "true", "", "[1]"]


def test_names_that_a_value_uses() -> None:
    assert names_in_value("plain {order}") == set()
    assert names_in_value("{{order}} and {{ tone }}") == {"order", "tone"}
    assert names_in_value([{"a": "{{a-b}}", "{{key}}": 7}]) == {"a-b"}
