"""Forms that a tool asks for: the schema that clients get, and how answers are read.

A form is a pydantic model, a dataclass, a Django form, or a flat JSON Schema.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

from django import forms
from django.forms import BaseForm
from django.forms.utils import pretty_name
from pydantic import ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from mcp_app.catalog.form_fields import UnfitForm, field_schema, missing_choices
from mcp_app.catalog.form_schemas import (
    SIMPLE,
    Field,
    default_value,
    form_problems,
    nearest_schema,
    plain_choices,
)
from mcp_app.catalog.json_schemas import ShortJsonSchema, json_schema, type_adapter
from mcp_app.interface.errors import ClientCannot
from mcp_app.interface.questions import FormSource
from mcp_app.protocol import jsonrpc, schemas
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import Revision

# -- django forms ----------------------------------------------------------------------
# Django's forms as the flat schemas that clients can show.


def form_properties(form: forms.BaseForm) -> dict[str, JsonObject]:
    """Return the schemas of the fields that a person fills, by their names."""
    return {
        name: _schema_of_field(name, field, form.get_initial_for_field(field, name))
        for name, field in form.fields.items()
        if not field.disabled
    }


def required_fields(form: forms.BaseForm) -> list[str]:
    """Return the names of the fields that an answer must have."""
    fields = form.fields.items()
    return [name for name, each in fields if each.required and not each.disabled]


def _schema_of_field(name: str, field: Field, initial: object) -> JsonObject:
    field_schema = nearest_schema(field, _SCHEMAS)
    if field_schema is None or isinstance(field.widget, forms.PasswordInput):
        raise UnfitForm(
            f"The field {name} is a {type(field).__name__}, which clients cannot show"
            " in a form."
        )
    schema = {
        **field_schema,
        "title": str(field.label or pretty_name(name)),
        "description": str(field.help_text),
        "default": default_value(initial),
    }
    if missing_choices(schema):
        # The default may come from a row that is older than the choices.
        del schema["default"]
    return {name: value for name, value in schema.items() if value not in (None, "")}


def _choice_schema(field: Field) -> JsonObject:
    return {"type": "string", "oneOf": _titled_choices(field)}


def _choices_schema(field: Field) -> JsonObject:
    return {
        "type": "array",
        "items": {"anyOf": _titled_choices(field)},
        "minItems": 1 if field.required else None,
    }


def _titled_choices(field: Field) -> list[JsonObject]:
    choices = plain_choices(field.choices)
    return [{"const": str(value), "title": title} for value, title in choices]


_SCHEMAS: Mapping[type, Callable[[Field], JsonObject]] = {
    **SIMPLE,
    forms.ChoiceField: _choice_schema,
    forms.MultipleChoiceField: _choices_schema,
    forms.ModelMultipleChoiceField: _choices_schema,
}


# -- forms -----------------------------------------------------------------------------

__all__ = ["FormError", "FormSchema", "UnfitForm", "for_revision", "form_schema"]

Form = TypeVar("Form")

_MAX_CACHED_FORMS = 256
_AROUND = frozenset(
    {"$schema", "type", "properties", "required", "title", "description"}
)
"""Members that the JSON Schema of a form may have at its top."""


class FormError(ValueError):
    """An answer does not fit its form; each of the `problems` is a sentence."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class FormSchema(Generic[Form]):
    """An answer must fit the `schema`; `parse` reads it, or raises `FormError`.

    `for_revision` turns the schema into a `requestedSchema`, without each `pattern`:
    the protocol's StringSchema has none.

    For a Django form, `parse` returns the form, bound and valid; for a JSON Schema, a
    dict.
    """

    schema: JsonObject
    parse: Callable[[JsonObject], Form]


def form_schema(source: FormSource[Form]) -> FormSchema[Any]:
    """Read a form; raise `UnfitForm` if clients could not show it."""
    if isinstance(source, Mapping):
        return _of_json_schema(source)
    if issubclass(source, BaseForm):
        return _of_django_form(source)
    return _of_python_type(cast("Hashable", source))


def for_revision(schema: JsonObject, revision: Revision) -> JsonObject:
    """Return the schema for a revision; `ClientCannot` if it lacks a kind of field."""
    properties = {}
    unseen = set() if revision.elicitation_defaults else {"default"}
    for name, field in schema["properties"].items():
        member = field if revision.elicitation_choices else _older_choices(name, field)
        # Revisions without other defaults have those of booleans.
        kept = {"default"} if member["type"] == "boolean" else set()
        properties[name] = _without_members(member, {"pattern", *unseen} - kept)
    return {**schema, "properties": properties}


def _without_members(schema: JsonObject, members: Iterable[str]) -> JsonObject:
    return {name: value for name, value in schema.items() if name not in members}


def _of_json_schema(source: Mapping[str, Any]) -> FormSchema[JsonObject]:
    refused_members = source.keys() - _AROUND - {"additionalProperties"}
    if source.get("type") != "object" or refused_members:
        raise UnfitForm(
            "The schema of a form must have the type object, with properties and"
            f" required, and without {', '.join(sorted(refused_members)) or 'others'}."
        )
    fields = {
        name: field_schema(name, field, exact=True)
        for name, field in source.get("properties", {}).items()
    }
    schema = _flat_schema(fields, source.get("required", ()))
    return FormSchema(schema, _answer_reader(schema, dict))


def _of_django_form(source: type[BaseForm]) -> FormSchema[BaseForm]:
    # Each question makes a new form: the choices of a field may come from rows.
    form = source()
    fields = {
        name: field_schema(name, field, exact=False)
        for name, field in form_properties(form).items()
    }
    schema = _flat_schema(fields, required_fields(form))

    def bind_form(answer: JsonObject) -> BaseForm:
        filled = source(answer)
        if not filled.is_valid():
            raise FormError(list(form_problems(filled)))
        return filled

    return FormSchema(schema, _answer_reader(schema, bind_form))


@lru_cache(maxsize=_MAX_CACHED_FORMS)
def _of_python_type(source: type[Any]) -> FormSchema[Any]:
    name = source.__qualname__
    types = type_adapter(name, source)
    whole = json_schema(name, types, "validation", _FormJsonSchema)
    if "properties" not in whole:
        raise UnfitForm(f"The form {name} has no fields.")
    fields = {
        name: field_schema(name, field, exact=False)
        for name, field in whole["properties"].items()
    }
    schema = _flat_schema(fields, whole.get("required", ()))

    def read_answer(answer: JsonObject) -> Any:
        try:
            return types.validate_python(answer)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False)
            raise FormError(
                [f"{jsonrpc.path_text(p['loc'])}: {p['msg']}." for p in problems]
            ) from None

    return FormSchema(schema, _answer_reader(schema, read_answer))


class _FormJsonSchema(ShortJsonSchema):
    """Decimals are numbers; the labels of Django's choices become titles."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        number, *_ = super().decimal_schema(schema)["anyOf"]
        return dict(number)

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        plain = super().enum_schema(schema)
        if not all(hasattr(member, "label") for member in schema["members"]):
            return plain
        titled = [
            {"const": member.value, "title": str(member.label)}
            for member in schema["members"]
        ]
        return {"type": plain.get("type"), "oneOf": titled}


def _flat_schema(fields: dict[str, JsonObject], required: Iterable[str]) -> JsonObject:
    needed = list(required)
    if unknown := [name for name in needed if name not in fields]:
        raise UnfitForm(
            f"The form requires {', '.join(unknown)}, but has no such field."
        )
    return {"type": "object", "properties": fields, "required": needed}


def _answer_reader(
    schema: JsonObject, read: Callable[[JsonObject], Form]
) -> Callable[[JsonObject], Form]:
    """Return a function that checks an answer by the schema, then calls `read`."""
    try:
        validator = schemas.compile_schema(schema)
    except schemas.SchemaError as error:
        raise UnfitForm(f"Answers cannot be checked with this form. {error}") from None

    def parse_answer(answer: JsonObject) -> Form:
        members = {
            name: answer[name] for name in schema["properties"] if name in answer
        }
        if violations := validator.violations(members):
            raise FormError([f"{each.path}: {each.message}" for each in violations])
        return read(members)

    return parse_answer


def _older_choices(name: str, field: JsonObject) -> JsonObject:
    """Write titled choices as `enumNames`; refuse a field that takes several."""
    if field["type"] == "array":
        raise ClientCannot(
            f"The field {name} allows several choices, which this revision of the"
            " protocol does not support.",
            {"elicitation": {}},
        )
    if "oneOf" not in field:
        return field
    choices = field["oneOf"]
    return {
        **_without_members(field, ["oneOf"]),
        "enum": [choice["const"] for choice in choices],
        "enumNames": [choice["title"] for choice in choices],
    }
