"""Django's forms as the flat schemas that clients can show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.forms.utils import pretty_name

from mcp_app.catalog.form_fields import UnfitForm, missing_choices
from mcp_app.protocol.json_types import JsonObject

_Field = Any
"""A field of a form; the stubs know less of each than its class has."""


def form_properties(form: forms.BaseForm) -> dict[str, JsonObject]:
    """Return the schemas of the fields that a person fills, by their names."""
    return {
        name: _schema(name, field, form.get_initial_for_field(field, name))
        for name, field in form.fields.items()
        if not field.disabled
    }


def required_fields(form: forms.BaseForm) -> list[str]:
    """Return the names of the fields that must be there."""
    return [
        name
        for name, field in form.fields.items()
        if field.required and not field.disabled
    ]


def form_problems(form: forms.BaseForm) -> Iterator[str]:
    """Yield what is wrong with a bound form."""
    for name, errors in form.errors.items():
        label = "" if name == NON_FIELD_ERRORS else f"{name}: "
        yield from (f"{label}{error}" for error in errors)


def _schema(name: str, field: _Field, initial: object) -> JsonObject:
    described = next(
        (_SCHEMAS[kind] for kind in type(field).__mro__ if kind in _SCHEMAS), None
    )
    if described is None or isinstance(field.widget, forms.PasswordInput):
        raise UnfitForm(
            f"The field {name} is a {type(field).__name__}, which clients cannot show"
            " in a form."
        )
    schema = {
        **described(field),
        "title": str(field.label or pretty_name(name)),
        "description": str(field.help_text),
        "default": _default(initial),
    }
    if missing_choices(schema):
        # It may come from a row that is older than the choices.
        del schema["default"]
    return {member: value for member, value in schema.items() if value not in _EMPTY}


_EMPTY = (None, "")


def _default(initial: object) -> object:
    if isinstance(initial, date | datetime):
        return initial.isoformat()
    if isinstance(initial, list | tuple):
        return [str(value) for value in initial]
    return initial if isinstance(initial, str | int | float) else None


def _text(field: _Field) -> JsonObject:
    return {
        "type": "string",
        "minLength": getattr(field, "min_length", None),
        "maxLength": getattr(field, "max_length", None),
    }


def _formatted(name: str) -> Callable[[_Field], JsonObject]:
    return lambda field: {**_text(field), "format": name}


def _number(kind: str) -> Callable[[_Field], JsonObject]:
    return lambda field: {
        "type": kind,
        "minimum": _limit(field.min_value),
        "maximum": _limit(field.max_value),
    }


def _limit(value: Any) -> int | float | None:
    limit = value() if callable(value) else value
    return limit if limit is None or isinstance(limit, int) else float(limit)


def _boolean(field: _Field) -> JsonObject:
    return {"type": "boolean"}


def _choice(field: _Field) -> JsonObject:
    return {"type": "string", "oneOf": list(_titled(field.choices))}


def _choices(field: _Field) -> JsonObject:
    return {
        "type": "array",
        "items": {"anyOf": list(_titled(field.choices))},
        "minItems": 1 if field.required else None,
    }


def _titled(choices: Any) -> Iterator[JsonObject]:
    """Groups are left out; the empty choice is to leave the field out."""
    for value, label in choices:
        if isinstance(label, list | tuple):
            yield from _titled(label)
        elif str(value):
            yield {"const": str(value), "title": str(label)}


_SCHEMAS: Mapping[type, Callable[[_Field], JsonObject]] = {
    forms.CharField: _text,
    forms.EmailField: _formatted("email"),
    forms.URLField: _formatted("uri"),
    forms.DateField: _formatted("date"),
    forms.DateTimeField: _formatted("date-time"),
    forms.TimeField: _text,
    forms.DurationField: _text,
    forms.IntegerField: _number("integer"),
    forms.FloatField: _number("number"),
    forms.DecimalField: _number("number"),
    forms.BooleanField: _boolean,
    forms.ChoiceField: _choice,
    forms.MultipleChoiceField: _choices,
    forms.ModelMultipleChoiceField: _choices,
    forms.TypedMultipleChoiceField: _choices,
}
