"""What is different between two contents of a row, field by field, in words.

Parameters of a schema are matched by their names: to move one is no rewrite.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from itertools import zip_longest
from operator import gt, lt
from typing import Any

from django.utils.translation import gettext as _

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.jsonrpc import JsonObject

_WORDS = re.compile(r"\s+|\S+\s*")
ABSENT = object()


class Change(Enum):
    """What happened to a piece of a text."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Piece:
    change: Change
    text: str


@dataclass(frozen=True, slots=True)
class Difference:
    """`field` is a column, `part` what of it; None stands for "not there".

    `breaks` says why calls that were right before are wrong now, "" where they are not.
    """

    field: str
    part: str
    before: str | None
    after: str | None
    breaks: str = ""

    def pieces_before(self) -> list[Piece]:
        """Return the old text with what was taken away marked."""
        return self._pieces(Change.REMOVED)

    def pieces_after(self) -> list[Piece]:
        """Return the new text with what was added marked."""
        return self._pieces(Change.ADDED)

    def _pieces(self, side: Change) -> list[Piece]:
        before, after = (
            _WORDS.findall(text or "") for text in (self.before, self.after)
        )
        pieces = []
        for operation, start, end, new_start, new_end in _operations(before, after):
            words = before[start:end]
            if side is Change.ADDED:
                words = after[new_start:new_end]
            if words:
                change = Change.SAME if operation == "equal" else side
                pieces.append(Piece(change, "".join(words)))
        return pieces


MOST_PAIRS = 10_000
"""Pairs of equal words that a comparison looks at: it costs more than their number."""


def _operations(
    before: list[str], after: list[str]
) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield what became of which words, as `SequenceMatcher.get_opcodes` does.

    Between the first and the last word that differ, texts in which too much is alike
    are one difference.
    """
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    yield "equal", 0, start, 0, start
    counts = Counter(new)
    if sum(counts[word] for word in old) > MOST_PAIRS:
        yield "replace", start, start + len(old), start, start + len(new)
    else:
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        for operation, *places in matcher.get_opcodes():
            one, two, three, four = (place + start for place in places)
            yield operation, one, two, three, four
    yield "equal", start + len(old), len(before), start + len(new), len(after)


def _common(one: list[str], other: list[str]) -> int:
    """Return how many words are the same at the beginning of both."""
    pairs = zip(one, other, strict=False)
    return next(
        (place for place, (old, new) in enumerate(pairs) if old != new),
        min(len(one), len(other)),
    )


def differences(before: JsonObject, after: JsonObject) -> list[Difference]:
    """Return what differs between two contents of a row, in the order of columns."""
    found: list[Difference] = []
    for field, old, new in _changed(before, after):
        found.extend(_COMPARERS.get(field, _values)(field, old, new))
    return found


def plain_differences(before: JsonObject, after: JsonObject) -> list[Difference]:
    """Do so column by column, for contents that are not what their columns demand."""
    return [
        Difference(field, "", _shown(old), _shown(new))
        for field, old, new in _changed(before, after)
    ]


def _changed(
    before: JsonObject, after: JsonObject
) -> Iterator[tuple[str, object, object]]:
    for field in dict.fromkeys((*before, *after)):
        old, new = before.get(field), after.get(field)
        if old != new or _ordered(old) != _ordered(new):
            yield field, old, new


def breaking(found: Sequence[Difference]) -> list[str]:
    """Return why old calls break, each reason once."""
    return list(dict.fromkeys(each.breaks for each in found if each.breaks))


def _ordered(value: object) -> object:
    """Return what also tells dicts apart whose keys stand in another order."""
    if isinstance(value, dict | list):
        return jsonrpc.write(value)
    return value


def _values(field: str, old: object, new: object) -> Iterator[Difference]:
    yield Difference(field, "", _shown(old), _shown(new))


def _names(field: str, old: object, new: object) -> Iterator[Difference]:
    breaks = ""
    if old is not None:
        breaks = _("It is called %(new)s now: calls to %(old)s fail.") % {
            "new": new,
            "old": old,
        }
    yield Difference(field, "", _shown(old), _shown(new), breaks)


def _shown(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return jsonrpc.indented(value)
    return str(value)


# -- JSON Schema --------------------------------------------------------------------


def _schemas(field: str, old: Any, new: Any) -> Iterator[Difference]:
    before, after = old or {}, new or {}
    yield from _parameters(field, before, after)
    rest = [
        {name: value for name, value in schema.items() if name not in _BY_PARAMETER}
        for schema in (before, after)
    ]
    if rest[0] != rest[1]:
        yield Difference(
            field, _("the rest"), _shown(rest[0] or None), _shown(rest[1] or None)
        )


_BY_PARAMETER = frozenset({"properties", "required"})


def _parameters(
    field: str, before: JsonObject, after: JsonObject
) -> Iterator[Difference]:
    old, new = _properties(before), _properties(after)
    required = [set(schema.get("required", ())) for schema in (before, after)]
    for name in dict.fromkeys((*old, *new)):
        part = _("parameter %(name)s") % {"name": name}
        if name not in new:
            breaks = _("The parameter %(name)s is gone.") % {"name": name}
            yield Difference(field, part, _in_words(old[name]), None, breaks)
        elif name not in old:
            breaks = ""
            if name in required[1]:
                breaks = _("The parameter %(name)s is new and required.") % {
                    "name": name
                }
            yield Difference(field, part, None, _in_words(new[name]), breaks)
        else:
            yield from _parameter(field, name, old[name], new[name])
            yield from _requirement(field, name, required)
    yield from _moves(field, list(old), list(new))


def _in_words(schema: object) -> str | None:
    """Return a parameter's schema as a line, where it is a plain one."""
    if not isinstance(schema, dict) or not schema.keys() <= _words().keys():
        return _shown(schema)
    return "; ".join(
        f"{_keyword(keyword)}: {_joined(value)}" for keyword, value in schema.items()
    )


def _joined(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _properties(schema: JsonObject) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _requirement(
    field: str, name: str, required: Sequence[set[str]]
) -> Iterator[Difference]:
    was, now = (name in names for names in required)
    if was == now:
        return
    part = _("parameter %(name)s, required") % {"name": name}
    breaks = ""
    if now:
        breaks = _("The parameter %(name)s is required now.") % {"name": name}
    yield Difference(field, part, _shown(was), _shown(now), breaks)


def _parameter(field: str, name: str, old: Any, new: Any) -> Iterator[Difference]:
    if not isinstance(old, dict) or not isinstance(new, dict):
        old, new = {"schema": old}, {"schema": new}
    for keyword in dict.fromkeys((*old, *new)):
        was, now = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
        if was == now:
            continue
        part = _("parameter %(name)s, %(what)s") % {
            "name": name,
            "what": _keyword(keyword),
        }
        breaks = ""
        if _narrows(keyword, was, now):
            breaks = _("The parameter %(name)s takes less than before: %(what)s.") % {
                "name": name,
                "what": _keyword(keyword),
            }
        yield Difference(field, part, _known(was), _known(now), breaks)


def _known(value: object) -> str | None:
    return None if value is ABSENT else _shown(value)


def _keyword(keyword: str) -> str:
    return _words().get(keyword, keyword)


def _words() -> Mapping[str, str]:
    """Return what people call the keywords of a plain schema."""
    return {
        "type": _("type"),
        "description": _("description"),
        "title": _("title"),
        "default": _("value if left out"),
        "enum": _("choices"),
        "minimum": _("smallest value"),
        "maximum": _("largest value"),
        "minLength": _("shortest text"),
        "maxLength": _("longest text"),
        "minItems": _("fewest entries"),
        "maxItems": _("most entries"),
        "pattern": _("pattern"),
        "format": _("format"),
    }


_TELLING = frozenset(
    {"description", "title", "default", "examples", "x-mcp-header", "deprecated"}
)


def _narrows(keyword: str, was: Any, now: Any) -> bool:
    """Whether values that were allowed before may be refused now."""
    if keyword in _TELLING or now is ABSENT:
        return False
    narrower = _NARROWER.get(keyword)
    return was is ABSENT or narrower is None or narrower(was, now)


def _types(value: object) -> frozenset[str]:
    named = frozenset(value if isinstance(value, list) else [str(value)])
    return named | {"integer"} if "number" in named else named


def _fewer_choices(was: Any, now: Any) -> bool:
    return not all(each in now for each in was)


def _fewer_types(was: Any, now: Any) -> bool:
    return not _types(was) <= _types(now)


_NARROWER: Mapping[str, Callable[[Any, Any], bool]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), lt),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), gt),
    "enum": _fewer_choices,
    "type": _fewer_types,
}
"""By keyword whether (old value, new value) takes less; others may, if they differ."""


def _moves(field: str, old: list[str], new: list[str]) -> Iterator[Difference]:
    kept = [name for name in old if name in new]
    after = [name for name in new if name in old]
    for name in _moved(kept, after):
        part = _("parameter %(name)s, place") % {"name": name}
        places = [str(names.index(name) + 1) for names in (kept, after)]
        yield Difference(field, part, places[0], places[1])


def _moved(old: list[str], new: list[str]) -> list[str]:
    """Return the names that left the order of the others."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    still = {
        name
        for block in matcher.get_matching_blocks()
        for name in old[block.a : block.a + block.size]
    }
    return [name for name in new if name not in still]


# -- a prompt's arguments, and configs ----------------------------------------------


def _arguments(field: str, old: Any, new: Any) -> Iterator[Difference]:
    before = {each["name"]: each for each in old or ()}
    after = {each["name"]: each for each in new or ()}
    for name in dict.fromkeys((*before, *after)):
        part = _("argument %(name)s") % {"name": name}
        was, now = before.get(name), after.get(name)
        breaks = ""
        if now is None:
            breaks = _("The argument %(name)s is gone.") % {"name": name}
        elif now.get("required") and not (was or {}).get("required"):
            breaks = _("The argument %(name)s is required now.") % {"name": name}
        if _without_suggestions(was) != _without_suggestions(now):
            yield Difference(field, part, _argument(was), _argument(now), breaks)
        part = _("argument %(name)s, suggestions") % {"name": name}
        yield from _suggestions(field, part, was, now)
    yield from _moves(field, list(before), list(after))


def _without_suggestions(argument: Mapping[str, Any] | None) -> object:
    if argument is None:
        return None
    return {name: value for name, value in argument.items() if name != "suggestions"}


def _suggestions(
    field: str,
    part: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
) -> Iterator[Difference]:
    """Yield how two lists of suggestions differ, which have one in each line."""
    old, new = (_lines((each or {}).get("suggestions")) for each in (before, after))
    if old != new:
        yield Difference(field, part, old, new)


def _variables(field: str, old: Any, new: Any) -> Iterator[Difference]:
    before, after = old or {}, new or {}
    for name in dict.fromkeys((*before, *after)):
        was, now = (_lines(each.get(name)) for each in (before, after))
        if was != now:
            yield Difference(field, _("variable %(name)s") % {"name": name}, was, now)


def _lines(texts: Sequence[str] | None) -> str | None:
    return "\n".join(texts) if texts else None


def _argument(value: Mapping[str, Any] | None) -> str | None:
    if value is None:
        return None
    said = [str(value.get("title") or value["name"])]
    if value.get("required"):
        said.append(_("(required)"))
    if value.get("description"):
        said.append(str(value["description"]))
    return " ".join(said)


def _configs(field: str, old: Any, new: Any) -> Iterator[Difference]:
    texts = [_only_text(value) for value in (old, new)]
    messages = [_messages(value) for value in (old, new)]
    parts = [_parts(value) for value in (old, new)]
    if None not in texts or (old is None and texts[1] is not None):
        yield Difference(field, _("text"), texts[0], texts[1])
    elif messages[1] and (old is None or messages[0]):
        yield from _numbered(field, _("message %(number)d"), *messages)
    elif parts[1] and (old is None or parts[0]):
        yield from _numbered(field, _("part %(number)d of the answer"), *parts)
    else:
        yield Difference(field, "", _shown(old), _shown(new))


def _numbered(
    field: str, named: str, old: list[str], new: list[str]
) -> Iterator[Difference]:
    for number, (was, now) in enumerate(zip_longest(old, new), 1):
        if was != now:
            yield Difference(field, named % {"number": number}, was, now)


def _messages(config: object) -> list[str]:
    """Return a prompt's messages, each as who says what."""
    if not isinstance(config, dict) or config.keys() != {"messages"}:
        return []
    return [_message(each) for each in config["messages"]]


def _message(message: Mapping[str, Any]) -> str:
    role = _("Assistant") if message.get("role") == "assistant" else _("User")
    return f"{role}: {_block(message.get('content'))}"


def _parts(config: object) -> list[str]:
    """Return what a tool answers with, block by block."""
    if not isinstance(config, dict) or config.keys() != {"content"}:
        return []
    return [_block(each) for each in config["content"]]


def _block(content: object) -> str:
    """Return a content block: a text as it is, a file in words, others as JSON."""
    if not isinstance(content, dict):
        return _shown(content) or ""
    if content.keys() == {"type", "text"}:
        return str(content["text"])
    inside = content
    if content.keys() == {"type", "resource"} and isinstance(content["resource"], dict):
        inside = content["resource"]
    if "upload" in inside and inside.keys() <= {"type", "uri", "mimeType", "upload"}:
        return _file(inside)
    return _shown(content) or ""


def _file(file: Mapping[str, Any]) -> str:
    said = [str(file[name]) for name in ("mimeType", "uri") if name in file]
    said.append(_("fingerprint %(digest)s") % {"digest": file["upload"]})
    return _("File: %(about)s") % {"about": ", ".join(said)}


def _only_text(config: object) -> str | None:
    """Return the text of a config that is nothing but one text."""
    while isinstance(config, dict | list) and len(config) == 1:
        (config,) = config.values() if isinstance(config, dict) else config
    if isinstance(config, str):
        return config
    if isinstance(config, dict) and config.keys() == {"type", "text"}:
        text = config["text"]
        return text if isinstance(text, str) else None
    return None


_COMPARERS = {
    "name": _names,
    "uri": _names,
    "uri_template": _names,
    "input_schema": _schemas,
    "output_schema": _values,
    "arguments": _arguments,
    "suggestions": _variables,
    "config": _configs,
}
