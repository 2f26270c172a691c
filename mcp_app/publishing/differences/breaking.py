"""Which calls fail after a change of a row's content, although they worked before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from operator import gt, lt
from typing import Any, Final

from django.utils.translation import gettext as _

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.differences.difference import ABSENT, MALFORMED, changed_members


def breaking_reasons(before: JsonObject, after: JsonObject) -> list[str]:
    """Return which calls will fail, in words: “those with “days””; each once."""
    return list(dict.fromkeys(_reasons(before, after)))


def _reasons(before: JsonObject, after: JsonObject) -> Iterator[str]:
    for field in ("name", "uri", "uri_template"):
        if field in before and before[field] != after.get(field):
            yield _("those to “%(name)s”") % {"name": before[field]}
    if not before:
        return
    with suppress(*MALFORMED):
        sides = (
            _arguments_schema(each.get("arguments", [])) for each in (before, after)
        )
        yield from _schema_reasons(*sides)
    with suppress(*MALFORMED):
        yield from _schema_reasons(
            *(s.get("input_schema", {}) for s in (before, after))
        )
    was, now = (each.get("payload_schema", {}) for each in (before, after))
    for name in was.get("properties", {}):
        if name not in now.get("properties", {}):
            yield _("what reads “%(name)s”") % {"name": name}


def _arguments_schema(arguments: list[JsonObject]) -> JsonObject:
    names = {argument["name"]: bool(argument.get("required")) for argument in arguments}
    required = [name for name, needed in names.items() if needed]
    return {"properties": {name: {} for name in names}, "required": required}


def _schema_reasons(before: JsonObject, after: JsonObject) -> Iterator[str]:
    old, new = (each.get("properties", {}) for each in (before, after))
    for name, was in old.items():
        if name not in new:
            yield _("those with “%(name)s”") % {"name": name}
        elif _takes_less(was, new[name]):
            yield _("some with “%(name)s”") % {"name": name}
    required = set(before.get("required", ()))
    for name in after.get("required", ()):
        if name not in required:
            yield _("those without “%(name)s”") % {"name": name}
    remainders = (
        {**_LEFT_OUT, **each, "properties": {}, "required": []}
        for each in (before, after)
    )
    if _takes_less(*remainders):
        yield _("some")


_LEFT_OUT: Final = {"type": "object", "additionalProperties": True}
"""The values that keywords have if they are left out."""


def _takes_less(was: Any, now: Any) -> bool:
    """Whether a schema takes less than before, as far as its keywords say."""
    if not isinstance(was, dict) or not isinstance(now, dict):
        was, now = {"schema": was}, {"schema": now}
    return any(_is_narrowing(*change) for change in changed_members(was, now))


_ANNOTATIONS = ("$comment", "default", "deprecated", "description", "examples", "title")
_TELLING: Final = frozenset((*_ANNOTATIONS, "$id", "$schema", "x-mcp-header"))
"""Keywords that refuse no value."""


def _is_narrowing(keyword: str, was: Any, now: Any) -> bool:
    if keyword in _TELLING or now is ABSENT:
        return False
    narrower = _NARROWER.get(keyword)
    if was is ABSENT or narrower is None:
        return True
    try:
        return narrower(was, now)
    except TypeError:
        # One of the values does not fit the keyword.
        return True


def _fewer_choices(was: Any, now: Any) -> bool:
    values = {_number_or_json(each) for each in now}
    return not all(_number_or_json(each) in values for each in was)


def _number_or_json(value: object) -> float | bytes:
    """Return a key that equal values of JSON Schema share: 1 equals 1.0."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return jsonrpc.canonical(value)


def _fewer_types(was: Any, now: Any) -> bool:
    before, after = (
        {*each} if isinstance(each, list) else {str(each)} for each in (was, now)
    )
    # The type `number` allows integers, too.
    return not before <= (after | {"integer"} if "number" in after else after)


_NARROWER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), lt),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), gt),
    "additionalProperties": lambda _was, now: now is not True and now != {},
    "enum": _fewer_choices,
    "type": _fewer_types,
}
"""By keyword: whether a new value takes less.  For others each change may do so."""
