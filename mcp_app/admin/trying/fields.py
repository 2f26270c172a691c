"""Fields for values that a JSON Schema describes, and reading what was typed.

Each property has a field: one as in the table of parameters, or an area for JSON.  An
empty field is not sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import zip_longest
from typing import Any, Final

from django.http import QueryDict
from django.utils.translation import gettext as _

from mcp_app.admin.editors.json_texts import lines_from_browser
from mcp_app.admin.editors.parameter import MISSING, Parameter
from mcp_app.admin.editors.parameter_tables import parameter_of
from mcp_app.admin.editors.parameter_values import (
    limits_in_words,
    text_of_value,
    type_label,
    value_of_text,
)
from mcp_app.admin.editors.rows import NotRepresentable
from mcp_app.interface.rules import visible
from mcp_app.models.fields import parse_json
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

YES: Final = "yes"
AREAS: Final = ("json", "long")
"""The types that have an area of several lines."""
OF_ALL: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "$ref", "patternProperties"}
)
"""Members on top of a schema for which fields of single properties say too little."""


@dataclass(frozen=True, slots=True, repr=False)
class Option:
    """A choice: the value, the text that people read, and whether it is chosen."""

    value: str
    text: str
    chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Field:
    """A field of the page; `name` is that of its input.

    `schema` is the JSON Schema of a property that only JSON can express.
    """

    name: str
    key: str
    """The property's name."""
    label: str
    kind: str = "json"
    required: bool = False
    about: str = ""
    limits: str = ""
    left_out: str = ""
    """What counts if it is not sent, as a sentence."""
    value: str = ""
    options: Sequence[Option] = ()
    schema: str = ""
    error: str = ""

    @property
    def is_area(self) -> bool:
        return self.kind in AREAS

    @property
    def is_choice(self) -> bool:
        return self.kind in ("boolean", "choice", "choices")

    @property
    def type(self) -> str:
        """The type in words."""
        return type_label(self.kind)


class Unreadable(Exception):
    """Some fields cannot be read; `fields` are all of them, with the sentences."""

    def __init__(self, fields: Sequence[Field]) -> None:
        super().__init__("Some fields cannot be read.")
        self.fields = fields


def fields_of(
    schema: Mapping[str, Any], prefix: str, *, is_question: bool = False
) -> list[Field] | None:
    """Return a field for each property, filled in with its example.

    Those of a question are filled in with defaults, as clients do
    (client/elicitation).  None if only the whole can be given as JSON.
    """
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or OF_ALL & schema.keys():
        return None
    required = schema.get("required", [])
    required = required if isinstance(required, list) else []
    return [
        _property_field(
            prefix, name, about, required=name in required, is_question=is_question
        )
        for name, about in properties.items()
    ]


def _property_field(
    prefix: str, name: str, about: object, *, required: bool, is_question: bool
) -> Field:
    # A property may be called as any other input of the form.
    field = Field(
        name=f"{prefix}{sha256(name.encode()).hexdigest()[:12]}",
        key=name,
        label=visible(name) or '""',
        required=required,
    )
    try:
        row = parameter_of(name, _with_titles(about), required=required)
    except NotRepresentable:
        return _json_field(field, about)
    if row.type == "json":
        return _json_field(field, about)
    preset = row.default if is_question else row.example
    left_out = ""
    if row.default is not MISSING and not is_question:
        default = visible(text_of_value(row.type, row.default))
        left_out = _("Left out: %(value)s.") % {"value": default}
    return replace(
        field,
        kind=row.type,
        about=visible(row.description, None),
        limits=limits_in_words(row),
        left_out=left_out,
        value=text_of_value(row.type, preset),
        options=_field_options(row, preset),
    )


def _with_titles(about: object) -> object:
    """Return a property in the words of the table, where choices have titles.

    Clients are asked with two other ones: `enumNames`, and options without a type.
    """
    if not isinstance(about, dict):
        return about
    values, titles = about.get("enum"), about.get("enumNames")
    if isinstance(values, list) and isinstance(titles, list):
        rest = {key: about[key] for key in about.keys() - {"enum", "enumNames"}}
        pairs = zip_longest(values, titles, fillvalue="")
        return {**rest, "oneOf": [{"const": v, "title": t or v} for v, t in pairs]}
    items = about.get("items")
    if isinstance(items, dict) and items.keys() == {"anyOf"}:
        return {**about, "items": {"type": "string", **items}}
    return about


def _json_field(field: Field, about: object) -> Field:
    members = about if isinstance(about, dict) else {}
    examples, value = members.get("examples"), ""
    if isinstance(examples, list) and examples:
        value = jsonrpc.pretty_text(examples[0])
    return replace(
        field,
        about=visible(str(members.get("description", "")), None),
        value=value,
        schema=jsonrpc.pretty_text(about),
    )


def _field_options(row: Parameter, preset: object) -> Sequence[Option]:
    chosen = preset if isinstance(preset, list) else [preset]
    if row.type == "boolean":
        return [
            Option(YES, _("Yes"), chosen=preset is True),
            Option("no", _("No"), chosen=preset is False),
        ]
    return [
        Option(each.value, visible(each.label or each.value), each.value in chosen)
        for each in row.choices
    ]


# -- what was typed -------------------------------------------------------------------


def fill_in_fields(fields: Sequence[Field], data: QueryDict) -> list[Field]:
    """Return the fields with what was typed into them."""
    filled = []
    for field in fields:
        texts = data.getlist(field.name)
        options = [replace(each, chosen=each.value in texts) for each in field.options]
        value = lines_from_browser(texts[-1] if texts else "")
        filled.append(replace(field, value=value, options=options))
    return filled


def values_of(fields: Sequence[Field]) -> JsonObject:
    """Return the values by property; what is empty is left out.

    Raises `Unreadable`.
    """
    values: JsonObject = {}
    errors = {}
    for field in fields:
        try:
            value = _field_value(field)
        except ValueError as error:
            errors[field.key] = str(error)
        else:
            if value is not MISSING:
                values[field.key] = value
    if errors:
        raise Unreadable(
            [replace(each, error=errors.get(each.key, each.error)) for each in fields]
        )
    return values


def _field_value(field: Field) -> object:
    chosen = [each.value for each in field.options if each.chosen]
    if field.kind == "choices":
        return chosen or MISSING
    if field.is_choice and not chosen:
        return MISSING
    if field.is_choice:
        return chosen[0] == YES if field.kind == "boolean" else chosen[0]
    if field.kind == "json":
        return parse_json(field.value) if field.value.strip() else MISSING
    if "\0" in field.value:
        raise ValueError(_("The text has the character NUL (U+0000); remove it."))
    return value_of_text(field.kind, field.value)
