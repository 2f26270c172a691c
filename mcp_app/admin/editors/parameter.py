"""A parameter as a row of a table: its types, its limits, and its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from mcp_app.protocol.json_types import JsonObject

Number: TypeAlias = "int | float"


class Missing:
    """Says that there is no default or example; null would be a value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice: the value to send, and the text that people read, or ""."""

    value: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One row of the table.

    `least` and `most` limit the value, the number of characters or of entries,
    depending on the type. `rest` are members that the table keeps but does not show.
    `was` is the name of the parameter in the schema.
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
    rest: Mapping[str, object] = field(default_factory=dict)
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
STRING: Final = (str,)
INTEGER: Final = (int,)
NUMBER: Final = (int, float)
_PLAIN: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys((*TEXTS, "choice", "date", "datetime"), STRING),
    "integer": INTEGER,
    "number": NUMBER,
}
_ENTRIES: Final[Mapping[str, tuple[type, ...]]] = {
    "choices": STRING,
    "texts": STRING,
    "integers": INTEGER,
    "numbers": NUMBER,
}


def limit_keywords(kind: str) -> tuple[str, str] | None:
    """Return the keywords of a type's limits; None if it has none."""
    if kind in TEXTS:
        return "minLength", "maxLength"
    if kind in NUMBERS:
        return "minimum", "maximum"
    return ("minItems", "maxItems") if kind in LISTS else None


def is_choice(choice: Choice) -> bool:
    """Return whether a choice can be written on one line, as `value = shown`."""
    written = (choice.value, choice.label)
    return all(map(is_single_line, written)) and (
        choice.value != "" and " = " not in choice.value
    )


def is_plain_text(text: str) -> bool:
    """Return whether a browser's text area sends a text back unchanged."""
    return text == text.strip() and "\r" not in text


def is_single_line(text: str) -> bool:
    return is_plain_text(text) and "\n" not in text


def fits_type(kind: str, value: object) -> bool:
    """Return whether a value is of a type of the table, ignoring its limits."""
    if kind in _PLAIN:
        return is_of_types(value, _PLAIN[kind])
    if kind in _ENTRIES:
        return are_of_types(value, _ENTRIES[kind])
    return kind == "json" or isinstance(value, bool)


def is_of_types(value: object, types: tuple[type, ...]) -> bool:
    return isinstance(value, types) and not isinstance(value, bool)


def are_of_types(value: object, types: tuple[type, ...]) -> bool:
    return isinstance(value, list) and all(is_of_types(item, types) for item in value)


def property_of(row: Parameter) -> JsonObject:
    """Return the schema of one row."""
    schema: JsonObject = {**row.rest, **_shape_of_row(row)}
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
    if row.type == "choice":
        return {**shape, **_choice_options(row)}
    if row.type == "choices":
        return {**shape, "items": {**shape["items"], **_choice_options(row)}}
    return dict(shape)


def _choice_options(row: Parameter) -> JsonObject:
    if not any(choice.label for choice in row.choices):
        return {"enum": [choice.value for choice in row.choices]}
    return {
        TITLED_OPTIONS[row.type]: [_titled_option(choice) for choice in row.choices]
    }


def _titled_option(choice: Choice) -> JsonObject:
    option = {"const": choice.value}
    return {**option, "title": choice.label} if choice.label else option
