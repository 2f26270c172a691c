"""Rows of small forms: lines of browsers, places, and rows that go."""

from __future__ import annotations

from typing import Any

import pytest
from django import forms

from mcp_app.admin.editors.files import FilePartWidget
from mcp_app.admin.editors.hints import HintsWidget
from mcp_app.admin.editors.json_editor import SheetWidget
from mcp_app.admin.editors.message_forms import MessageSheet
from mcp_app.admin.editors.rows import (
    SPARE,
    LinesField,
    RowForm,
    Rows,
    formset_class_of,
)
from mcp_app.admin.editors.variables import VariablesWidget


class NamedForm(RowForm):
    name = forms.CharField(max_length=3)


def rows(*given: dict[str, str], most: int = 3, initial: int = 0) -> Rows:
    data = {"r-TOTAL_FORMS": str(len(given)), "r-INITIAL_FORMS": str(initial)}
    for number, each in enumerate(given):
        data |= {f"r-{number}-{name}": value for name, value in each.items()}
    return formset_class_of(NamedForm, most)(data, prefix="r")


@pytest.mark.parametrize(
    ("initial", "sent", "changed"),
    [
        ("a\nb", "a\r\nb", False),
        ("a\r\nb", "a\nb", False),
        ("", "", False),
        (None, "", False),
        ("a", "b", True),
        ("a\n\nb", "a\r\nb", True),
    ],
)
def test_lines(initial: Any, sent: str, changed: bool) -> None:
    field = LinesField(strip=False)
    assert field.has_changed(initial, sent) is changed
    assert "\r" not in field.clean(sent)


def test_a_page_has_spare_rows_with_a_place_each() -> None:
    made = formset_class_of(NamedForm)(initial=[{"name": "long"}], prefix="r")
    assert (len(made.forms), made.wrong) == (1 + SPARE, [])
    form: Any = made.forms[0]
    assert str(form.fields["DELETE"].label) == "Remove"
    assert form.fields["ORDER"].widget.attrs == {"class": "mcp-place", "min": 1}
    assert form.legend() == ""


def test_rows_come_in_the_order_of_their_places() -> None:
    made = rows({"name": "a", "ORDER": "2"}, {"name": "b", "ORDER": "1"}, {"name": "c"})
    assert made.is_valid()
    assert [form.cleaned_data["name"] for form in made.ordered_forms] == ["b", "a", "c"]


def test_a_row_that_goes_may_be_wrong() -> None:
    long = {"name": "long"}
    made = rows(long, {**long, "DELETE": "on"}, {"name": "a"}, initial=3)
    assert made.wrong == [made.forms[0]]
    assert not made.is_valid()
    gone = rows({**long, "DELETE": "on"}, {"name": "a"}, initial=2)
    assert (gone.wrong, gone.is_valid()) == ([], True)


def test_far_too_many_rows_are_not_even_made() -> None:
    made = rows(*({"name": str(each % 9)} for each in range(99)))
    assert not made.is_valid()
    assert len(made.forms) == 3 + SPARE


# -- composite -------------------------------------------------------------------------


def test_what_says_that_a_page_has_the_widget() -> None:
    widgets = {
        "a": VariablesWidget(),
        "a-as": SheetWidget(MessageSheet()),
        "a-asked": HintsWidget(),
        "a-kept": FilePartWidget(),
    }
    for there, widget in widgets.items():
        assert not widget.value_omitted_from_data({there: ""}, None, "a")
        assert widget.value_omitted_from_data({"b": ""}, None, "a")
        assert widget.id_for_label("id_a") == ""
        assert widget.use_fieldset
        assert widget.format_value(widget) is widget
