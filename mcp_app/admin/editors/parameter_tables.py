"""A tool's input schema as a table of parameters, and back, without loss.

A table shows schemas whose properties are flat. Any other schema raises
`NotRepresentable`, and staff edit it as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mcp_app.admin.editors.parameter import (
    CHOOSING,
    LISTS,
    MISSING,
    NUMBER,
    PATTERNED,
    SHAPES,
    STRING,
    TITLED_OPTIONS,
    Choice,
    Number,
    Parameter,
    are_of_types,
    fits_type,
    is_choice,
    is_of_types,
    is_plain_text,
    is_single_line,
    limit_keywords,
    property_of,
)
from mcp_app.admin.editors.rows import NotRepresentable
from mcp_app.interface.rules import visible
from mcp_app.protocol.json_types import JsonObject

MAX_PARAMETERS: Final = 40
"""More rows would come near Django's limit of 1,000 fields in a form."""

_SHAPE_MEMBERS: Final = ("type", "format", "contentMediaType", "items")
_REST: Final = ("title", "deprecated", "readOnly", "writeOnly", "$comment")
_REST_OF_ALL: Final = ("$schema", "title", "description", "$comment")


def parameters_of(schema: Mapping[str, Any]) -> list[Parameter]:
    """Return the rows that show a schema; raise `NotRepresentable`."""
    for member in schema:
        if member not in ("type", "properties", "required", "additionalProperties"):
            _check_rest(member in _REST_OF_ALL, member)
    if schema.get("type", "object") != "object":
        raise NotRepresentable("type")
    if not isinstance(schema.get("additionalProperties", True), bool):
        raise NotRepresentable("additionalProperties")
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict):
        raise NotRepresentable("properties")
    if not are_of_types(required, STRING) or set(required) - properties.keys():
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
    _check_rest(is_single_line(name), "a name that is not a line of text")
    kind, choices = _type_and_choices(name, schema)
    for member in schema:
        known = member in _members_of(kind, choices) or member in _REST
        _check_rest(known, f"{member} in {name}")
    least, most = _bounds_of(name, kind, schema)
    return Parameter(
        name=name,
        type=kind,
        required=required,
        description=_member_text(name, schema, "description"),
        default=_default_of(name, kind, schema),
        example=_example_of(name, kind, schema),
        least=least,
        most=most,
        pattern=_member_text(name, schema, "pattern"),
        choices=choices,
        unique=_unique_of(name, schema),
        rest={member: schema[member] for member in _REST if member in schema},
        was=name,
    )


def _check_rest(known: bool, what: str) -> None:
    if not known:
        raise NotRepresentable(what)


def _type_and_choices(name: str, schema: JsonObject) -> tuple[str, tuple[Choice, ...]]:
    for kind in CHOOSING:
        options = _options_of(kind, schema)
        if options is not None:
            return kind, tuple(_choices_of(name, options))
    shape = {each: schema[each] for each in _SHAPE_MEMBERS if each in schema}
    for kind, wanted in SHAPES.items():
        if shape == wanted and kind not in CHOOSING:
            return kind, ()
    raise NotRepresentable(_unsupported_part(name, schema))


def _options_of(kind: str, schema: JsonObject) -> object:
    """Return the options of a property if it is of this type, else None."""
    within = schema if kind == "choice" else schema.get("items")
    outer = {each: schema[each] for each in _SHAPE_MEMBERS if each in schema}
    if not isinstance(within, dict) or within.get("type") != "string":
        return None
    if kind == "choices":
        outer["items"] = {"type": "string"}
        if within.keys() - {"type", "enum", TITLED_OPTIONS[kind]}:
            return None
    options = [
        within[each] for each in ("enum", TITLED_OPTIONS[kind]) if each in within
    ]
    return options[0] if len(options) == 1 and outer == SHAPES[kind] else None


def _choices_of(name: str, options: object) -> Iterator[Choice]:
    if not isinstance(options, list) or not options:
        raise NotRepresentable(f"the choices of {name}")
    for option in options:
        choice = _choice_of(option)
        if choice is None or not is_choice(choice):
            raise NotRepresentable(f"the choices of {name}")
        yield choice


def _choice_of(option: object) -> Choice | None:
    if isinstance(option, str):
        return Choice(option)
    if not isinstance(option, dict) or option.keys() - {"const", "title"}:
        return None
    value, title = option.get("const"), option.get("title", "")
    if isinstance(value, str) and isinstance(title, str):
        return Choice(value, title)
    return None


def _unsupported_part(name: str, schema: JsonObject) -> str:
    """Name the part of a property that a row cannot show."""
    telling = ("$ref", "oneOf", "anyOf", "allOf", "not", "if", "properties", "const")
    for member in telling:
        if member in schema:
            return f"{member} in {name}"
    if isinstance(schema.get("items"), dict) and "properties" in schema["items"]:
        return f"properties in the items of {name}"
    return f"the type of {name}"


def _members_of(kind: str, choices: tuple[Choice, ...]) -> set[str]:
    members = {"description", "default", "examples", *SHAPES[kind]}
    if kind == "choice":
        members |= {"enum", TITLED_OPTIONS[kind]} if choices else set()
    if kind in PATTERNED:
        members.add("pattern")
    if kind in LISTS:
        members.add("uniqueItems")
    return members.union(limit_keywords(kind) or ())


def _member_text(name: str, schema: JsonObject, member: str) -> str:
    text = schema.get(member, "")
    fits = is_single_line if member == "pattern" else is_plain_text
    if not isinstance(text, str) or not fits(text):
        raise NotRepresentable(f"{member} in {name}")
    return text


def _bounds_of(
    name: str, kind: str, schema: JsonObject
) -> tuple[Number | None, Number | None]:
    limits: list[Number | None] = []
    for member in limit_keywords(kind) or ():
        value = schema.get(member)
        if member in schema and not is_of_types(value, NUMBER):
            raise NotRepresentable(f"{member} in {name}")
        limits.append(value)
    return (limits[0], limits[1]) if limits else (None, None)


def _unique_of(name: str, schema: JsonObject) -> bool:
    unique = schema.get("uniqueItems", False)
    if not isinstance(unique, bool):
        raise NotRepresentable(f"uniqueItems in {name}")
    return unique


def _default_of(name: str, kind: str, schema: JsonObject) -> object:
    if "default" not in schema:
        return MISSING
    if not fits_type(kind, schema["default"]):
        raise NotRepresentable(f"default in {name}")
    return schema["default"]


def _example_of(name: str, kind: str, schema: JsonObject) -> object:
    examples = schema.get("examples", [])
    if not isinstance(examples, list) or len(examples) > 1:
        raise NotRepresentable(f"examples in {name}")
    if examples and not fits_type(kind, examples[0]):
        raise NotRepresentable(f"examples in {name}")
    return examples[0] if examples else MISSING


def schema_of(
    parameters: Iterable[Parameter], base: Mapping[str, Any] | None = None
) -> JsonObject:
    """Return the schema of a table; change only what differs from `base`.

    `base` is a schema that `parameters_of` accepts. An unchanged parameter keeps its
    exact JSON.
    """
    rows = list(parameters)
    base = base or {}
    schema: JsonObject = dict(base) if "type" in base else {"type": "object", **base}
    before = base.get("properties", {})
    schema["properties"] = {row.name: _property_schema(row, before) for row in rows}
    required = _required_names(rows, base.get("required", []))
    if required or "required" in base:
        schema["required"] = required
    return schema


def _property_schema(row: Parameter, before: Mapping[str, Any]) -> object:
    stored = before.get(row.was)
    if stored is not None:
        as_it_was = parameter_of(row.name, stored, required=row.required)
        if as_it_was == row:
            return stored
    return property_of(row)


def _required_names(rows: list[Parameter], before: list[str]) -> list[str]:
    """Return the names of required rows, known ones in their earlier order."""
    places = {name: place for place, name in enumerate(before)}
    required = [row for row in rows if row.required]
    required.sort(key=lambda row: places.get(row.was, len(before)))
    return [row.name for row in required]


def with_hidden_members(
    parameters: Iterable[Parameter], base: Mapping[str, Any]
) -> list[Parameter]:
    """Return the rows with the members of `base` that the form does not show."""
    known = {each.name: each.rest for each in parameters_of(base)}
    return [replace(each, rest=known.get(each.was, {})) for each in parameters]


@dataclass(frozen=True, slots=True)
class Summary:
    """A one-line summary of a property that rows cannot show."""

    name: str
    type: str
    required: bool
    description: str


def summaries(schema: Mapping[str, Any]) -> list[Summary]:
    """Return a line for each property of any schema; `type` is one of TYPES or JSON's.

    For display only: hidden characters are made visible. A property without a type has
    the type "json".
    """
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return []
    names = required if isinstance(required, list) else []
    return [
        Summary(
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
