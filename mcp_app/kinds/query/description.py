"""What clients are told of a query: the schemas of its arguments and of its answer."""

from __future__ import annotations

from typing import Any

from django.utils.text import get_text_list
from django.utils.translation import gettext as _

from mcp_app.catalog.open_models import FieldKind
from mcp_app.kinds.query.config import Filter, Measure, Query
from mcp_app.kinds.query.cursor import LARGEST
from mcp_app.kinds.query.schema import CURSOR, GROUPS, ROWS
from mcp_app.kinds.query.shapes import row_schema
from mcp_app.kinds.query.values import output_schema as value_schema
from mcp_app.protocol.json_types import JsonObject

_CURSOR: JsonObject = {
    "type": "string",
    "maxLength": LARGEST,
    "description": "For the next page: what the last answer has as “next”.",
}
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_NOTE: JsonObject = {"type": "string"}


def input_schema(query: Query) -> JsonObject:
    """Return the JSON Schema of the arguments."""
    properties = {name: _asked(each) for name, each in query.parameters.items()}
    if query.answer == ROWS:
        properties[CURSOR] = dict(_CURSOR)
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    required = [name for name, each in query.parameters.items() if each.required]
    return {**schema, "required": required} if required else schema


def _asked(asked: Filter) -> JsonObject:
    schema = asked.value_schema()
    if said := " ".join(filter(None, (asked.description, _titles(asked)))):
        schema["description"] = said
    if asked.default is not None:
        schema["default"] = asked.default
    return schema


def _titles(asked: Filter) -> str:
    """Return what the choices of a field mean, "" where their values say it."""
    if asked.field.kind is not FieldKind.CHOICE:
        return ""
    choices: Any = asked.field.column.flatchoices
    titles = [
        f"{value}: {title}"
        for value, title in choices
        if str(title).lower() != str(value).lower()
    ]
    return f"{'; '.join(titles)}." if titles else ""


def sentence(query: Query) -> str:
    """Say for people what is looked up, by what, and what comes of it."""
    asked = [each.paths[0].text for each in query.parameters.values()]
    if query.answer == GROUPS:
        shown = [*(each.name for each in query.by), *(m.name for m in query.measures)]
    else:
        shown = [path.text for path in query.fields]
        shown += [each.field.name for each in query.lists]
    words = {
        "what": query.model.title,
        "asked": get_text_list(asked, _("and")),
        "shown": get_text_list(shown, _("and")),
    }
    if asked:
        said = _("It looks up %(what)s by %(asked)s, and gives %(shown)s.")
    else:
        said = _("It looks up %(what)s, and gives %(shown)s.")
    return said % words


def output_schema(query: Query) -> JsonObject:
    """Return the JSON Schema of the structured content."""
    if query.answer == GROUPS:
        properties = {
            each.name: {"type": ["string", "null"], "format": "date"}
            if each.each
            else value_schema(each.path.field, nullable=each.path.nullable)
            for each in query.by
        }
        properties |= {each.name: _measure_schema(each) for each in query.measures}
        line = {"type": "object", "properties": properties}
        return _answer(GROUPS, line, note=_NOTE)
    rows = row_schema(query.fields)
    for each in query.lists:
        below = _answer(ROWS, row_schema(each.fields), total=_COUNT)
        rows["properties"][each.field.name] = below
    members = {"next": {"type": "string"}, "note": _NOTE}
    return _answer(ROWS, rows, total=_COUNT, total_at_least=_COUNT, **members)


def _answer(name: str, item: JsonObject, **others: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: {"type": "array", "items": item}, **others},
        "required": [name],
    }


def _measure_schema(measure: Measure) -> JsonObject:
    if measure.path is None:
        return dict(_COUNT)
    kind = measure.path.field.kind
    if measure.do == "average" and kind is FieldKind.NUMBER:
        return {"type": ["number", "null"]}
    return value_schema(measure.path.field, nullable=True)
