"""Fields for values that a JSON Schema describes, and how they are read.

Each property has a field that fits its type, or an area for JSON.  An empty field is
not sent; if it is required and may be null, it is sent as null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from itertools import zip_longest
from typing import Any, Final

from django.http import QueryDict
from django.utils.formats import date_format
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from mcp_app.admin.editors.json_texts import lines_from_browser
from mcp_app.admin.editors.parameter_values import (
    CHOOSING,
    LISTS,
    MISSING,
    SHAPES,
    Parameter,
    limit_keywords,
    limits_in_words,
    text_of_value,
    type_label,
    value_of_text,
)
from mcp_app.admin.editors.rows import area_text
from mcp_app.interface.rules import visible
from mcp_app.kinds.query.comparisons import PERIODS, period_days
from mcp_app.models.fields import parse_json
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.site_time import local_date

AREAS: Final = ("json", "long")
"""The kinds of fields that are text areas."""
OF_ALL: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "$ref", "patternProperties"}
)
"""Top-level members of a schema that single fields cannot express."""
OWN: Final = OF_ALL | {"enum", "const", "properties", "prefixItems"}
"""Members of a property that its type does not express."""
MAX_TICKS: Final = 12
"""The greatest number of choices shown as boxes; more are a list."""
MAX_ABOUT: Final = 1_000
"""Characters of a description that are shown: some list thousands of choices."""
NULL: Final = {"type": "null"}
DECIMAL: Final = [{"type": "number"}, {"type": "string"}]
"""The `anyOf` of a decimal number."""


@dataclass(frozen=True, slots=True, repr=False)
class Option:
    """A choice: its value in the page, its shown text, and the JSON value it sends."""

    value: str
    text: str
    chosen: bool = False
    sends: object = None


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
    may_be_null: bool = False
    about: str = ""
    limits: str = ""
    left_out: str = ""
    """The default, which counts if the field is not sent."""
    value: str = ""
    options: Sequence[Option] = ()
    schema: str = ""
    error: str = ""

    @property
    def is_area(self) -> bool:
        return self.kind in AREAS

    @property
    def has_ticks(self) -> bool:
        return self.kind == "choices" and len(self.options) <= MAX_TICKS

    @property
    def input_mode(self) -> str:
        """The input mode of an on-screen keyboard; "" for letters."""
        return {"integer": "numeric", "number": "decimal"}.get(self.kind, "")

    @property
    def hint(self) -> str:
        """The limits of the value, and its type if the input does not show that."""
        has_plain_input = self.options or self.kind in ("text", "long", "date")
        commas = _("commas between them") if self.kind in LISTS else ""
        words = [type_label(self.kind), commas] if not has_plain_input else []
        return ", ".join(filter(None, [*words, self.limits]))


class Unreadable(Exception):
    """Some fields cannot be read; `fields` are all fields, with error messages."""

    def __init__(self, fields: Sequence[Field]) -> None:
        super().__init__("Some fields cannot be read.")
        self.fields = fields


def fields_of(
    schema: Mapping[str, Any], prefix: str, *, is_question: bool = False
) -> list[Field] | None:
    """Return a field for each property, filled in with its example.

    The fields of a question are filled in with defaults, as clients do (specification:
    client/elicitation).  None if only JSON can express the whole object.
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
    members, may_be_null = _without_null(about)
    kind, options = _kind_of(members)
    description = visible(str(members.get("description", "")), None)
    examples, default = members.get("examples"), members.get("default", MISSING)
    preset = examples[0] if isinstance(examples, list) and examples else MISSING
    if is_question:
        # The field shows the default itself, so `left_out` need not name it.
        preset, default = default, MISSING
    field = Field(
        # Hash the name: a property may have the name of another input of the form.
        name=f"{prefix}{sha256(name.encode()).hexdigest()[:12]}",
        key=name,
        label=visible(name) or '""',
        kind=kind,
        required=required,
        may_be_null=may_be_null,
        about=Truncator(description).chars(MAX_ABOUT),
    )
    if kind == "json":
        value = "" if preset is MISSING else jsonrpc.pretty_text(preset)
        return replace(field, value=value, schema=jsonrpc.pretty_text(about))
    chosen = preset if isinstance(preset, list) else [preset]
    return replace(
        field,
        limits="" if options else _limits_text(kind, members),
        left_out="" if default is None else visible(text_of_value(kind, default)),
        value=text_of_value(kind, preset),
        options=[replace(option, chosen=option.sends in chosen) for option in options],
    )


def _without_null(about: object) -> tuple[JsonObject, bool]:
    """Return the members of a property without null, and whether it may be null.

    A decimal number, which may be sent as a number or a text, becomes a number.
    """
    members = dict(about) if isinstance(about, dict) else {"const": about}
    options, types = members.get("anyOf"), members.get("type")
    if isinstance(options, list):
        schemas = [each for each in options if each != NULL and isinstance(each, dict)]
        if len(schemas) == 1 or schemas == DECIMAL:
            del members["anyOf"]
            return {**schemas[0], **members}, NULL in options
    if isinstance(types, list) and "null" in types:
        names = [name for name in types if name != "null"]
        return {**members, "type": names[0] if len(names) == 1 else names}, True
    return members, False


def _kind_of(members: JsonObject) -> tuple[str, Sequence[Option]]:
    """Return the kind of field for a property, and its choices."""
    items = members.get("items", {})
    for kind, schema in (("choice", members), ("choices", items)):
        if options := [*_options_of(schema)]:
            return kind, options
    if not isinstance(items, dict) or OWN & {*members, *items}:
        return "json", ()
    shaping = ("type", "format", "contentMediaType")
    whole = {each: members[each] for each in shaping if each in members}
    if items:
        whole["items"] = {"type": items.get("type")}
    yes_and_no = Option("yes", _("yes"), sends=True), Option("no", _("no"), sends=False)
    # If no kind has this format, the type decides; the call checks the format.
    plain = {name: each for name, each in whole.items() if name in ("type", "items")}
    for members_of_shape in (whole, plain):
        for kind, shape in SHAPES.items():
            if shape == members_of_shape and kind not in CHOOSING:
                return kind, yes_and_no if kind == "boolean" else ()
    return "json", ()


def _options_of(schema: object) -> Iterator[Option]:
    """Yield the choices of a schema; none if a browser would change one of the texts.

    The titles of an elicitation are in `enumNames`, or in `oneOf` or `anyOf`.
    """
    members = schema if isinstance(schema, dict) else {}
    values, titles = members.get("enum"), members.get("enumNames")
    if not isinstance(values, list):
        titled = members.get("oneOf", members.get("anyOf"))
        titled = titled if isinstance(titled, list) else []
        titled = [each if isinstance(each, dict) else {} for each in titled]
        values = [each.get("const") for each in titled]
        titles = [each.get("title") for each in titled]
    titles = titles[: len(values)] if isinstance(titles, list) else []
    texts = [
        each if isinstance(each, str) else jsonrpc.write(each).decode()
        for each in values
    ]
    if any(not each or each != area_text(each) or "\n" in each for each in texts):
        return
    are_periods = {*texts} <= {*PERIODS}
    for text, value, title in zip_longest(texts, values, titles):
        shown = _period_text(text) if are_periods else visible(str(title or text))
        # Null is no choice: an empty field can mean it.
        if value is not None:
            yield Option(text, shown, sends=value)


def _period_text(name: str) -> str:
    """Return the name of a period with its first and its last day."""
    first, end = period_days(local_date(), name)
    last = end - timedelta(days=1)
    days = date_format(last, "j M Y")
    if first != last:
        # Do not repeat a month or a year that both days have.
        wording = "j M" if first.year == last.year else "j M Y"
        wording = "j" if f"{first:%Y%m}" == f"{last:%Y%m}" else wording
        values = {"first": date_format(first, wording), "last": days}
        days = _("%(first)s to %(last)s") % values
    return f"{name} ({days})"


def _limits_text(kind: str, members: JsonObject) -> str:
    least, most = (
        limit if isinstance(limit := members.get(name), int | float) else None
        for name in limit_keywords(kind) or ("", "")
    )
    pattern, unique = members.get("pattern", ""), members.get("uniqueItems") is True
    row = Parameter("", kind, least=least, most=most, pattern=pattern, unique=unique)
    return visible(limits_in_words(row), None)


def fill_in_fields(fields: Sequence[Field], data: QueryDict) -> list[Field]:
    """Return the fields filled in with the sent texts."""
    filled = []
    for field in fields:
        texts = data.getlist(field.name)
        options = [replace(each, chosen=each.value in texts) for each in field.options]
        value = lines_from_browser(texts[-1] if texts else "")
        filled.append(replace(field, value=value, options=options))
    return filled


def with_value(field: Field, value: object) -> Field:
    """Return a field filled in with a value; MISSING empties it."""
    sent = value if isinstance(value, list) else [value]
    options = [replace(option, chosen=option.sends in sent) for option in field.options]
    if value is None:
        value = MISSING
    elif field.kind == "json" and value is not MISSING:
        return replace(field, value=jsonrpc.pretty_text(value))
    return replace(field, value=text_of_value(field.kind, value), options=options)


def values_of(fields: Sequence[Field]) -> JsonObject:
    """Return the values by property, without empty ones.

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
            if value is MISSING and field.required and field.may_be_null:
                value = None
            if value is not MISSING:
                values[field.key] = value
    if errors:
        raise Unreadable(
            [replace(each, error=errors.get(each.key, each.error)) for each in fields]
        )
    return values


def _field_value(field: Field) -> object:
    chosen = [option.sends for option in field.options if option.chosen]
    if field.kind == "choices":
        return chosen or MISSING
    if field.options:
        return chosen[0] if chosen else MISSING
    if field.kind == "json":
        return parse_json(field.value) if field.value.strip() else MISSING
    if "\0" in field.value:
        raise ValueError(_("The text has the character NUL (U+0000); remove it."))
    return value_of_text(field.kind, field.value)
