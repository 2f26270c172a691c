"""What is different between two contents of a row, field by field, in words.

Parameters of a schema are matched by their names: to move one is no rewrite.  Contents
are the same only where their JSON is: what differs in a type, in the order of members,
or in being empty instead of missing, is never shown as no difference.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from enum import Enum
from itertools import accumulate, zip_longest
from operator import gt, lt
from typing import Any, Final

from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

_WORDS = re.compile(r"\s+|\S+\s*")
ABSENT: Final = object()
"""Stands for a member that is not there."""


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
                # What nobody sees is part of the difference.
                pieces.append(Piece(change, visible("".join(words), None)))
        return pieces


STEPS_PER_WORD: Final = 50
FEWEST_STEPS, MOST_STEPS = 20_000, 5_000_000
"""What a comparison of two texts may cost: where the same words are in many places, or
every other one differs, it would cost the square of their number, or its cube."""


class _TooMuch(Exception):
    """The comparison would take too long."""


class _Matcher(SequenceMatcher[str]):
    """Gives up where it would take more than its share."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        alike = Counter(new)
        places = (1 + alike[word] for word in old)
        self._steps = [0, *accumulate(places)]
        """How many steps it takes to look at the words before each one."""
        steps = STEPS_PER_WORD * (len(old) + len(new))
        self._left = min(max(steps, FEWEST_STEPS), MOST_STEPS)

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        end = len(self._steps) - 1 if ahi is None else ahi
        self._left -= self._steps[end] - self._steps[alo]
        if self._left < 0:
            raise _TooMuch
        return super().find_longest_match(alo, ahi, blo, bhi)


def _operations(
    before: list[str], after: list[str]
) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield what became of which words, as `SequenceMatcher.get_opcodes` does.

    Between the first and the last word that differ, texts in which too much is alike
    are one difference.
    """
    start = common_start(before, after)
    end = common_start(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    yield "equal", 0, start, 0, start
    try:
        found = _Matcher(old, new).get_opcodes()
    except _TooMuch:
        found = [("replace", 0, len(old), 0, len(new))]
    for operation, *places in found:
        one, two, three, four = (place + start for place in places)
        yield operation, one, two, three, four
    yield "equal", start + len(old), len(before), start + len(new), len(after)


def common_start(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words, or characters, are the same at the beginning of both."""
    pairs = zip(one, other, strict=False)
    return next(
        (place for place, (old, new) in enumerate(pairs) if old != new),
        min(len(one), len(other)),
    )


def differences(before: JsonObject, after: JsonObject) -> list[Difference]:
    """Return what differs between two contents of a row, in the order of columns.

    It is empty only where both are the same JSON.
    """
    found: list[Difference] = []
    for field, old, new in _changed(before, after):
        found += _compared(field, old, new) or _values(field, old, new)
    return found or list(_order(before, after))


def _compared(field: str, old: object, new: object) -> list[Difference]:
    """Return what differs within a column, where it can be taken apart."""
    if field not in _COMPARERS:
        return []
    fits, compare = _COMPARERS[field]
    return list(compare(field, old, new)) if fits(old) and fits(new) else []


def plain_differences(before: JsonObject, after: JsonObject) -> list[Difference]:
    """Do so column by column, for contents that are not what their columns demand."""
    found = [
        difference
        for field, old, new in _changed(before, after)
        for difference in _values(field, old, new)
    ]
    return found or list(_order(before, after))


def _changed(
    before: JsonObject, after: JsonObject
) -> Iterator[tuple[str, object, object]]:
    for field in dict.fromkeys((*before, *after)):
        old, new = before.get(field, ABSENT), after.get(field, ABSENT)
        if not _same(old, new):
            yield field, old, new


def _order(before: JsonObject, after: JsonObject) -> Iterator[Difference]:
    """Yield a difference where the same members stand in another order."""
    if list(before) != list(after):
        yield Difference("content", _("order"), ", ".join(before), ", ".join(after))


def breaking(found: Sequence[Difference]) -> list[str]:
    """Return why old calls break, each reason once."""
    return list(dict.fromkeys(each.breaks for each in found if each.breaks))


def _same(old: object, new: object) -> bool:
    """Whether both are the same JSON: 1, 1.0 and true are three values."""
    if old is ABSENT or new is ABSENT:
        return old is new
    return jsonrpc.write(old) == jsonrpc.write(new)


def _values(field: str, old: object, new: object) -> list[Difference]:
    return [Difference(field, "", *_both(old, new))]


def _names(field: str, old: object, new: object) -> Iterator[Difference]:
    breaks = ""
    if old is not ABSENT:
        breaks = _("It is called %(new)s now: calls to %(old)s fail.") % {
            "new": new,
            "old": old,
        }
    yield Difference(field, "", *_both(old, new), breaks)


def _shown(value: object) -> str | None:
    if value is ABSENT:
        return None
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, str):
        return value
    return jsonrpc.indented(value)


def _both(
    old: Any, new: Any, words: Callable[[Any], str | None] = _shown
) -> tuple[str | None, str | None]:
    """Return two different values as people read them; as JSON if that is the same."""
    was, now = words(old), words(new)
    return (was, now) if was != now else (_as_json(old), _as_json(new))


def _as_json(value: object) -> str | None:
    return None if value is ABSENT else jsonrpc.indented(value)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


# -- JSON Schema --------------------------------------------------------------------


def _is_schema(value: object) -> bool:
    """Whether it is a schema whose parameters can be told."""
    if value is ABSENT:
        return True
    return (
        isinstance(value, dict)
        and isinstance(value.get("properties", {}), dict)
        and _are_texts(value.get("required", []))
    )


def _schemas(field: str, old: Any, new: Any) -> Iterator[Difference]:
    before, after = ({} if each is ABSENT else each for each in (old, new))
    yield from _parameters(field, before, after)
    rests = [
        {name: value for name, value in schema.items() if name not in _BY_PARAMETER}
        for schema in (before, after)
    ]
    if not _same(*_required_of_others(before, after)):
        for rest, schema in zip(rests, (before, after), strict=True):
            rest.update(
                {name: schema[name] for name in ("required",) if name in schema}
            )
    if not _same(*rests):
        was, now = (rest or ABSENT for rest in rests)
        yield Difference(field, _("the rest"), *_both(was, now))


_BY_PARAMETER = frozenset({"properties", "required"})


def _required_of_others(before: JsonObject, after: JsonObject) -> list[list[str]]:
    """Return what is required in both, but for what is told of each parameter."""
    old, new = _properties(before), _properties(after)
    required = [schema.get("required", []) for schema in (before, after)]
    told = {name for name in {*old, *new} if not (name in old and name in new)}
    changed = set(required[0]) ^ set(required[1])
    told |= {name for name in changed if name in old and name in new}
    return [[name for name in names if name not in told] for names in required]


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
    yield from _moves(field, _("parameter %(name)s, place"), old, new)


def _in_words(schema: object) -> str | None:
    """Return a parameter's schema as a line, where it is a plain one."""
    if not schema or not isinstance(schema, dict):
        return _shown(schema)
    if not schema.keys() <= _words().keys():
        return _shown(schema)
    return "; ".join(
        f"{_keyword(keyword)}: {_joined(value)}" for keyword, value in schema.items()
    )


def _joined(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _properties(schema: JsonObject) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    return properties


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
    if _same(old, new):
        return
    whole = _("parameter %(name)s") % {"name": name}
    if not isinstance(old, dict) or not isinstance(new, dict):
        old, new = {"schema": old}, {"schema": new}
    elif old.keys() == new.keys() and all(_same(old[each], new[each]) for each in old):
        yield Difference(field, whole, *_both(old, new, _in_words))
    for keyword in dict.fromkeys((*old, *new)):
        was, now = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
        if _same(was, now):
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
        yield Difference(field, part, *_both(was, now), breaks)


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
    if was is ABSENT or narrower is None:
        return True
    try:
        return narrower(was, now)
    except TypeError:
        # One of them is nothing that the keyword takes.
        return True


def _types(value: object) -> frozenset[str]:
    named = frozenset(value if isinstance(value, list) else [str(value)])
    return named | {"integer"} if "number" in named else named


def _fewer_choices(was: Any, now: Any) -> bool:
    known = {_number_or_json(each) for each in now}
    return not all(_number_or_json(each) in known for each in was)


def _number_or_json(value: object) -> float | bytes:
    """Return what is the same for equal values of JSON Schema: 1 and 1.0 are one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return jsonrpc.canonical(value)


def _fewer_types(was: Any, now: Any) -> bool:
    return not _types(was) <= _types(now)


_NARROWER: Mapping[str, Callable[[Any, Any], bool]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), lt),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), gt),
    "enum": _fewer_choices,
    "type": _fewer_types,
}
"""By keyword whether (old value, new value) takes less; others may, if they differ."""


def _moves(
    field: str, named: str, old: Iterable[str], new: Iterable[str]
) -> Iterator[Difference]:
    known = set(old) & set(new)
    before, after = (
        {name: place for place, name in enumerate(filter(known.__contains__, names))}
        for names in (old, new)
    )
    still = _rising([before[name] for name in after])
    for name, place in after.items():
        if before[name] not in still:
            part = named % {"name": name}
            yield Difference(field, part, str(before[name] + 1), str(place + 1))


def _rising(places: Sequence[int]) -> set[int]:
    """Return as many of these as stand in their order: the others were moved."""
    ends: list[int] = []
    """The smallest place at which as many can end."""
    before: dict[int, int | None] = {}
    for place in places:
        index = bisect_left(ends, place)
        before[place] = ends[index - 1] if index else None
        ends[index : index + 1] = [place]
    found: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found


# -- a prompt's arguments, and configs ----------------------------------------------


def _are_arguments(value: object) -> bool:
    """Whether they are arguments that can be told by their names."""
    if value is ABSENT:
        return True
    if not isinstance(value, list) or not all(map(_is_argument, value)):
        return False
    return len({each["name"] for each in value}) == len(value)


def _is_argument(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and _are_texts(value.get("suggestions", []))
    )


def _arguments(field: str, old: Any, new: Any) -> Iterator[Difference]:
    before, after = (
        {} if each is ABSENT else {argument["name"]: argument for argument in each}
        for each in (old, new)
    )
    for name in dict.fromkeys((*before, *after)):
        part = _("argument %(name)s") % {"name": name}
        was, now = before.get(name), after.get(name)
        breaks = ""
        if now is None:
            breaks = _("The argument %(name)s is gone.") % {"name": name}
        elif now.get("required") and not (was or {}).get("required"):
            breaks = _("The argument %(name)s is required now.") % {"name": name}
        one, other = _without_suggestions(was), _without_suggestions(now)
        if not _same(one, other):
            yield Difference(field, part, *_both(one, other, _argument), breaks)
        part = _("argument %(name)s, suggestions") % {"name": name}
        old_ones, new_ones = (
            (each or {}).get("suggestions") or ABSENT for each in (was, now)
        )
        if not _same(old_ones, new_ones):
            yield Difference(field, part, *_both(old_ones, new_ones, _lines))
    yield from _moves(field, _("argument %(name)s, place"), before, after)


def _without_suggestions(argument: Mapping[str, Any] | None) -> object:
    if argument is None:
        return ABSENT
    return {name: value for name, value in argument.items() if name != "suggestions"}


def _are_suggestions(value: object) -> bool:
    """Whether it has a list of texts for each variable."""
    if value is ABSENT:
        return True
    return isinstance(value, dict) and all(map(_are_texts, value.values()))


def _variables(field: str, old: Any, new: Any) -> Iterator[Difference]:
    before, after = ({} if each is ABSENT else each for each in (old, new))
    for name in dict.fromkeys((*before, *after)):
        was, now = (each.get(name, ABSENT) for each in (before, after))
        if not _same(was, now):
            part = _("variable %(name)s") % {"name": name}
            yield Difference(field, part, *_both(was, now, _lines))


def _lines(texts: Any) -> str | None:
    """Return suggestions with one in each line."""
    return None if texts is ABSENT else "\n".join(texts)


def _argument(value: Any) -> str | None:
    if value is ABSENT:
        return None
    said = [str(value.get("title") or value["name"])]
    if value.get("required"):
        said.append(_("(required)"))
    if value.get("description"):
        said.append(str(value["description"]))
    return " ".join(said)


def _configs(field: str, old: Any, new: Any) -> Iterator[Difference]:
    was_text, is_text = _only_text(old), _only_text(new)
    messages = [_blocks(value, "messages") for value in (old, new)]
    parts = [_blocks(value, "content") for value in (old, new)]
    if is_text is not None and (old is ABSENT or was_text is not None):
        yield Difference(field, _("text"), *_both(old, new, _only_text))
    elif messages[1] and (old is ABSENT or messages[0]):
        yield from _numbered(field, _("message %(number)d"), messages, _message)
    elif parts[1] and (old is ABSENT or parts[0]):
        yield from _numbered(field, _("part %(number)d of the answer"), parts, _block)


def _numbered(
    field: str,
    named: str,
    both: Iterable[Sequence[Any]],
    words: Callable[[Any], str | None],
) -> Iterator[Difference]:
    pairs = zip_longest(*both, fillvalue=ABSENT)
    for number, (was, now) in enumerate(pairs, 1):
        if not _same(was, now):
            part = named % {"number": number}
            yield Difference(field, part, *_both(was, now, words))


def _blocks(config: object, name: str) -> list[Any]:
    """Return what a config holds that is nothing but this list."""
    if not isinstance(config, dict) or config.keys() != {name}:
        return []
    found = config[name]
    return found if isinstance(found, list) else []


def _message(message: Any) -> str | None:
    """Return a prompt's message as who says what."""
    if not isinstance(message, dict):
        return _shown(message)
    role = _("Assistant") if message.get("role") == "assistant" else _("User")
    return f"{role}: {_block(message.get('content', ''))}"


def _block(content: object) -> str | None:
    """Return a content block: a text as it is, a file in words, others as JSON."""
    if not isinstance(content, dict):
        return _shown(content)
    if content.keys() == {"type", "text"}:
        return _shown(content["text"])
    inside = content
    if content.keys() == {"type", "resource"} and isinstance(content["resource"], dict):
        inside = content["resource"]
    if "upload" in inside and inside.keys() <= {"type", "uri", "mimeType", "upload"}:
        return _file(inside)
    return _shown(content)


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


def _is_anything(value: object) -> bool:
    return True


_COMPARERS: Mapping[
    str, tuple[Callable[[object], bool], Callable[..., Iterator[Difference]]]
] = {
    "name": (_is_anything, _names),
    "uri": (_is_anything, _names),
    "uri_template": (_is_anything, _names),
    "input_schema": (_is_schema, _schemas),
    "arguments": (_are_arguments, _arguments),
    "suggestions": (_are_suggestions, _variables),
    "config": (_is_anything, _configs),
}
"""By column: whether a value is what the comparer can take apart, and the comparer."""
