"""JSON in a form is kept byte for byte, and panels send nothing."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from mcp_app.admin.forms.fields import JsonField, SecondsField

STORED = '{"b":1,"a":18446744073709551616}'


def field(stored: str = "", *, is_schema: bool = False) -> JsonField:
    made = JsonField(is_schema=is_schema)
    made.stored = stored
    return made


@pytest.mark.parametrize("stored", [STORED, "", '{\n "b": 1\n}', "[]", "no JSON"])
def test_what_nobody_changed_is_kept_as_it_is(stored: str) -> None:
    made = field(stored)
    sent = f"{made.prepare_value(stored)}\n".replace("\n", "\r\n")
    assert not made.has_changed(stored, sent)
    assert made.clean(sent) == stored


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("", ""),
        (" \r\n ", ""),
        (' {"a": 1}\r\n', '{"a": 1}'),
        ('{\r\n"a": 1}', '{\n"a": 1}'),
    ],
)
def test_what_is_new_is_kept_as_it_was_typed(sent: str, kept: str) -> None:
    made = field(STORED)
    assert made.has_changed(STORED, sent)
    assert made.clean(sent) == kept


def test_a_schema_is_more_than_json() -> None:
    for text in ("[1]", '{"type": "text"}'):
        assert field().clean(text) == text
        with pytest.raises(ValidationError):
            field(is_schema=True).clean(text)


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(0, "0"), (500, "0.5"), (60_000, "60"), (2_147_483_647, "2147483.647")],
)
def test_milliseconds_are_shown_as_seconds(milliseconds: int, shown: str) -> None:
    field = SecondsField()
    assert field.prepare_value(milliseconds) == shown
    assert field.clean(shown) == milliseconds
    assert not field.has_changed(milliseconds, shown)


def test_seconds_that_are_none() -> None:
    field = SecondsField()
    assert field.clean("") == 0
    assert field.has_changed(500, "")
    for wrong in ("-1", "0.0001", "2147484", "soon"):
        with pytest.raises(ValidationError):
            field.clean(wrong)
