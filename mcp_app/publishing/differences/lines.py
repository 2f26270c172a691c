"""A content in lines that people read: what each of its columns says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext as _

from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import definition_of
from mcp_app.interface.definitions import EventDefinition, ToolDefinition, ToolHints
from mcp_app.kinds import KindError, complete_definition, usable_kinds
from mcp_app.kinds.kind import OUTSIDE, Description
from mcp_app.kinds.query.comparisons import PERIODS
from mcp_app.kinds.query.config import CURSOR_SCHEMA
from mcp_app.models import DefinitionRow, PublishedRow, Tool
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.differences.difference import MALFORMED, readable_value


class Line(NamedTuple):
    """What a column says, or a part of it; lines with the same `key` are compared."""

    part: str
    key: str
    text: str


EVENT_SCHEMAS: Final = ("input_schema", "payload_schema")
CHANGES: Final = "changes"
"""Stands for all columns of a tool's hints, which make one line together."""


@dataclass(frozen=True, slots=True)
class ClientView:
    """A content as clients get it: with the schema and the hints that follow from it.

    `description` is the config in words, None if only its JSON is known.
    """

    content: JsonObject
    description: Description | None = None

    def lines_of(self, field: str) -> list[Line]:
        """Return the lines of a column; none if the content does not have it."""
        if field not in self.content:
            return []
        if field == "config" and self.description is not None:
            return [Line(label, text, text) for label, text in self.description]
        value = self.content[field]
        if field in _LINES:
            with suppress(*MALFORMED):
                return list(_LINES[field](value))
        return [Line("", "", readable_value(value))]


def client_view(
    row: PublishedRow, content: JsonObject, registry: Registry
) -> ClientView:
    """Return a content of a row as clients get it and people read it."""
    if not content or not isinstance(row, DefinitionRow) or row.from_code:
        return ClientView(content)
    try:
        stored = definition_of((row.kind_of_row, ""), {"kind": row.kind, **content}, {})
        kinds = usable_kinds(registry)
        served = complete_definition(stored, kinds).definition
    except (ValueError, KindError):
        return ClientView(content)
    kind = kinds.get(stored.kind)
    described = None
    if kind is not None and content.get("config"):
        described = kind.describe_safely(stored.definition, stored.config)
    if not isinstance(served, ToolDefinition):
        names = EVENT_SCHEMAS if isinstance(served, EventDefinition) else ()
        event_schemas = {name: getattr(served, name) for name in names}
        return ClientView({**content, **event_schemas}, described)
    columns = {name: each for name, each in content.items() if name not in Tool.HINTS}
    if served.input_schema.get("properties"):
        columns["input_schema"] = served.input_schema
    outside = dict(described or ()).get(str(OUTSIDE), "")
    if words := hint_words(served.hints, outside):
        columns[CHANGES] = words
    if outside:
        described = [each for each in described or () if each[0] != str(OUTSIDE)]
    return ClientView(columns, described)


def hint_words(hints: ToolHints, outside: str = "") -> str:
    """Say what a tool's hints tell clients; `outside` names the other site."""
    words = []
    if hints.read_only:
        words.append(_("only reads"))
    elif hints.destructive is False:
        words.append(_("adds or changes"))
    elif hints.destructive or hints.read_only is False:
        words.append(_("may delete or overwrite"))
    if hints.idempotent and hints.read_only:
        words.append(_("the same call gives the same"))
    elif hints.idempotent:
        words.append(_("twice does the same as once"))
    if hints.open_world:
        reaches = _("reaches outside this site")
        words.append(f"{reaches}: {outside}" if outside else reaches)
    elif hints.open_world is False:
        words.append(_("stays inside this site"))
    return " · ".join(words)


def _schema_lines(schema: JsonObject) -> Iterator[Line]:
    properties = {
        name: each
        for name, each in schema.get("properties", {}).items()
        # Each tool with pages has this parameter.
        if each != CURSOR_SCHEMA
    }
    required = schema.get("required", ())
    for name, parameter in properties.items():
        words = _parameter_words(parameter, name in required)
        yield Line("", name, f"{name}: {words}")
    names = ("type", "properties", "required")
    others = {name: value for name, value in schema.items() if name not in names}
    if others and others != {"additionalProperties": False}:
        yield Line(_("the rest of the schema"), "", readable_value(others))
    elif not properties:
        yield Line("", "", _("none"))


def _parameter_words(schema: Any, required: bool) -> str:
    if not isinstance(schema, dict):
        return readable_value(schema)
    kind, *limits = _value_words(schema)
    needed = _("required") if required else _("not required")
    return ", ".join([kind, needed, *limits])


def _value_words(schema: JsonObject) -> Iterator[str]:
    """Yield the type of a value, its limits, and the other keywords as JSON."""
    keywords = dict(schema)
    yield _type_words(keywords)
    for keyword, label in _limits().items():
        if keyword in keywords:
            value = readable_value(keywords.pop(keyword))
            means_not_empty = (keyword, value) == ("minLength", "1")
            yield _("not empty") if means_not_empty else label % {"value": value}
    if isinstance(examples := keywords.pop("examples", None), list):
        texts = {"values": ", ".join(map(readable_value, examples))}
        yield _("such as %(values)s") % texts
    if keywords:
        yield readable_value(keywords)


def _type_words(schema: dict[str, Any]) -> str:
    """Remove the keywords for the type of a value, and return them in words."""
    name = schema.pop("type", "")
    form = schema.pop("format", "")
    if schema.get("enum") == [*PERIODS]:
        del schema["enum"]
        return _("period")
    if _are_texts(schema.get("enum")):
        choices = {"choices": ", ".join(schema.pop("enum"))}
        return _("one of %(choices)s") % choices
    if name == "array" and isinstance(schema.get("items"), dict):
        items = ", ".join(_value_words(schema.pop("items")))
        return _("list: %(items)s") % {"items": items}
    names = name if isinstance(name, list) else [form or name]
    types = {
        "": _("anything"),
        "string": _("text"),
        "integer": _("whole number"),
        "number": _("number"),
        "boolean": _("yes or no"),
        "object": _("several fields"),
        "array": _("list"),
        "null": _("nothing"),
        "date": _("date"),
        "date-time": _("date and time"),
        "time": _("time"),
    }
    return _(" or ").join(types.get(str(each), str(each)) for each in names)


def _limits() -> Mapping[str, str]:
    return {
        "title": _("called %(value)s"),
        "minimum": _("at least %(value)s"),
        "maximum": _("at most %(value)s"),
        "minLength": _("%(value)s characters or more"),
        "maxLength": _("at most %(value)s characters"),
        "minItems": _("%(value)s entries or more"),
        "maxItems": _("at most %(value)s entries"),
        "pattern": _("pattern %(value)s"),
        "default": _("if left out: %(value)s"),
        "description": _("“%(value)s”"),
    }


def _argument_lines(arguments: list[JsonObject]) -> Iterator[Line]:
    for argument in arguments:
        words = [str(argument.get("title") or "")]
        words.append(_("required") if argument.get("required") else "")
        if argument.get("description"):
            words.append(_("“%(text)s”") % {"text": argument["description"]})
        if argument.get("suggestions"):
            texts = {"values": ", ".join(argument["suggestions"])}
            words.append(_("suggestions: %(values)s") % texts)
        about = ", ".join(filter(None, words))
        name = str(argument["name"])
        yield Line("", name, f"{name}: {about}" if about else name)


def _suggestion_lines(variables: Mapping[str, list[str]]) -> Iterator[Line]:
    for name, values in variables.items():
        yield Line("", name, f"{name}: {', '.join(values)}")


def _member_lines(members: JsonObject) -> Iterator[Line]:
    for name, value in members.items():
        text = readable_value(value)
        if isinstance(value, list) and not any(isinstance(e, dict) for e in value):
            text = "\n".join(map(str, value))
        if name == "audience" and _are_texts(value):
            # In this order, “user” comes before “assistant”.
            text = " ".join(sorted({*value}, reverse=True))
        yield Line(name, "", text)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


_LINES: Final[Mapping[str, Callable[[Any], Iterator[Line]]]] = {
    **dict.fromkeys(EVENT_SCHEMAS, _schema_lines),
    "arguments": _argument_lines,
    "suggestions": _suggestion_lines,
    "annotations": _member_lines,
    "chosen": _member_lines,
}
"""The functions that write columns as lines."""
