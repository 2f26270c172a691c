"""What differs between two JSON Schemas of parameters, and which calls it breaks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import gt, lt
from typing import Any

from django.utils.translation import gettext as _

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.differences.difference import (
    ABSENT,
    Difference,
    are_texts,
    changed_members,
    is_same_json,
    readable_pair,
    readable_value,
)


def is_schema(value: object) -> bool:
    """Whether it is a schema whose parameters can be told."""
    return value is ABSENT or (
        isinstance(value, dict)
        and isinstance(value.get("properties", {}), dict)
        and are_texts(value.get("required", []))
    )


def schema_differences(field: str, old: Any, new: Any) -> Iterator[Difference]:
    before, after = ({} if each is ABSENT else each for each in (old, new))
    yield from _parameters(field, before, after)
    rests = [
        {name: value for name, value in schema.items() if name not in _BY_PARAMETER}
        for schema in (before, after)
    ]
    if not is_same_json(*_required_of_others(before, after)):
        for rest, schema in zip(rests, (before, after), strict=True):
            if "required" in schema:
                rest["required"] = schema["required"]
    if all(each is ABSENT or each.get("type") == "object" for each in (old, new)):
        # Every tool's parameters are an object.
        for rest in rests:
            rest.pop("type", None)
    if not is_same_json(*rests):
        was, now = (rest or ABSENT for rest in rests)
        texts = readable_pair(was, now)
        breaks = "" if old is ABSENT else _narrowing_sentence(*rests)
        yield Difference(field, _("the rest of the schema"), *texts, breaks)
    elif (old is ABSENT or new is ABSENT) and not _properties(before | after):
        was, now = (None if each is ABSENT else _("none") for each in (old, new))
        yield Difference(field, "", was, now)


def _narrowing_sentence(before: JsonObject, after: JsonObject) -> str:
    """Say which keywords besides the parameters may refuse calls now; "" for none."""
    keywords = [
        keyword
        for keyword, was, now in changed_members(before, after)
        if _is_narrowing(
            keyword, _WITHOUT.get(keyword, was) if was is ABSENT else was, now
        )
    ]
    if not keywords:
        return ""
    return _("Calls that were accepted may be refused now: %(what)s.") % {
        "what": ", ".join(map(_keyword_label, keywords))
    }


_WITHOUT: Mapping[str, object] = {"additionalProperties": True, "required": []}
"""What some keywords mean where they are left out."""


_BY_PARAMETER = frozenset({"properties", "required"})


def _required_of_others(before: JsonObject, after: JsonObject) -> list[list[str]]:
    """Return what is required in both, but for what is told of each parameter."""
    old, new = _properties(before), _properties(after)
    required = [schema.get("required", []) for schema in (before, after)]
    reported = {name for name in {*old, *new} if not (name in old and name in new)}
    changed = set(required[0]) ^ set(required[1])
    reported |= {name for name in changed if name in old and name in new}
    return [[name for name in names if name not in reported] for names in required]


def _parameters(
    field: str, before: JsonObject, after: JsonObject
) -> Iterator[Difference]:
    old, new = _properties(before), _properties(after)
    required = [set(schema.get("required", ())) for schema in (before, after)]
    for name in dict.fromkeys((*old, *new)):
        part = _("parameter %(name)s") % {"name": name}
        if name not in new:
            breaks = _("The parameter %(name)s is gone.") % {"name": name}
            yield Difference(field, part, _schema_in_words(old[name]), None, breaks)
        elif name not in old:
            breaks = _("The parameter %(name)s is new and required.") % {"name": name}
            breaks = breaks if name in required[1] else ""
            yield Difference(field, part, None, _schema_in_words(new[name]), breaks)
        else:
            yield from _parameter(field, name, old[name], new[name])
            was, now = (name in names for names in required)
            if was != now:
                part = _("parameter %(name)s, required") % {"name": name}
                breaks = _("The parameter %(name)s is required now.") % {"name": name}
                texts = readable_value(was), readable_value(now)
                yield Difference(field, part, *texts, breaks if now else "")
    yield from move_differences(field, _("parameter %(name)s, place"), old, new)


def _schema_in_words(schema: object) -> str | None:
    """Return a parameter's schema as a line, where it is a plain one."""
    if not schema or not isinstance(schema, dict):
        return readable_value(schema)
    if not schema.keys() <= _keyword_labels().keys():
        return readable_value(schema)
    return "; ".join(
        f"{_keyword_label(keyword)}: {_value_in_words(keyword, value)}"
        for keyword, value in schema.items()
    )


def _value_in_words(keyword: str, value: object) -> str:
    if keyword == "type":
        return str(_type_words(value))
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _type_words(value: object) -> str | None:
    if value is ABSENT:
        return None
    names = value if isinstance(value, list) else [value]
    known = {
        "string": _("Text"),
        "integer": _("Whole number"),
        "number": _("Number"),
        "boolean": _("Yes or no"),
        "object": _("Several fields"),
        "array": _("List"),
        "null": _("Nothing"),
    }
    return _(" or ").join(str(known.get(str(each), each)) for each in names)


def _properties(schema: JsonObject) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    return properties


def _parameter(field: str, name: str, old: Any, new: Any) -> Iterator[Difference]:
    if is_same_json(old, new):
        return
    whole = _("parameter %(name)s") % {"name": name}
    if not isinstance(old, dict) or not isinstance(new, dict):
        old, new = {"schema": old}, {"schema": new}
    elif not [*changed_members(old, new)]:
        # They stand in another order.
        yield Difference(field, whole, *readable_pair(old, new, _schema_in_words))
    for keyword, was, now in changed_members(old, new):
        about = {"name": name, "what": _keyword_label(keyword)}
        part = _("parameter %(name)s, %(what)s") % about
        breaks = ""
        if _is_narrowing(keyword, was, now):
            message = _("The parameter %(name)s takes less than before: %(what)s.")
            breaks = message % about
        words = _type_words if keyword == "type" else readable_value
        yield Difference(field, part, *readable_pair(was, now, words), breaks)


def _keyword_label(keyword: str) -> str:
    return _keyword_labels().get(keyword, keyword)


def _keyword_labels() -> Mapping[str, str]:
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


_ANNOTATIONS = ("$comment", "default", "deprecated", "description", "examples", "title")
_TELLING = frozenset((*_ANNOTATIONS, "$id", "$schema", "x-mcp-header"))


def _is_narrowing(keyword: str, was: Any, now: Any) -> bool:
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


def _fewer_choices(was: Any, now: Any) -> bool:
    known = {_number_or_json(each) for each in now}
    return not all(_number_or_json(each) in known for each in was)


def _number_or_json(value: object) -> float | bytes:
    """Return what is the same for equal values of JSON Schema: 1 and 1.0 are one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return jsonrpc.canonical(value)


def _fewer_types(was: Any, now: Any) -> bool:
    before, after = (
        {*each} if isinstance(each, list) else {str(each)} for each in (was, now)
    )
    # A number may be an integer.
    return not before <= (after | {"integer"} if "number" in after else after)


_NARROWER: Mapping[str, Callable[[Any, Any], bool]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), lt),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), gt),
    "additionalProperties": lambda _was, now: now is not True and now != {},
    "enum": _fewer_choices,
    "required": lambda was, now: not set(now) <= set(was),
    "type": _fewer_types,
}
"""By keyword whether (old value, new value) takes less; others may, if they differ."""


def move_differences(
    field: str, part_template: str, old: Iterable[str], new: Iterable[str]
) -> Iterator[Difference]:
    known = set(old) & set(new)
    before, after = (
        {name: place for place, name in enumerate(filter(known.__contains__, names))}
        for names in (old, new)
    )
    still = _places_in_order([before[name] for name in after])
    moved = [name for name in after if before[name] not in still]
    # What only makes room for another has the same number as before.
    for name in [each for each in moved if before[each] != after[each]] or moved:
        part = part_template % {"name": name}
        yield Difference(field, part, str(before[name] + 1), str(after[name] + 1))


def _places_in_order(places: Sequence[int]) -> set[int]:
    """Return as many of these as stand in their order: the others were moved."""
    ends: list[int] = []
    """The smallest place at which as many can end."""
    before: dict[int, int | None] = {}
    for place in places:
        index = bisect_left(ends, place)
        before[place] = ends[index - 1] if index else None
        ends[index : index + 1] = [place]
    rising: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        rising.add(last)
        last = before[last]
    return rising
