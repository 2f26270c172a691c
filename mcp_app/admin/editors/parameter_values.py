"""A parameter as a row of a table: its types, limits, JSON Schema and values.

Staff type each value into one line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models.fields import parse_json
from mcp_app.protocol import schemas
from mcp_app.protocol.json_types import JsonObject

Number: TypeAlias = "int | float"


MISSING: Final = object()
"""Stands for a missing default or example; None would be the value null."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice: the value to send, and the text that people read, or ""."""

    value: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One row of the table.

    Depending on the type, `least` and `most` limit the value, the number of characters
    or the number of entries. `was` is the name of the parameter in the schema.
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

# The schema of each type, without limits and descriptions.
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
"""The Python types of a value, or of its entries; texts for any other type."""


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


LABELS: Final[dict[str, Label]] = {
    "text": gettext_lazy("Text"),
    "long": gettext_lazy("Long text"),
    "integer": gettext_lazy("Whole number"),
    "number": gettext_lazy("Number"),
    "boolean": gettext_lazy("Yes or no"),
    "choice": gettext_lazy("One of a list"),
    "choices": gettext_lazy("Several of a list"),
    "date": gettext_lazy("Date"),
    "datetime": gettext_lazy("Date and time"),
    "email": gettext_lazy("E-mail"),
    "url": gettext_lazy("Web address"),
    "texts": gettext_lazy("List of texts"),
    "integers": gettext_lazy("List of whole numbers"),
    "numbers": gettext_lazy("List of numbers"),
    "json": gettext_lazy("JSON"),
}
OTHER_LABELS: Final[dict[str, Label]] = {
    "string": LABELS["text"],
    "object": gettext_lazy("Several fields"),
    "array": gettext_lazy("List"),
    "null": gettext_lazy("Nothing"),
}
"""JSON's own types, for properties that the table cannot show."""


def value_of_text(kind: str, text: str) -> object:
    """Parse a typed value; "" means no value. The message of ValueError is a sentence.

    Text in double quotes is parsed as JSON, so that `""` means the empty string.
    """
    if not text:
        return MISSING
    value: object = text
    if kind == "boolean":
        return _yes_or_no(text)
    if kind in LISTS:
        value = _list_value(kind, text)
    elif kind in NUMBERS or kind == "json" or _is_quoted(text):
        value = _json_value(kind, text)
    if not fits_type(kind, value):
        raise ValueError(_mismatch_sentence(kind, text))
    return value


def text_of_value(kind: str, value: object) -> str:
    """Return the text to type for a value."""
    if value is MISSING:
        return ""
    if isinstance(value, bool) and kind == "boolean":
        return _("yes") if value else _("no")
    if kind in LISTS and isinstance(value, list):
        return _list_text(kind, value)
    if isinstance(value, str) and kind != "json":
        is_line = value == value.strip() and "\n" not in value and "\r" not in value
        if value and is_line and not _is_quoted(value):
            return value
    return _json_text(value)


def _json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"'


def _yes_or_no(text: str) -> bool:
    word = text.casefold()
    if word in ("yes", "true", _("yes").casefold()):
        return True
    if word in ("no", "false", _("no").casefold()):
        return False
    raise ValueError(_("“%(text)s” is neither yes nor no.") % {"text": visible(text)})


def _json_value(kind: str, text: str) -> object:
    try:
        return parse_json(text)
    except ValueError:
        raise ValueError(_mismatch_sentence(kind, text)) from None


def _list_value(kind: str, text: str) -> object:
    if text.startswith("["):
        return _json_value(kind, text)
    entries = [entry.strip() for entry in text.split(",")]
    if kind in ("choices", "texts"):
        return entries
    return [_json_value(kind, entry) for entry in entries]


def _list_text(kind: str, values: list[object]) -> str:
    """Return entries with commas, or as JSON if those would be read differently."""
    texts = [value if isinstance(value, str) else _json_text(value) for value in values]
    together = ", ".join(texts)
    if not together or together.startswith("["):
        return _json_text(values)
    return together if _list_value(kind, together) == values else _json_text(values)


def _mismatch_sentence(kind: str, text: str) -> str:
    sentences = {
        "integer": _("“%(text)s” is not a whole number."),
        "number": _("“%(text)s” is not a number."),
        "json": _("“%(text)s” is not JSON. Put a text in double quotes."),
        "texts": _("“%(text)s” is not a list of texts, such as: red, blue."),
        "choices": _("“%(text)s” is not a list of choices, such as: red, blue."),
        "integers": _("“%(text)s” is not a list of whole numbers, such as: 1, 2."),
        "numbers": _("“%(text)s” is not a list of numbers, such as: 1, 2.5."),
    }
    quoted = _(
        "%(text)s begins with a double quote, so it is read as JSON, but it is no JSON"
        " string. Leave the quotes out, or correct it."
    )
    return sentences.get(kind, quoted) % {"text": visible(text)}


def choices_of_text(text: str) -> tuple[Choice, ...]:
    """Parse choices, one per line, each optionally as `value = shown text`."""
    lines = filter(None, map(str.strip, text.splitlines()))
    parts = [line.partition(" = ") for line in lines]
    return tuple(Choice(value.strip(), label.strip()) for value, _, label in parts)


def text_of_choices(choices: Iterable[Choice]) -> str:
    """Return the lines to type for choices."""
    return "\n".join(
        f"{choice.value} = {choice.label}" if choice.label else choice.value
        for choice in choices
    )


def limits_in_words(row: Parameter) -> str:
    """Describe the limits of a parameter briefly; "" if it has none."""
    texts = [_bounds_in_words(row)]
    if row.type in CHOOSING and row.choices:
        values = ", ".join(choice.label or choice.value for choice in row.choices[:5])
        texts.append(values if len(row.choices) <= 5 else f"{values} …")  # noqa: PLR2004 - as many as a line holds
    if row.pattern:
        texts.append(_("pattern %(pattern)s") % {"pattern": row.pattern})
    if row.unique:
        texts.append(_("each only once"))
    return ", ".join(filter(None, texts))


def _bounds_in_words(row: Parameter) -> str:
    bounds = (row.least is not None, row.most is not None)
    if limit_keywords(row.type) is None or bounds == (False, False):
        return ""
    sentences = {
        (True, True): _("%(least)s to %(most)s"),
        (True, False): _("at least %(least)s"),
        (False, True): _("at most %(most)s"),
    }
    text = sentences[bounds] % {"least": row.least, "most": row.most}
    if row.type in TEXTS:
        return f"{text} {_('characters')}"
    return f"{text} {_('entries')}" if row.type in LISTS else text


def problems_of_row(row: Parameter) -> Iterator[tuple[str, str]]:
    """Yield the field and a message for each rule that a row breaks."""
    if row.type in CHOOSING and not row.choices:
        yield "choices", _("Write the choices, one in each line.")
        return
    for choice, count in Counter(each.value for each in row.choices).items():
        if count > 1:
            sentence = _("“%(value)s” is there more than once.")
            yield "choices", sentence % {"value": choice}
    wrong = _wrong_limits(row)
    if wrong is not None:
        yield wrong
        return
    for name, value in (("default", row.default), ("example", row.example)):
        problem = None if value is MISSING else _value_problem(row, value)
        if problem:
            yield name, problem


def _wrong_limits(row: Parameter) -> tuple[str, str] | None:
    if row.type not in NUMBERS:
        for name, limit in (("least", row.least), ("most", row.most)):
            if limit is not None and (limit < 0 or limit != int(limit)):
                return name, _("A number of characters or entries must be 0 or more.")
    if row.least is not None and row.most is not None and row.least > row.most:
        return "most", _("The largest, %(most)s, is below the smallest, %(least)s.") % {
            "most": row.most,
            "least": row.least,
        }
    if row.pattern and row.type in PATTERNED:
        try:
            schemas.compile_schema({"type": "string", "pattern": row.pattern})
        except schemas.SchemaError:
            sentence = _("“%(pattern)s” is not a pattern (a regular expression).")
            return "pattern", sentence % {"pattern": row.pattern}
    return None


def _value_problem(row: Parameter, value: object) -> str | None:
    """Validate a value with the validator of calls; return a message or None."""
    for violation in schemas.compile_schema(property_of(row)).violations(value, 1):
        sentences = {
            "maximum": _("The value %(value)s is above the largest, %(limit)s."),
            "minimum": _("The value %(value)s is below the smallest, %(limit)s."),
            "maxLength": _("“%(value)s” is longer than %(limit)s characters."),
            "minLength": _("“%(value)s” is shorter than %(limit)s characters."),
            "maxItems": _(
                "“%(value)s” has too many entries. The maximum is %(limit)s."
            ),
            "minItems": _("“%(value)s” has too few entries. The minimum is %(limit)s."),
            "pattern": _("“%(value)s” does not match the pattern."),
            "choice": _("“%(value)s” is none of the choices."),
            "choices": _(
                "“%(value)s” must be a list of the choices, each at most once."
            ),
            "date": _("“%(value)s” is not a date, such as 2026-01-31."),
            "datetime": _(
                "“%(value)s” is not a date and time, such as 2026-01-31T12:00:00Z."
            ),
            "email": _("“%(value)s” is not an e-mail address."),
            "url": _("“%(value)s” is not a web address, such as https://example.com."),
        }
        other = _("“%(value)s” does not fit the limits.")
        sentence = sentences.get(violation.rule) or sentences.get(row.type, other)
        limit = row.least if violation.rule.startswith("min") else row.most
        return sentence % {"value": text_of_value(row.type, value), "limit": limit}
    return None


def type_label(kind: str) -> str:
    """Return the label of a type, either one of the table or one of JSON."""
    return str(LABELS.get(kind) or OTHER_LABELS.get(kind) or kind)
