"""Adding a member to a JSON file of somebody else: all else stays, byte by byte."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_app.protocol.json_types import JsonObject

Value: TypeAlias = "Mapping[str, Any] | list[Any]"

INDENT: Final = "  "
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class NotMerged(Exception):
    """The file has other content than expected; it stays unchanged."""


def json_text(document: JsonObject) -> str:
    """Return the text of a file with this content alone."""
    return json.dumps(document, indent=INDENT, ensure_ascii=False) + "\n"


def merge_member(text: str, root: str, name: str, value: JsonObject) -> str:
    """Return a file's text with this member set in the object `root`.

    Raises `NotMerged` if it is no JSON object, or has comments.
    """
    document = _read(text)
    if not document:
        return json_text({root: {name: value}})
    if root not in document:
        return _with_member(text, text.index("{"), root, {name: value})
    if not isinstance(document[root], dict):
        raise NotMerged(f"its member {root!r} is no object")
    return _with_member(text, _members(text, text.index("{"))[root].value, name, value)


def merge_item(text: str, name: str, item: JsonObject) -> str:
    """Return a file's text with this item in its list `name`, if its `id` is new.

    The file has members already.  Raises `NotMerged` as `merge_member` does.
    """
    given = _read(text).get(name, [])
    if not isinstance(given, list):
        raise NotMerged(f"its member {name!r} is no list")
    ids = [each.get("id") if isinstance(each, dict) else None for each in given]
    if item["id"] in ids:
        return text
    if not given:
        return _with_member(text, text.index("{"), name, [item])
    return _with_item(text, _members(text, text.index("{"))[name], item)


@dataclass(frozen=True, slots=True)
class Member:
    """The position of an object's member in a text: its name, and its value to `end`.

    `space` is the whitespace before it.
    """

    space: str
    begin: int
    value: int
    end: int


def _read(text: str) -> JsonObject:
    try:
        document = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise NotMerged(f"it is not plain JSON (line {error.lineno})") from None
    except (RecursionError, ValueError):
        raise NotMerged(
            "it is nested too deeply, or has a number that is too long"
        ) from None
    if not isinstance(document, dict):
        raise NotMerged("it has no JSON object")
    return document


def _members(text: str, start: int) -> dict[str, Member]:
    """Return the positions of the members of the object that begins at `start`.

    The text must be JSON. Raises `NotMerged` if a name occurs twice.
    """
    decoder, found, place = json.JSONDecoder(), dict[str, Member](), start + 1
    while text[begin := _after_space(text, place)] != "}":
        name, colon = decoder.raw_decode(text, begin)
        value = _after_space(text, _after_space(text, colon) + 1)
        _, end = decoder.raw_decode(text, value)
        if name in found:
            raise NotMerged(f"it has the member {name!r} twice")
        found[name] = Member(text[place:begin], begin, value, end)
        place = _after_space(text, end)
        place += text[place] == ","
    return found


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _with_member(text: str, start: int, name: str, value: Value) -> str:
    """Return the text with this member set in the object that begins at `start`."""
    members, unit = _members(text, start), _unit(text)
    if name in members:
        old = members[name]
        return text[: old.value] + _spread(value, old.space, unit) + text[old.end :]
    if members:
        last = list(members.values())[-1]
        place, space, rest = last.end, last.space, text[last.end :]
        before = f"{text[:place]},{space if space else ' '}"
    else:
        outer = text[:start].rpartition("\n")[2]
        outer = outer[: len(outer) - len(outer.lstrip())]
        line = _line_end(text) if unit is not None else ""
        space = f"{line}{outer}{unit or ''}"
        end = text.index("}", start)
        before = f"{text[: start + 1]}{space}"
        rest = f"{line}{outer if line else ''}{text[end:]}"
    written = json.dumps(name, ensure_ascii=False)
    return f"{before}{written}: {_spread(value, space, unit)}{rest}"


def _with_item(text: str, place: Member, item: JsonObject) -> str:
    """Return the text with one more item at the end of a list that has some."""
    begin = place.value + 1
    space = text[begin : _after_space(text, begin)]
    before = text[: place.end - 1].rstrip()
    written = _spread(item, space, _unit(text))
    return f"{before},{space or ' '}{written}{text[len(before) :]}"


def _spread(value: Value, space: str, unit: str | None) -> str:
    """Return a value as JSON, in indented lines if the text around it is."""
    if unit is None or "\n" not in space:
        return json.dumps(value, ensure_ascii=False)
    written = json.dumps(value, indent=unit, ensure_ascii=False)
    # Use only the last line of `space`: no empty lines within a value.
    return written.replace("\n", "\n" + space.rpartition("\n")[2]).replace(
        "\n", "\r\n" if "\r\n" in space else "\n"
    )


def _unit(text: str) -> str | None:
    """Return the indentation of a file; None if it is one line."""
    first = next(iter(_members(text, text.index("{")).values()), None)
    if first is None or "\n" not in first.space:
        return None
    return first.space.rpartition("\n")[2]


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
