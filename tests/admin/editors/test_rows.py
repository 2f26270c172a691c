"""Rows of small forms: lines of browsers, places, and rows that go."""

from __future__ import annotations

from django import forms

from mcp_app.admin.editors.rows import SPARE, RowForm, Rows, formset_class_of


class NamedForm(RowForm):
    name = forms.CharField(max_length=3)


def rows(*given: dict[str, str], most: int = 3, initial: int = 0) -> Rows:
    data = {"r-TOTAL_FORMS": str(len(given)), "r-INITIAL_FORMS": str(initial)}
    for number, each in enumerate(given):
        data |= {f"r-{number}-{name}": value for name, value in each.items()}
    return formset_class_of(NamedForm, most)(data, prefix="r")


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
