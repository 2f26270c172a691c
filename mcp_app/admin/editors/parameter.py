"""A parameter as a row of a table: its types, its limits, and its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from mcp_app.protocol.json_types import JsonObject

Number: TypeAlias = "int | float"


MISSING: Final = object()
"""Says that there is no default or example; null would be a value."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice: the value to send, and the text that people read, or ""."""

    value: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One row of the table.

    `least` and `most` limit the value, the number of characters or of entries,
    depending on the type. `was` is the name of the parameter in the schema.
    """

    name: str
    type: str = "text"
    required: bool = False
    description: str = ""
    default: object = MISSING
    example: object = MISSING
    least: Number | None = None
    most: Number | None = None
    pattern: str = ""
    choices: tuple[Choice, ...] = ()
    unique: bool = False
    was: str = field(default="", compare=False)


TEXTS: Final = ("text", "long", "email", "url")
NUMBERS: Final = ("integer", "number")
LISTS: Final = ("choices", "texts", "integers", "numbers")
CHOOSING: Final = ("choice", "choices")
PATTERNED: Final = ("text", "long")

# What distinguishes the types, without limits and descriptions.
SHAPES: Final[Mapping[str, JsonObject]] = {
    "text": {"type": "string"},
    "long": {"type": "string", "contentMediaType": "text/plain"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "choice": {"type": "string"},
    "choices": {"type": "array", "items": {"type": "string"}},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "email": {"type": "string", "format": "email"},
    "url": {"type": "string", "format": "uri"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "integers": {"type": "array", "items": {"type": "integer"}},
    "numbers": {"type": "array", "items": {"type": "number"}},
    "json": {},
}
TYPES: Final = tuple(SHAPES)
TITLED_OPTIONS: Final = {"choice": "oneOf", "choices": "anyOf"}
"""The keywords of titled choices (elicitation, "Titled Multi-Select Enum")."""
_VALUES: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("integer", "integers"), (int,)),
    **dict.fromkeys(("number", "numbers"), (int, float)),
    "boolean": (bool,),
}
"""Of what type a value is, or each of its entries, if that is no text."""


def limit_keywords(kind: str) -> tuple[str, str] | None:
    """Return the keywords of a type's limits; None if it has none."""
    if kind in TEXTS:
        return "minLength", "maxLength"
    if kind in NUMBERS:
        return "minimum", "maximum"
    return ("minItems", "maxItems") if kind in LISTS else None


def fits_type(kind: str, value: object) -> bool:
    """Return whether a value is of a type of the table, ignoring its limits."""
    values = value if kind in LISTS else [value]
    types = _VALUES.get(kind, (str,))
    fits = isinstance(values, list) and all(type(each) in types for each in values)
    return fits or kind == "json"


def property_of(row: Parameter) -> JsonObject:
    """Return the schema of one row."""
    schema = _shape_of_row(row)
    if row.description:
        schema["description"] = row.description
    for member, limit in zip(
        limit_keywords(row.type) or (), (row.least, row.most), strict=False
    ):
        if limit is not None:
            schema[member] = limit
    if row.pattern and row.type in PATTERNED:
        schema["pattern"] = row.pattern
    if row.unique and row.type in LISTS:
        schema["uniqueItems"] = True
    if row.default is not MISSING:
        schema["default"] = row.default
    if row.example is not MISSING:
        schema["examples"] = [row.example]
    return schema


def _shape_of_row(row: Parameter) -> JsonObject:
    shape = SHAPES[row.type]
    if row.type not in CHOOSING:
        return {**shape}
    options: JsonObject = {"enum": [choice.value for choice in row.choices]}
    if any(choice.label for choice in row.choices):
        titled = [{"const": each.value, "title": each.label} for each in row.choices]
        options = {
            TITLED_OPTIONS[row.type]: [
                {name: text for name, text in each.items() if text} for each in titled
            ]
        }
    if row.type == "choice":
        return {**shape, **options}
    return {**shape, "items": {**shape["items"], **options}}
