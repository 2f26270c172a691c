"""Typed JSON: errors with line numbers, and formatting for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from mcp_app.catalog.schema_lint import misspelt_keywords
from mcp_app.conf import mcp_settings
from mcp_app.models.fields import parse_json
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.jsonrpc import Path
from mcp_app.protocol.schema_graph import SchemaError, every_subschema
from mcp_app.protocol.schemas import SchemaLimits, check_schema

_PIECE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]')


def lines_from_browser(text: object) -> str:
    """Return a text with \\n for the CR LF that browsers send."""
    return str(text or "").replace("\r\n", "\n")


def filled_lines(text: object) -> list[str]:
    """Return the lines of a text that are not empty, without blanks around them."""
    lines = lines_from_browser(text).split("\n")
    return [line.strip() for line in lines if line.strip()]


def formatted_text(text: str) -> str:
    """Return JSON formatted for people; keep texts that have several lines."""
    if "\n" in text.strip():
        return lines_from_browser(text)
    try:
        return jsonrpc.pretty_text(parse_json(text))
    except ValueError:
        return text


def parse_or_none(text: str) -> Any:
    """Parse JSON; return None if it is empty or invalid."""
    try:
        return parse_json(text) if text.strip() else None
    except ValueError:
        return None


def is_same_json(one: str, other: str) -> bool:
    """Return whether two texts are the same JSON, in the same order."""
    try:
        return jsonrpc.write(parse_json(one)) == jsonrpc.write(parse_json(other))
    except ValueError:
        return one == other


def parse_strict_json(text: str) -> Any:
    """Parse strict JSON; the ValueError names the line of a syntax error."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(_syntax_error(text) or str(error)) from None


def _syntax_error(text: str) -> str:
    """Return a sentence about the syntax error in a JSON text; "" if it is valid."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        message, line = error.msg, error.lineno
    except RecursionError:
        return ""
    else:
        return ""
    reasons = {
        "Expecting property name": _("A name in double quotes is missing."),
        "Expecting ':'": _("A colon is missing."),
        "Expecting ','": _("A comma or a closing bracket is missing."),
        "Expecting value": _("A value is missing."),
        "Extra data": _("Text follows after the JSON."),
        "Illegal trailing comma": _("There is a comma before the closing bracket."),
        "Unterminated string": _("A text has no closing quote."),
        "Invalid control": _(
            "A text has a line break or a tab. Write \\n or \\t instead."
        ),
        "Invalid \\": _("A backslash is followed by something unknown."),
    }
    ours = (ours for start, ours in reasons.items() if message.startswith(start))
    sentence = _("Line %(line)d: This is not JSON. %(reason)s")
    return sentence % {"line": line, "reason": next(ours, "")}


def check_schema_text(text: str) -> Any:
    """Parse a typed schema; the ValueError says what is wrong in which line."""
    schema = parse_strict_json(text)
    if not isinstance(schema, dict):
        raise ValueError(_("This must be a JSON object."))
    lines = dict(_member_lines(text))
    for name, path, suggestion in misspelt_keywords(every_subschema(schema)):
        sentence = _(
            "Line %(line)d: “%(name)s” is not a schema keyword. Did you mean "
            "“%(other)s”?"
        )
        line = lines[(*path, name)]
        raise ValueError(sentence % {"line": line, "name": name, "other": suggestion})
    limits = mcp_settings.limits
    try:
        check_schema(
            schema, SchemaLimits(limits.schema, limits.schema_depth, limits.subschemas)
        )
    except SchemaError as error:
        raise ValueError(_with_line_number(str(error), lines)) from None
    return schema


def _with_line_number(message: str, lines: Mapping[Path, int]) -> str:
    """If a message names a place, put the line number of that place before it."""
    places = {jsonrpc.path_text(path): line for path, line in lines.items()}
    matches = [
        (len(place), line)
        for place, line in places.items()
        if re.search(re.escape(place) + r"(?![\w.])", message)
    ]
    if not matches:
        return message
    # The longest of the places in the message is the exact one.
    values = {"line": max(matches)[1], "message": message}
    return _("Line %(line)d: %(message)s") % values


def _member_lines(text: str) -> Iterator[tuple[Path, int]]:
    """Yield the path of each member of each object, and its line."""
    # For each open bracket: the current name or index, and whether it is an object.
    path: list[str | int] = []
    objects: list[bool] = []
    key_is_next, line, offset = False, 1, 0
    for match in _PIECE.finditer(text):
        piece = match.group()
        line, offset = line + text.count("\n", offset, match.start()), match.start()
        if piece in "{[":
            objects.append(piece == "{")
            path.append("" if piece == "{" else 0)
            key_is_next = piece == "{"
        elif piece in "}]":
            objects.pop()
            path.pop()
            key_is_next = False
        elif piece == ",":
            key_is_next = objects[-1]
            if not objects[-1]:
                path[-1] = int(path[-1]) + 1
        elif key_is_next:
            path[-1] = json.loads(piece)
            yield tuple(path), line
            key_is_next = False
