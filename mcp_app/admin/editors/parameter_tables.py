"""A tool's input schema as a table of parameters, and back, without loss.

A table shows schemas whose properties are flat. Any other schema raises
`NotRepresentable`, and staff edit it as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_app.admin.editors.parameter import (
    CHOOSING,
    MISSING,
    SHAPES,
    TITLED_OPTIONS,
    Choice,
    Parameter,
    limit_keywords,
    property_of,
)
from mcp_app.admin.editors.parameter_values import (
    choices_of_text,
    text_of_choices,
    text_of_value,
    value_of_text,
)
from mcp_app.admin.editors.rows import (
    NotRepresentable,
    area_text,
    check_same,
    stored_or_written,
)
from mcp_app.interface.rules import visible
from mcp_app.protocol.json_types import JsonObject

MAX_PARAMETERS: Final = 40
"""More rows would come near Django's limit of 1,000 fields in a form."""

_SHAPE_MEMBERS: Final = ("type", "format", "contentMediaType", "items")
_REST: Final = ("title", "deprecated", "readOnly", "writeOnly", "$comment")
"""Members of a property that the table keeps but does not show."""
_OF_ALL: Final = ("type", "properties", "required", "additionalProperties")
_REST_OF_ALL: Final = ("$schema", "title", "description", "$comment")
_EMPTY: Final = {"description": "", "pattern": "", "uniqueItems": False, "examples": []}
"""Members that say nothing."""


def parameters_of(schema: Mapping[str, Any]) -> list[Parameter]:
    """Return the rows that show a schema; raise `NotRepresentable`."""
    for member in schema:
        if member not in _OF_ALL and member not in _REST_OF_ALL:
            raise NotRepresentable(member)
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if schema.get("type", "object") != "object":
        raise NotRepresentable("type")
    if not isinstance(schema.get("additionalProperties", True), bool):
        raise NotRepresentable("additionalProperties")
    if not isinstance(properties, dict):
        raise NotRepresentable("properties")
    names = [*properties]
    if not isinstance(required, list) or any(each not in names for each in required):
        raise NotRepresentable("required")
    if len(properties) > MAX_PARAMETERS:
        raise NotRepresentable(f"{len(properties)} properties")
    return [
        parameter_of(name, about, required=name in required)
        for name, about in properties.items()
    ]


def parameter_of(name: str, schema: object, *, required: bool = False) -> Parameter:
    """Return the row that shows one property; raise `NotRepresentable`."""
    if not isinstance(schema, dict):
        raise NotRepresentable(name)
    if name != _typed_line(name):
        raise NotRepresentable("a name that is not a line of text")
    kind, options = _type_and_options(schema)
    least, most = (
        _typed_value("number", schema.get(member, MISSING))
        for member in limit_keywords(kind) or ("", "")
    )
    examples = schema.get("examples")
    example = examples[0] if isinstance(examples, list) and examples else MISSING
    row = Parameter(
        name=name,
        type=kind,
        required=required,
        description=area_text(schema.get("description", "")),
        default=_typed_value(kind, schema.get("default", MISSING)),
        example=_typed_value(kind, example),
        least=None if least is MISSING else least,
        most=None if most is MISSING else most,
        pattern=_typed_line(schema.get("pattern", "")),
        choices=choices_of_text(text_of_choices(map(_choice_of, options))),
        unique=schema.get("uniqueItems") is True,
        was=name,
    )
    check_same(schema, _property_schema(schema, row), _EMPTY, name)
    return row


def _type_and_options(schema: JsonObject) -> tuple[str, list[Any]]:
    for kind, within in (("choice", schema), ("choices", schema.get("items"))):
        if isinstance(within, dict):
            options = within.get("enum") or within.get(TITLED_OPTIONS[kind])
            if isinstance(options, list) and options:
                return kind, options
    shape = {each: schema[each] for each in _SHAPE_MEMBERS if each in schema}
    kinds = (kind for kind in SHAPES if kind not in CHOOSING and SHAPES[kind] == shape)
    return next(kinds, "json"), []


def _choice_of(option: object) -> Choice:
    if isinstance(option, dict):
        return Choice(str(option.get("const")), str(option.get("title", "")))
    return Choice(str(option))


def _typed_value(kind: str, value: object) -> Any:
    """Return the value that staff type for this one; MISSING if there is none."""
    try:
        return value_of_text(kind, text_of_value(kind, value))
    except ValueError:
        return MISSING


def _typed_line(text: object) -> str:
    return area_text(text).replace("\n", " ")


def _property_schema(stored: JsonObject, row: Parameter) -> JsonObject:
    """Return what a row writes in the place of a property, or of {}."""
    rest: JsonObject = {member: stored[member] for member in _REST if member in stored}
    return {**rest, **property_of(row)}


def schema_of(
    parameters: Iterable[Parameter], base: Mapping[str, Any] | None = None
) -> JsonObject:
    """Return the schema of a table; change only what differs from `base`.

    `base` is a schema that `parameters_of` accepts. An unchanged parameter keeps its
    exact JSON.
    """
    rows, base = list(parameters), base or {}
    schema: JsonObject = {**base, "type": "object", "properties": {}}
    for row in rows:
        stored = base.get("properties", {}).get(row.was, {})
        written = _property_schema(stored, row)
        schema["properties"][row.name] = stored_or_written(stored, written, _EMPTY)
    # Known names keep their earlier order.
    places = {name: place for place, name in enumerate(base.get("required", ()))}
    required = [row for row in rows if row.required]
    required.sort(key=lambda row: places.get(row.was, len(places)))
    if required or "required" in base:
        schema["required"] = [row.name for row in required]
    return schema


def summaries(schema: Mapping[str, Any]) -> list[Parameter]:
    """Return a row for each property of any schema, with all that is known of it.

    For display only: hidden characters are made visible. `type` is one of TYPES or
    JSON's; a property without a type has the type "json".
    """
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return []
    names = required if isinstance(required, list) else []
    return [
        Parameter(
            name=visible(name, None),
            type=_type_text(about),
            required=name in names,
            description=_visible_member(about, "description"),
        )
        for name, about in properties.items()
    ]


def _type_text(about: object) -> str:
    try:
        return parameter_of("", about).type
    except NotRepresentable:
        return _visible_member(about, "type") or "json"


def _visible_member(about: object, member: str) -> str:
    text = about.get(member) if isinstance(about, dict) else None
    return visible(text, None) if isinstance(text, str) else ""
