"""Forms that a tool asks for: what the client is sent, and its answer read back.

A form is a pydantic model, a dataclass, a Django form, or a flat JSON Schema.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

from django.forms import BaseForm
from pydantic import ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from mcp_app.catalog.django_forms import form_problems, form_properties, required_fields
from mcp_app.catalog.form_fields import UnfitForm, field_schema
from mcp_app.catalog.json_schemas import ShortJsonSchema, adapter, json_schema
from mcp_app.interface.errors import ClientCannot
from mcp_app.interface.questions import FormSource
from mcp_app.protocol import jsonrpc, schemas
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import Revision

__all__ = ["FormError", "FormSchema", "UnfitForm", "for_revision", "form_schema"]

Form = TypeVar("Form")

_KEPT_FORMS = 256
_UNSEEN = frozenset({"pattern"})
_AROUND = frozenset(
    {"$schema", "type", "properties", "required", "title", "description"}
)


class FormError(ValueError):
    """An answer does not fit its form: `problems` are sentences, one for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class FormSchema(Generic[Form]):
    """`schema` is what an answer must fit; `parse` raises `FormError`.

    `for_revision` makes the `requestedSchema` of it, without each `pattern`, which
    the protocol's StringSchema does not have.

    The answer to a Django form is the form itself, bound and valid; to a JSON
    Schema, a dict.
    """

    schema: JsonObject
    parse: Callable[[JsonObject], Form]


def form_schema(source: FormSource[Form]) -> FormSchema[Any]:
    """Read a form; raise `UnfitForm` where a client could not be asked for it."""
    if isinstance(source, Mapping):
        return _of_json_schema(source)
    if issubclass(source, BaseForm):
        return _of_django_form(source)
    return _of_type(cast("Hashable", source))


def for_revision(schema: JsonObject, revision: Revision) -> JsonObject:
    """Return the schema as a revision has it, raise `ClientCannot` where it cannot."""
    properties = {
        name: _revised(name, field, revision)
        for name, field in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _of_json_schema(source: Mapping[str, Any]) -> FormSchema[JsonObject]:
    beyond = source.keys() - _AROUND - {"additionalProperties"}
    if source.get("type") != "object" or beyond:
        raise UnfitForm(
            "The schema of a form must have the type object, with properties and"
            f" required, and without {', '.join(sorted(beyond)) or 'others'}."
        )
    fields = {
        name: field_schema(name, field, exact=True)
        for name, field in source.get("properties", {}).items()
    }
    schema = _flat(fields, source.get("required", ()))
    return FormSchema(schema, _reader(schema, dict))


def _of_django_form(source: type[BaseForm]) -> FormSchema[BaseForm]:
    # Made for each question: the choices of a field may come from the database.
    form = source()
    fields = {
        name: field_schema(name, field, exact=False)
        for name, field in form_properties(form).items()
    }
    schema = _flat(fields, required_fields(form))

    def bound(answer: JsonObject) -> BaseForm:
        filled = source(answer)
        if not filled.is_valid():
            raise FormError(list(form_problems(filled)))
        return filled

    return FormSchema(schema, _reader(schema, bound))


@lru_cache(maxsize=_KEPT_FORMS)
def _of_type(source: type[Any]) -> FormSchema[Any]:
    name = source.__qualname__
    types = adapter(name, source)
    whole = json_schema(name, types, "validation", _FormJsonSchema)
    if "properties" not in whole:
        raise UnfitForm(f"The form {name} has no fields.")
    fields = {
        name: field_schema(name, field, exact=False)
        for name, field in whole["properties"].items()
    }
    schema = _flat(fields, whole.get("required", ()))

    def read(answer: JsonObject) -> Any:
        try:
            return types.validate_python(answer)
        except ValidationError as error:
            raise FormError(list(_sentences(error))) from None

    return FormSchema(schema, _reader(schema, read))


class _FormJsonSchema(ShortJsonSchema):
    """Decimals are numbers, and the labels of Django's choices are their titles."""

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


def _flat(fields: dict[str, JsonObject], required: Iterable[str]) -> JsonObject:
    needed = list(required)
    unknown = [name for name in needed if name not in fields]
    if unknown:
        raise UnfitForm(
            f"The form requires {', '.join(unknown)}, but has no such field."
        )
    return {"type": "object", "properties": fields, "required": needed}


def _reader(
    schema: JsonObject, read: Callable[[JsonObject], Form]
) -> Callable[[JsonObject], Form]:
    """Check an answer against what was asked before its own type reads it."""
    try:
        validator = schemas.compile(schema)
    except schemas.SchemaError as error:
        raise UnfitForm(f"Answers cannot be checked with this form. {error}") from None

    def parse(answer: JsonObject) -> Form:
        asked = {name: answer[name] for name in schema["properties"] if name in answer}
        violations = validator.violations(asked)
        if violations:
            raise FormError([f"{each.path}: {each.message}" for each in violations])
        return read(asked)

    return parse


def _sentences(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_context=False):
        yield f"{jsonrpc.place(problem['loc'])}: {problem['msg']}."


def _revised(name: str, field: JsonObject, revision: Revision) -> JsonObject:
    known = field if revision.elicitation_choices else _older_choices(name, field)
    unseen = _UNSEEN
    if not revision.elicitation_defaults and known["type"] != "boolean":
        unseen |= {"default"}
    return {member: value for member, value in known.items() if member not in unseen}


def _older_choices(name: str, field: JsonObject) -> JsonObject:
    """Write titled choices as `enumNames`; several at once cannot be asked for."""
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
        **{member: value for member, value in field.items() if member != "oneOf"},
        "enum": [choice["const"] for choice in choices],
        "enumNames": [choice["title"] for choice in choices],
    }
