"""Django forms as parameters: fields as schemas, and values as browsers send them.

The schema of a field is that of its nearest base class in the tables of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time
from functools import cached_property, partial, wraps
from inspect import signature
from typing import Any, Final, TypeAlias

from asgiref.sync import sync_to_async
from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.db.models import IntegerField
from django.forms.utils import pretty_name
from django.http import QueryDict
from django.utils import translation
from django.utils.choices import BlankChoiceIterator
from django.utils.html import strip_tags

from mcp_app.catalog.form_filling import UnfitValue, page_pairs, pairs_with_value
from mcp_app.catalog.json_schemas import choice_titles, text_like
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.errors import ExternalError, RegistrationError
from mcp_app.protocol.json_types import JsonObject

Field: TypeAlias = Any
"""A field of a form; the type stubs lack members of its subclasses."""
Function: TypeAlias = Callable[..., Any]

# -- schemas ---------------------------------------------------------------------------


def _text_schema(field: Field) -> JsonObject:
    return {
        "type": "string",
        "minLength": getattr(field, "min_length", None),
        "maxLength": getattr(field, "max_length", None),
    }


def _format_schema(name: str) -> Callable[[Field], JsonObject]:
    return lambda field: {**_text_schema(field), "format": name}


def _number_schema(kind: str) -> Callable[[Field], JsonObject]:
    return lambda field: {
        "type": kind,
        "minimum": _json_limit(field.min_value),
        "maximum": _json_limit(field.max_value),
    }


def _json_limit(value: Any) -> int | float | None:
    limit = value() if callable(value) else value
    return limit if limit is None or isinstance(limit, int) else float(limit)


SIMPLE: Final[Mapping[type[forms.Field], Callable[[Field], JsonObject]]] = {
    forms.CharField: _text_schema,
    forms.EmailField: _format_schema("email"),
    forms.URLField: _format_schema("uri"),
    forms.DateField: _format_schema("date"),
    forms.DateTimeField: _format_schema("date-time"),
    forms.TimeField: _text_schema,
    forms.DurationField: _text_schema,
    forms.IntegerField: _number_schema("integer"),
    forms.FloatField: _number_schema("number"),
    forms.DecimalField: _number_schema("number"),
    forms.BooleanField: lambda field: {"type": "boolean"},
}
"""Schemas of fields with one plain value; a member that is None is left out."""


def nearest_schema(
    field: Field, makers: Mapping[type[forms.Field], Callable[[Field], JsonObject]]
) -> JsonObject | None:
    """Return the schema from the first class in a field's MRO that has a maker."""
    for each in type(field).__mro__:
        if each in makers:
            schema = makers[each](field).items()
            return {name: value for name, value in schema if value is not None}
    return None


def default_value(initial: object) -> object:
    """Return a field's initial value as JSON; None if it is not plain."""
    if isinstance(initial, date | time):
        return initial.isoformat()
    if isinstance(initial, list | tuple):
        return [str(value) for value in initial]
    return initial if isinstance(initial, str | int | float) else None


def plain_choices(choices: Any) -> Iterator[tuple[Any, str]]:
    """Yield the values with their labels, without groups and the empty choice."""
    for value, label in choices:
        if isinstance(label, list | tuple):
            yield from plain_choices(label)
        elif value is not None and str(value):
            yield value, str(label)


def _own_choices(field: Field) -> list[tuple[Any, str]]:
    """Return the choices that are written in code; all others may read rows."""
    choices = getattr(field, "choices", None)
    if isinstance(choices, BlankChoiceIterator):
        # A model's field that may be empty has its choices inside.
        choices = choices.choices
    return [*plain_choices(choices)] if isinstance(choices, list | tuple) else []


def _choice_schema(field: Field) -> JsonObject:
    values = [value for value, _label in _own_choices(field)]
    if not values:
        return {"type": "string"}
    if all(type(each) is int for each in values):
        return {"type": "integer", "enum": values}
    return {"type": "string", "enum": [*map(str, values)]}


def _key_schema(field: Field) -> JsonObject:
    options = field.queryset.model._meta
    column = options.get_field(field.to_field_name or options.pk.name)
    while column.is_relation:
        column = column.target_field
    is_number = isinstance(column, IntegerField)
    return {"type": "integer" if is_number else "string"}


def _several_schema(one: Callable[[Field], JsonObject]) -> Callable[..., JsonObject]:
    return lambda field: {
        "type": "array",
        "items": one(field),
        "minItems": 1 if field.required else None,
    }


def _values_schema(field: Field) -> JsonObject:
    # With `require_all_fields`, Django sets `required` to False in each field.
    item_schema = _filled_schema if field.require_all_fields else value_schema
    items = [item_schema(each) for each in field.fields]
    count = len(items)
    whole = {"prefixItems": items, "minItems": count, "maxItems": count}
    return {"type": "array", **whole}


_PARAMETERS: Final[Mapping[type[forms.Field], Callable[[Field], JsonObject]]] = {
    **SIMPLE,
    forms.ComboField: _text_schema,
    forms.JSONField: lambda field: {},
    forms.UUIDField: _format_schema("uuid"),
    forms.DateTimeField: lambda field: text_like("date-time"),
    forms.SplitDateTimeField: lambda field: text_like("date-time"),
    forms.TimeField: lambda field: text_like("time"),
    forms.ChoiceField: _choice_schema,
    forms.MultipleChoiceField: _several_schema(_choice_schema),
    forms.ModelChoiceField: _key_schema,
    forms.ModelMultipleChoiceField: _several_schema(_key_schema),
    forms.MultiValueField: _values_schema,
}


def value_schema(field: Field) -> JsonObject:
    """Return the schema of what a client sends for a field."""
    schema = _filled_schema(field)
    if not field.required:
        # Null means an empty input.
        if "type" in schema:
            schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    return schema


def _filled_schema(field: Field) -> JsonObject:
    return nearest_schema(field, _PARAMETERS) or {}


# -- values ----------------------------------------------------------------------------


def bind_form(source: type[forms.BaseForm], values: JsonObject) -> forms.BaseForm:
    """Return a bound and valid form with these values.

    A field that is left out has its initial value.  Raises `ExternalError` with a line
    for each problem.
    """
    page, data, problems = source(), QueryDict(mutable=True), list[str]()
    for name in {**page.fields, **values}:
        try:
            for pair in _field_pairs(page, name, values):
                data.appendlist(*pair)
        except UnfitValue as error:
            problems.append(f"{name}: {error}.")
    form = source(data=data)
    try:
        problems = problems or [*form_problems(form)]
    except OverflowError:
        problems = ["A number is too large."]
    if problems:
        text = "\n- ".join(["These values do not fit:", *problems])
        # Prompts show this error to clients, too; others count as errors of the site.
        raise ExternalError(text, Outcome.ARGUMENTS)
    return form


def _field_pairs(
    page: forms.BaseForm, name: str, values: JsonObject
) -> Iterator[tuple[str, str]]:
    # A form may take fields away when it is made.
    if name in values and (name not in page.fields or page.fields[name].disabled):
        raise UnfitValue("it cannot be set here")
    if name not in values:
        return page_pairs(page[name])
    value = values[name]
    if isinstance(page.fields[name], forms.BooleanField) and value in _YES_NO:
        # Arguments of prompts are texts.
        value = value == _YES_NO[0]
    return pairs_with_value(page[name], value)


_YES_NO: Final = ("true", "false")


def form_problems(form: forms.BaseForm) -> Iterator[str]:
    """Yield what is wrong with a bound form."""
    for name, errors in form.errors.items():
        label = "" if name == NON_FIELD_ERRORS else f"{name}: "
        for error in errors:
            is_html = hasattr(error, "__html__")
            yield f"{label}{strip_tags(str(error)) if is_html else error}"
        codes = [error.code for error in errors.as_data()]
        if "invalid_choice" in codes and name not in form.changed_data:
            # The initial value is no choice any more: a browser would send another one.
            yield (
                f"{label}This value was there before, and the form does not offer it"
                " any more. Send another value, or null."
            )


# -- parameters ------------------------------------------------------------------------


@dataclass(frozen=True)
class FormParameter:
    """A parameter of a function that gets a form, bound and valid.

    `owner` is the function's name for error messages.
    """

    owner: str
    name: str
    source: type[forms.BaseForm]

    def __post_init__(self) -> None:
        bind = signature(self.source).bind
        if problem := self.problem_of(bind, partial(bind, data={})):
            raise RegistrationError(problem)
        for name, field in self._fields.items():
            if isinstance(field, forms.FileField) and field.required:
                raise RegistrationError(
                    f"{self.owner}: the field {name} of {self.source.__name__} wants a"
                    " file, which no client sends. Let it be optional, or leave it out."
                )

    def problem_of(self, *ways: Callable[[], object]) -> str:
        """Return why a call among `ways` cannot make the form, else ""; reads rows."""
        try:
            for make_form in ways:
                make_form()
        except (KeyError, TypeError) as error:
            # Tools have no `HttpRequest` to give to the form.
            option = "request" if "'request'" in str(error) else "user"
            return (
                f"{self.owner}: the form {self.source.__name__} cannot be made of what"
                f" a client sends ({error!r}). Take a subclass that passes"
                f" {option}=None and reads self.user, and set form.user = ctx.user() in"
                " the function."
            )
        except Exception:
            return ""  # For instance, there may be no database.
        return ""

    @cached_property
    def _fields(self) -> Mapping[str, Field]:
        """The fields of the class; a form is not made, because that may read rows."""
        fields: Mapping[str, Field] = getattr(self.source, "base_fields", {})
        return {name: each for name, each in fields.items() if not each.disabled}

    def properties(self, documented: Mapping[str, str]) -> dict[str, JsonObject]:
        """Return the schemas of the fields; those of files are left out.

        `documented` is what the function's docstring says of its parameters.
        """
        # Clients of all languages get the same texts.
        with translation.override(None):
            return {
                name: parameter_schema(name, field, documented.get(name))
                for name, field in self._fields.items()
                if not isinstance(field, forms.FileField)
            }

    @property
    def required_names(self) -> list[str]:
        fields = self._fields.items()
        return [name for name, each in fields if wants_value(each, each.initial)]

    def wrap_function(self, function: Function, *, is_async: bool) -> Function:
        """Return a function that takes the fields' values and passes on the form."""

        def bind(arguments: JsonObject) -> JsonObject:
            form = bind_form(self.source, arguments[self.name])
            return {**arguments, self.name: form}

        @wraps(function)
        def run(**arguments: Any) -> Any:
            return function(**bind(arguments))

        @wraps(function)
        async def run_async(**arguments: Any) -> Any:
            return await function(**await sync_to_async(bind)(arguments))

        return run_async if is_async else run


def parameter_schema(
    name: str, field: Field, documented: str | None = None
) -> JsonObject:
    """Return the schema of a field; `documented` comes before its own help text."""
    schema = value_schema(field)
    label = str(field.label or pretty_name(name))
    text = documented or strip_tags(str(field.help_text)) or label
    titles = choice_titles(_own_choices(field))
    schema["description"] = f"{text.rstrip('.')}. {titles}".rstrip()
    initial = None if wants_value(field, field.initial) else field.initial
    default = None if callable(initial) else default_value(initial)
    return schema if default is None else {**schema, "default": default}


def wants_value(field: Field, initial: object) -> bool:
    """Whether a client must give a value: a required field refuses False and blanks."""
    return bool(field.required and (initial is False or initial in field.empty_values))
