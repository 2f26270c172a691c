"""Values of a parameter as staff type them into one line, and their validation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.editors.parameter import (
    CHOOSING,
    LISTS,
    MISSING,
    NUMBERS,
    PATTERNED,
    TEXTS,
    Choice,
    Number,
    Parameter,
    fits_type,
    limit_keywords,
    property_of,
)
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models.fields import parse_json
from mcp_app.protocol import schemas

if TYPE_CHECKING:
    pass

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
    "json": gettext_lazy("JSON (anything)"),
}
OTHER_LABELS: Final[dict[str, Label]] = {
    "string": LABELS["text"],
    "object": gettext_lazy("Several fields"),
    "array": gettext_lazy("List"),
    "null": gettext_lazy("Nothing"),
}
"""JSON's own types, for properties that the table cannot show."""

_YES: Final = ("yes", "true")
_NO: Final = ("no", "false")


def value_of_text(kind: str, text: str) -> object:
    """Parse a typed value; "" is no value. The ValueError is a sentence.

    Text in double quotes is parsed as JSON, so that `""` means the empty string.
    """
    if not text:
        return MISSING
    if kind == "boolean":
        return _yes_or_no(text)
    if kind in LISTS:
        value = _list_value(kind, text)
    elif kind in NUMBERS or kind == "json":
        value = _json_value(kind, text)
    else:
        value = _json_value(kind, text) if _is_quoted(text) else text
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
        return value if _reads_as_itself(value) else _json_text(value)
    return _json_text(value)


def _json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"'


def _reads_as_itself(text: str) -> bool:
    plain = bool(text) and text == text.strip() and not _is_quoted(text)
    return plain and "\n" not in text and "\r" not in text


def _yes_or_no(text: str) -> bool:
    word = text.casefold()
    if word in (*_YES, _("yes").casefold()):
        return True
    if word in (*_NO, _("no").casefold()):
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
    lines = [line.strip() for line in text.splitlines()]
    return tuple(_parse_choice(line) for line in lines if line)


def _parse_choice(line: str) -> Choice:
    value, _equals, label = line.partition(" = ")
    return Choice(value.strip(), label.strip())


def text_of_choices(choices: tuple[Choice, ...]) -> str:
    """Return the lines to type for choices."""
    return "\n".join(
        f"{choice.value} = {choice.label}" if choice.label else choice.value
        for choice in choices
    )


def limits_in_words(row: Parameter) -> str:
    """Describe the limits of a parameter briefly; "" if it has none."""
    texts = [*_bounds_in_words(row)]
    if row.type in CHOOSING and row.choices:
        values = ", ".join(choice.label or choice.value for choice in row.choices[:5])
        texts.append(values if len(row.choices) <= 5 else f"{values} …")  # noqa: PLR2004 - as many as a line holds
    if row.pattern:
        texts.append(_("pattern %(pattern)s") % {"pattern": row.pattern})
    if row.unique:
        texts.append(_("each only once"))
    return ", ".join(texts)


def _bounds_in_words(row: Parameter) -> Iterator[str]:
    if limit_keywords(row.type) is None:
        return
    sentence = ""
    if row.least is not None and row.most is not None:
        sentence = _("%(least)s to %(most)s")
    elif row.least is not None:
        sentence = _("at least %(least)s")
    elif row.most is not None:
        sentence = _("at most %(most)s")
    if sentence:
        unit = _limit_unit(row.type)
        text = sentence % {"least": row.least, "most": row.most}
        yield f"{text} {unit}" if unit else text


def _limit_unit(kind: str) -> str:
    if kind in TEXTS:
        return _("characters")
    return _("entries") if kind in LISTS else ""


def problems_of_row(row: Parameter) -> Iterator[tuple[str, str]]:
    """Yield the field and a message for each rule that a row breaks."""
    if row.type in CHOOSING and not row.choices:
        yield "choices", _("Write the choices, one in each line.")
        return
    yield from _doubled_choices(row)
    wrong = _wrong_limits(row)
    if wrong is not None:
        yield wrong
        return
    for name, value in (("default", row.default), ("example", row.example)):
        problem = None if value is MISSING else value_problem(row, value)
        if problem:
            yield name, problem


def _doubled_choices(row: Parameter) -> Iterator[tuple[str, str]]:
    values = [choice.value for choice in row.choices]
    for value in dict.fromkeys(values):
        if values.count(value) > 1:
            yield (
                "choices",
                _("“%(value)s” is there more than once.") % {"value": value},
            )


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
        return _wrong_pattern(row.pattern)
    return None


def _wrong_pattern(pattern: str) -> tuple[str, str] | None:
    try:
        schemas.compile_schema({"type": "string", "pattern": pattern})
    except schemas.SchemaError:
        sentence = _("“%(pattern)s” is not a pattern (a regular expression).")
        return "pattern", sentence % {"pattern": pattern}
    return None


def value_problem(row: Parameter, value: object) -> str | None:
    """Say which limit of a parameter a value breaks; None if it breaks none."""
    return _limit_problem(row, value) or _against_schema(row, value)


def _limit_problem(row: Parameter, value: object) -> str | None:
    size = _limited_size(row.type, value)
    if size is None:
        return None
    if row.most is not None and size > row.most:
        return _above_maximum(row, value, row.most)
    if row.least is not None and size < row.least:
        return _below_minimum(row, value, row.least)
    return None


def _limited_size(kind: str, value: object) -> Number | None:
    """Return the number that the limits of a type apply to; None if there is none."""
    if kind in NUMBERS and isinstance(value, int | float):
        return value
    if limit_keywords(kind) is not None and isinstance(value, str | list):
        return len(value)
    return None


def _above_maximum(row: Parameter, value: object, most: Number) -> str:
    if row.type in NUMBERS:
        sentence = _("The value %(value)s is above the largest, %(limit)s.")
    elif row.type in TEXTS:
        sentence = _("“%(value)s” is longer than %(limit)s characters.")
    else:
        sentence = _("“%(value)s” has too many entries. The maximum is %(limit)s.")
    return sentence % {"value": text_of_value(row.type, value), "limit": most}


def _below_minimum(row: Parameter, value: object, least: Number) -> str:
    if row.type in NUMBERS:
        sentence = _("The value %(value)s is below the smallest, %(limit)s.")
    elif row.type in TEXTS:
        sentence = _("“%(value)s” is shorter than %(limit)s characters.")
    else:
        sentence = _("“%(value)s” has too few entries. The minimum is %(limit)s.")
    return sentence % {"value": text_of_value(row.type, value), "limit": least}


def _against_schema(row: Parameter, value: object) -> str | None:
    """Validate a value with the validator of calls; return a message or None."""
    if schemas.compile_schema(property_of(row)).is_valid(value):
        return None
    sentences = {
        "choice": _("“%(value)s” is none of the choices."),
        "choices": _("“%(value)s” must be a list of the choices, each at most once."),
        "date": _("“%(value)s” is not a date, such as 2026-01-31."),
        "datetime": _(
            "“%(value)s” is not a date and time, such as 2026-01-31T12:00:00Z."
        ),
        "email": _("“%(value)s” is not an e-mail address."),
        "url": _("“%(value)s” is not a web address, such as https://example.com."),
        "text": _("“%(value)s” does not match the pattern."),
        "long": _("“%(value)s” does not match the pattern."),
    }
    other = _("“%(value)s” does not fit the limits.")
    return sentences.get(row.type, other) % {"value": text_of_value(row.type, value)}


def type_label(kind: str) -> str:
    """Return the label of a type, either one of the table or one of JSON."""
    return str(LABELS.get(kind) or OTHER_LABELS.get(kind) or kind)
