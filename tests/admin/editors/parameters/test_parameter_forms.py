"""A parameter as a row of a form: what of it is read, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.editors.parameter_forms import ParameterForm


def form(**sent: str) -> ParameterForm:
    return ParameterForm({"name": "city", **sent})


def parameter(**sent: str) -> Any:
    made = form(**sent)
    assert made.is_valid(), made.errors
    return made.parameter


def wrong(**sent: str) -> list[str]:
    return [*form(**sent).errors]


@pytest.mark.parametrize(
    ("name", "was", "taken"),
    [
        ("city", "", True),
        ("n" * 64, "", True),
        ("a.b-c_9", "", True),
        ("n" * 65, "", False),
        ("größe", "", False),
        ("a b", "", False),
        ("", "", False),
        # What code or an import has named stays as it is called.
        ("größe", "größe", True),
        ("größe", "city", False),
    ],
)
def test_a_name(name: str, was: str, taken: bool) -> None:
    assert (wrong(name=name, was=was) == []) is taken


@pytest.mark.parametrize(
    ("sent", "column", "value"),
    [
        ({}, "type", "text"),
        ({"type": "text", "pattern": "a+"}, "pattern", "a+"),
        # What another type has left behind is not read.
        ({"type": "integer", "pattern": "a+"}, "pattern", ""),
        ({"type": "boolean", "least": "1"}, "least", None),
        ({"type": "text", "choices": "a\nb"}, "choices", ()),
        ({"type": "text", "unique": "on"}, "unique", False),
        ({"type": "integer", "least": "1", "most": "5"}, "most", 5),
        ({"type": "number", "least": "0.5"}, "least", 0.5),
        ({"type": "integer", "default": "7"}, "default", 7),
        ({"description": "a\r\nb"}, "description", "a\nb"),
        ({"required": "on"}, "required", True),
    ],
)
def test_what_is_read(sent: dict[str, str], column: str, value: object) -> None:
    assert getattr(parameter(**sent), column) == value
