"""A parameter as a row of a form: what of it is read, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.editors.parameter import TYPES
from mcp_app.admin.editors.parameter_forms import ParameterForm, ParameterSheet
from mcp_app.admin.editors.rows import NotRepresentable


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


def test_what_is_left_out() -> None:
    made = parameter()
    assert (made.name, made.type, made.required) == ("city", "text", False)
    assert (made.least, made.most, made.pattern, made.choices) == (None, None, "", ())


@pytest.mark.parametrize(
    ("sent", "column", "value"),
    [
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


@pytest.mark.parametrize(
    ("sent", "fields"),
    [
        ({"type": "integer", "default": "seven"}, ["default"]),
        ({"type": "integer", "least": "few"}, ["least"]),
        ({"type": "integer", "least": "5", "most": "1"}, ["most"]),
        ({"type": "integer", "least": "few", "most": "many"}, ["least", "most"]),
        ({"type": "integer", "most": "5", "default": "6"}, ["default"]),
        ({"type": "no-such"}, ["type"]),
        ({"description": "a\u202eb"}, ["description"]),
        ({"type": "text", "pattern": "("}, ["pattern"]),
    ],
)
def test_what_is_wrong_is_told_at_its_field(
    sent: dict[str, str], fields: list[str]
) -> None:
    assert wrong(**sent) == fields


@pytest.mark.parametrize("kind", TYPES)
def test_each_type_can_be_chosen(kind: str) -> None:
    choices = "a\nb" if kind in {"choice", "choices"} else ""
    assert "type" not in wrong(type=kind, choices=choices)


@pytest.mark.parametrize("value", [[], "a", 7, [{"type": "object"}]])
def test_what_is_no_object_has_no_table(value: Any) -> None:
    if value:
        with pytest.raises(NotRepresentable):
            ParameterSheet().initial_rows(value)
    else:
        assert ParameterSheet().initial_rows(value) == []


def test_a_row_shows_what_it_will_read() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "integer", "minimum": 1, "default": 3}},
        "required": ["city"],
    }
    (row,) = ParameterSheet().initial_rows(schema)
    sent = {name: str(value) for name, value in row.items() if name != "row"}
    made = parameter(**{**sent, "unique": "", "required": "on"})
    assert (made.name, made.type, made.least, made.default) == ("city", "integer", 1, 3)
    assert ParameterForm(initial=row).limits() != ""
    assert ParameterForm(initial=row).legend() == "city"
    assert ParameterForm().limits() == ""
