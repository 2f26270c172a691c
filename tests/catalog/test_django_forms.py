from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy

from mcp_app.catalog.form_fields import UnfitForm
from mcp_app.catalog.form_schemas import form_problems
from mcp_app.catalog.forms import form_properties, required_fields

COLOURS = [("", "-----"), ("r", "Red"), ("Cold", [("b", "Blue")])]
TITLED = [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]

FIELDS: list[tuple[forms.Field, dict[str, Any]]] = [
    (forms.CharField(), {"type": "string"}),
    (
        forms.CharField(
            min_length=0, max_length=9, label=gettext_lazy("Name"), help_text="Full"
        ),
        {
            "type": "string",
            "minLength": 0,
            "maxLength": 9,
            "title": "Name",
            "description": "Full",
        },
    ),
    (forms.SlugField(initial="a-b"), {"type": "string", "default": "a-b"}),
    (
        forms.EmailField(max_length=9),
        {"type": "string", "maxLength": 9, "format": "email"},
    ),
    (forms.URLField(assume_scheme="https"), {"type": "string", "format": "uri"}),
    (forms.UUIDField(), {"type": "string"}),
    (forms.JSONField(), {"type": "string"}),
    (
        forms.DateField(initial=lambda: dt.date(2026, 1, 31)),
        {"type": "string", "format": "date", "default": "2026-01-31"},
    ),
    (forms.DateTimeField(), {"type": "string", "format": "date-time"}),
    (forms.TimeField(), {"type": "string"}),
    (forms.DurationField(), {"type": "string"}),
    (
        forms.IntegerField(min_value=0, max_value=9, initial=0),
        {"type": "integer", "minimum": 0, "maximum": 9, "default": 0},
    ),
    (
        forms.DecimalField(min_value=Decimal("0.5"), max_value=3),
        {"type": "number", "minimum": 0.5, "maximum": 3},
    ),
    (forms.FloatField(), {"type": "number"}),
    (forms.IntegerField(max_value=lambda: 3), {"type": "integer", "maximum": 3}),
    (forms.BooleanField(initial=False), {"type": "boolean", "default": False}),
    (forms.NullBooleanField(), {"type": "boolean"}),
    (forms.ChoiceField(choices=COLOURS), {"type": "string", "oneOf": TITLED}),
    (
        forms.TypedChoiceField(choices=[(1, "One")], coerce=int),
        {"type": "string", "oneOf": [{"const": "1", "title": "One"}]},
    ),
    (
        forms.MultipleChoiceField(choices=COLOURS, initial=["r"]),
        {"type": "array", "items": {"anyOf": TITLED}, "minItems": 1, "default": ["r"]},
    ),
    (
        forms.ChoiceField(choices=COLOURS, initial="b"),
        {"type": "string", "oneOf": TITLED, "default": "b"},
    ),
    (
        forms.ChoiceField(choices=COLOURS, initial="gone"),
        {"type": "string", "oneOf": TITLED},
    ),
    (
        forms.MultipleChoiceField(choices=COLOURS, initial=["r", "gone"]),
        {"type": "array", "items": {"anyOf": TITLED}, "minItems": 1},
    ),
    (
        forms.TypedMultipleChoiceField(choices=COLOURS, required=False),
        {"type": "array", "items": {"anyOf": TITLED}},
    ),
]


def form_of(field: forms.Field, data: dict[str, Any] | None = None) -> forms.Form:
    form: type[forms.Form] = type("Asked", (forms.Form,), {"first_field": field})
    return form(data)


@pytest.mark.parametrize(("field", "schema"), FIELDS)
def test_fields(field: forms.Field, schema: dict[str, Any]) -> None:
    described = form_properties(form_of(field))
    assert described == {"first_field": {"title": "First field", **schema}}


@pytest.mark.parametrize(
    "field",
    [
        forms.FileField(),
        forms.SplitDateTimeField(),
        forms.CharField(widget=forms.PasswordInput),
    ],
)
def test_fields_without_an_input(field: forms.Field) -> None:
    with pytest.raises(UnfitForm, match="The field first_field is a "):
        form_properties(form_of(field))


class Order(forms.Form):
    name = forms.CharField()
    note = forms.CharField(required=False)
    fixed = forms.CharField(disabled=True, initial="x")

    def clean(self) -> None:
        if self.cleaned_data.get("name") == "nobody":
            raise ValidationError("Nobody orders.")


def test_what_must_be_there() -> None:
    assert required_fields(Order()) == ["name"]
    assert form_properties(Order()).keys() == {"name", "note"}


def test_problems() -> None:
    assert list(form_problems(Order({}))) == ["name: This field is required."]
    assert list(form_problems(Order({"name": "nobody"}))) == ["Nobody orders."]
    assert list(form_problems(Order({"name": "Ada"}))) == []
