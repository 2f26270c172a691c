"""Our placeholders `{{name}}`: names from a list, filled into strings in one pass.

No template engine ever reads a text from the database.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mcp_app.conf import mcp_settings
from mcp_app.kinds.kind import KindError
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InvalidParams

_PLACEHOLDER = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_-]*) *\}\}")
_STRAY = re.compile(
    r"\{\{.{0,40}?\}\}|\{%.{0,40}?%\}|\{\{.{0,40}|\{%.{0,40}", re.DOTALL
)
"""What looks like a placeholder or a tag of a template, but is no placeholder."""

_SINGLE = re.compile(r"\{ *([A-Za-z_][A-Za-z0-9_-]*) *\}")


def check_placeholders(value: object, names: Collection[str], noun: str) -> bool:
    """Check the placeholders in a JSON value; return whether there are any.

    `noun` says what the names are: "argument", "parameter", "variable".
    """
    has_placeholder = False
    for name in _member_names(value):
        if match := _PLACEHOLDER.search(name):
            raise KindError(
                f"“{match.group()}” stands in a name. Only in values is it replaced."
            )
    for text in _all_strings(value):
        # Even pieces are fixed text, odd ones are names of placeholders.
        pieces = _PLACEHOLDER.split(text)
        for stray in map(_STRAY.search, pieces[0::2]):
            if stray:
                raise KindError(
                    f"“{stray.group()}” is not understood. Only {{{{name}}}} is "
                    "replaced."
                )
        for name in pieces[1::2]:
            has_placeholder = True
            if name not in names:
                raise KindError(_no_such_name(name, names, noun))
    return has_placeholder


def split_pieces(text: str) -> list[str]:
    """Split a text: fixed text and the names of placeholders alternate."""
    return _PLACEHOLDER.split(text)


def only_name(text: str) -> str:
    """Return the name if the whole text is one placeholder, else ""."""
    match = _PLACEHOLDER.fullmatch(text)
    return match.group(1) if match else ""


def single_braces(value: object) -> Iterator[str]:
    """Yield the name in each `{name}`, which is no placeholder of ours."""
    for text in _all_strings(value):
        for piece in _PLACEHOLDER.split(text)[0::2]:
            yield from _SINGLE.findall(piece)


def names_in_value(value: object) -> set[str]:
    """Return the names of all placeholders in a JSON value."""
    return {name for text in _all_strings(value) for name in _PLACEHOLDER.findall(text)}


def fill_placeholders(value: Any, values: Mapping[str, object]) -> Any:
    """Return a JSON value with its placeholders replaced; a missing value is "".

    Raises `InvalidParams` if all strings together grow beyond the limit of a text.
    Placeholders inside of values are not filled in.
    """
    length_left = limit = mcp_settings.limits.text

    def fill_value(value: Any) -> Any:
        nonlocal length_left
        if isinstance(value, dict):
            return {name: fill_value(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [fill_value(inner) for inner in value]
        if not isinstance(value, str):
            return value
        pieces = _PLACEHOLDER.split(value)
        if len(pieces) > 1:
            pieces[1::2] = [value_as_text(values.get(name)) for name in pieces[1::2]]
            # Count before joining: many placeholders may have one long value.
            length_left -= sum(map(len, pieces))
            if length_left < 0:
                raise InvalidParams(
                    f"With these values the text is longer than {limit} characters."
                )
        return "".join(pieces)

    return fill_value(value)


def value_as_text(value: object) -> str:
    """Return a string as it is, None as "", and any other value as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else jsonrpc.write(value).decode()


def _all_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _all_strings(inner)


def _member_names(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = [*value.values()]
    if isinstance(value, list):
        for inner in value:
            yield from _member_names(inner)


def _no_such_name(name: str, names: Collection[str], noun: str) -> str:
    article = "an" if noun[0] in "aeiou" else "a"
    sentence = f"{{{{{name}}}}} is not {article} {noun}."
    close = difflib.get_close_matches(name, names, 1)
    if close:
        return f"{sentence} Did you mean {{{{{close[0]}}}}}?"
    if names:
        return f"{sentence} Available: {', '.join(names)}."
    return f"{sentence} There are no {noun}s."
