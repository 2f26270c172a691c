from __future__ import annotations

import re

import pytest

from mcp_app.admin.editors.parameter_values import (
    MISSING,
    Choice,
    Parameter,
    choices_of_text,
    limits_in_words,
    problems_of_row,
    text_of_choices,
    text_of_value,
    value_of_text,
)

VALUES: list[tuple[str, object, str]] = [
    ("text", "Lisbon", "Lisbon"),
    ("text", "", '""'),
    ("text", " x", '" x"'),
    ("text", "a\nb", '"a\\nb"'),
    ("text", '"quoted"', '"\\"quoted\\""'),
    ("text", "yes", "yes"),
    ("text", MISSING, ""),
    ("date", "2026-01-31", "2026-01-31"),
    ("integer", 3, "3"),
    ("number", 2.5, "2.5"),
    ("number", 1.0, "1.0"),
    ("boolean", True, "yes"),
    ("boolean", False, "no"),
    ("choice", "c", "c"),
    ("choices", ["c", "f"], "c, f"),
    ("texts", ["a", "b c"], "a, b c"),
    ("texts", [], "[]"),
    ("texts", [""], '[""]'),
    ("texts", ["a,b"], '["a,b"]'),
    ("texts", ["[a"], '["[a"]'),
    ("integers", [1, 2], "1, 2"),
    ("numbers", [1, 2.5], "1, 2.5"),
    ("json", None, "null"),
    ("json", "x", '"x"'),
    ("json", {"a": [1]}, '{"a": [1]}'),
    ("json", True, "true"),
]


@pytest.mark.parametrize(("kind", "value", "text"), VALUES)
def test_a_value_comes_back_from_its_line(kind: str, value: object, text: str) -> None:
    assert text_of_value(kind, value) == text
    again = value_of_text(kind, text)
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("integer", "abc", "“abc” is not a whole number."),
        ("integer", "1.5", "“1.5” is not a whole number."),
        ("integer", "true", "“true” is not a whole number."),
        ("number", "1,5", "“1,5” is not a number."),
        ("number", "NaN", "“NaN” is not a number."),
        ("boolean", "maybe", "“maybe” is neither yes nor no."),
        ("integers", "1, x", "“x” is not a list of whole numbers, such as: 1, 2."),
        ("numbers", "[", "“[” is not a list of numbers, such as: 1, 2.5."),
        ("texts", "[1]", "“[1]” is not a list of texts, such as: red, blue."),
        ("choices", "[1]", "“[1]” is not a list of choices, such as: red, blue."),
        ("json", "x", "“x” is not JSON. Put a text in double quotes."),
        ("text", '"\\x"', "Leave the quotes out, or correct it."),
    ],
)
def test_lines_that_are_no_value(kind: str, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        value_of_text(kind, text)


def test_yes_has_more_than_one_word() -> None:
    for word in ("Yes", "TRUE", "true", "yes"):
        assert value_of_text("boolean", word) is True


def test_choices_are_lines() -> None:
    choices = choices_of_text("c = Celsius\r\n\r\n  f = Grad = F \nk=elvin\n")
    assert choices == (
        Choice("c", "Celsius"),
        Choice("f", "Grad = F"),
        Choice("k=elvin"),
    )
    assert choices_of_text(text_of_choices(choices)) == choices
    assert choices_of_text("= x") == (Choice("= x"),)


LIMITS: list[tuple[Parameter, str]] = [
    (Parameter("a"), ""),
    (Parameter("a", most=80), "at most 80 characters"),
    (Parameter("a", least=2), "at least 2 characters"),
    (Parameter("a", "integer", least=1, most=14), "1 to 14"),
    (Parameter("a", "texts", most=3, unique=True), "at most 3 entries, each only once"),
    (Parameter("a", pattern="^x"), "pattern ^x"),
    (Parameter("a", "boolean", most=3), ""),
    (Parameter("a", "choice", choices=(Choice("c", "Hot"), Choice("f"))), "Hot, f"),
    (Parameter("a", "choice", choices=(*map(Choice, "abcdef"),)), "a, b, c, d, e …"),
]


def test_limits_in_words() -> None:
    for row, text in LIMITS:
        assert limits_in_words(row) == text


CHOICE = (Choice("c"), Choice("f"))
WRONG_DEFAULTS: list[tuple[Parameter, str]] = [
    (
        Parameter("a", "integer", most=14, default=30),
        "The value 30 is above the largest, 14.",
    ),
    (
        Parameter("a", "number", least=1, default=0.5),
        "The value 0.5 is below the smallest, 1.",
    ),
    (Parameter("a", most=2, default="abc"), "“abc” is longer than 2 characters."),
    (Parameter("a", least=2, default="a"), "“a” is shorter than 2 characters."),
    (
        Parameter("a", "texts", most=1, default=["a", "b"]),
        "“a, b” has too many entries. The maximum is 1.",
    ),
    (
        Parameter("a", "texts", least=3, default=["a", "b"]),
        "“a, b” has too few entries. The minimum is 3.",
    ),
    (Parameter("a", pattern="^x", default="y"), "“y” does not match the pattern."),
    (Parameter("a", "date", default="1.2.2026"), "is not a date"),
    (Parameter("a", "datetime", default="now"), "is not a date and time"),
    (Parameter("a", "email", default="x"), "is not an e-mail address"),
    (Parameter("a", "url", default="x"), "is not a web address"),
    (
        Parameter("a", "choice", choices=CHOICE, default="x"),
        "“x” is none of the choices.",
    ),
    (
        Parameter("a", "choices", choices=CHOICE, default=["x"]),
        "“x” must be a list of the choices, each at most once.",
    ),
    (
        Parameter("a", "texts", unique=True, default=["x", "x"]),
        "“x, x” does not fit the limits.",
    ),
]
WRONG: list[tuple[Parameter, str, str]] = [
    *((row, "default", sentence) for row, sentence in WRONG_DEFAULTS),
    (Parameter("a", "date", example="x"), "example", "is not a date"),
    (Parameter("a", pattern="("), "pattern", "“(” is not a pattern"),
    (Parameter("a", "choice"), "choices", "Write the choices, one in each line."),
    (
        Parameter("a", "choice", choices=(*CHOICE, Choice("c"))),
        "choices",
        "“c” is there more than once.",
    ),
    (Parameter("a", "integer", least=9, most=3), "most", "3, is below the smallest, 9"),
    (Parameter("a", least=-1), "least", "must be 0 or more"),
    (Parameter("a", "texts", most=1.5), "most", "must be 0 or more"),
]


@pytest.mark.parametrize(("row", "field", "said"), WRONG)
def test_what_is_wrong_is_said_at_its_field(
    row: Parameter, field: str, said: str
) -> None:
    [(found, sentence)] = problems_of_row(row)
    assert found == field
    assert said in sentence


def test_what_fits_says_nothing() -> None:
    for row in (
        Parameter("a", default="x", most=1, example="y"),
        Parameter("a", "integer", least=-5, default=-5),
        Parameter("a", "choices", choices=CHOICE, default=["c"], unique=True),
        Parameter("a", "json", default={"a": 1}),
    ):
        assert list(problems_of_row(row)) == []
