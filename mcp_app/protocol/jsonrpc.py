"""JSON in and JSON out.

`read` accepts what RFC 8259 allows, but nothing that two readers could read differently
(duplicate keys, NaN, lone surrogates).  `write` never changes a value silently.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import time, timedelta
from decimal import Decimal
from enum import Enum
from functools import singledispatch
from math import isfinite
from typing import Any, NoReturn, TypeAlias

from orjson import (
    OPT_PASSTHROUGH_DATACLASS,
    OPT_SORT_KEYS,
    Fragment,
    JSONDecodeError,
    JSONEncodeError,
    dumps,
    loads,
)

from mcp_app.protocol.errors import ParseError

Path: TypeAlias = tuple[str | int, ...]

INTEGER_DIGITS = 4300
"""Digits of one integer; with more, reading and writing it take quadratic time."""

WRITTEN_DEPTH = 254
"""How many nested containers `write` follows: orjson's own limit."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What one body may hold.

    `depth` counts containers within containers (`[]` is 1).  `nodes` counts commas and
    opening brackets outside strings; the number of values is at most one more.
    """

    depth: int = 64
    nodes: int = 100_000


DEFAULT_LIMITS = ReadLimits()

# The escape \u0000, but not \\u0000, which is an escaped backslash and plain text.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def read(body: bytes, limits: ReadLimits = DEFAULT_LIMITS) -> object:
    """Return the value of `body`; raise ParseError if it is not strict JSON.

    Strict JSON is UTF-8 without a byte order mark, within `limits`; integers are exact.
    It has no duplicate keys, NaN, Infinity, number beyond a double or lone surrogate.
    """
    value = read_any_depth(body, limits)
    check_depth(body, limits)
    return value


def read_any_depth(body: bytes, limits: ReadLimits) -> object:
    """Do what `read` does, but skip the check of the depth for most bodies.

    The caller must call `check_depth`, unless it knows that the value is shallow.
    """
    if len(body) > limits.nodes and node_count(body) > limits.nodes:
        raise ParseError(f"The body has more than {limits.nodes} values.")
    try:
        value: object = loads(body)
        # If the output equals the input, the input was strict: a second key, a rounded
        # integer or a lone surrogate would change the output.
        if dumps(value) == body:
            return value
    except (JSONDecodeError, JSONEncodeError):
        pass
    return _read_strictly(body, limits)


def check_depth(body: bytes, limits: ReadLimits) -> None:
    """Raise ParseError if containers are nested too deeply."""
    # Removing the brackets is quicker than counting them.
    if (
        len(body) - len(body.translate(None, b"{[")) > limits.depth
        and nesting_depth(body, limits.depth) > limits.depth
    ):
        raise ParseError(
            f"The body nests arrays and objects more than {limits.depth} deep, or"
            " does not close them."
        )


def _read_strictly(body: bytes, limits: ReadLimits) -> object:
    check_depth(body, limits)
    text = _decode_body(body)
    try:
        value: object = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ParseError(
            f"The body is not JSON: {error.msg} at character {error.pos}."
        ) from None
    except RecursionError:
        raise ParseError("The body is nested too deeply.") from None
    if _ESCAPED_SURROGATE.search(body):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ParseError("A string has half of a surrogate pair.") from None
    return value


def _decode_body(body: bytes) -> str:
    if not body:
        raise ParseError("The body is empty.")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise ParseError(f"The body is not UTF-8 at byte {error.start}.") from None
    if text.startswith("\ufeff"):
        raise ParseError(
            "The body starts with a byte order mark, which JSON does not allow."
        )
    return text


def _unique_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        key, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ParseError(f"An object has the key {key[:80]!r} twice.")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ParseError(f"{name} is not a JSON number.")


def _finite_number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ParseError(f"The number {text[:40]} is beyond the range of a double.")
    return number


def _bounded_integer(text: str) -> int:
    if len(text) > INTEGER_DIGITS:
        raise ParseError(
            f"An integer has {len(text)} digits; the limit is {INTEGER_DIGITS}."
        )
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_members,
    parse_constant=_no_constant,
    parse_float=_finite_number,
    parse_int=_bounded_integer,
)
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


_ONE_BRACKET = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def _without_strings(body: bytes) -> bytes:
    """The text outside strings, given that the body is JSON.

    First the escapes that can hold a quote are removed; then every second piece between
    quotes is the inside of a string.  If the body is not JSON, the result means
    nothing, and the reader refuses the body anyway.
    """
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(body.split(b'"')[::2])


def nesting_depth(body: bytes, most: int) -> int:
    """How many containers the JSON text nests; `most` + 1 for more, or an open one."""
    brackets = _without_strings(body).translate(_ONE_BRACKET, _NO_BRACKETS)
    # Each round removes the innermost pairs, which is one level of every branch.
    for level in range(most):
        if not brackets:
            return level
        fewer = brackets.replace(b"[]", b"")
        if len(fewer) == len(brackets):
            break
        brackets = fewer
    return most + bool(brackets)


def node_count(body: bytes) -> int:
    """Commas and opening brackets outside strings; the values are at most one more."""
    outside = _without_strings(body)
    return outside.count(b",") + outside.count(b"[") + outside.count(b"{")


class UnserializableValue(ValueError):
    """A value has no JSON form; `path` names its place, such as `$.items[3].price`."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path_text(path)
        super().__init__(f"{self.path} {reason}")


def write(value: object) -> bytes:
    """Return compact JSON in UTF-8; raise UnserializableValue, which names the place.

    These become text: dates, times, durations (ISO 8601), Decimal, UUID, bytes (base64)
    and lazy strings.  An enumeration becomes its value.  Mappings, dataclasses and
    pydantic models become objects; tuples and sets become arrays, sorted if possible.
    Keys that are no strings become their text.  `orjson.Fragment` is copied unchanged.
    """
    return _write_json(value, OPT_PASSTHROUGH_DATACLASS)


def canonical(value: object) -> bytes:
    """Do what `write` does, with sorted keys, for digests; a Fragment is not sorted."""
    return _write_json(value, OPT_PASSTHROUGH_DATACLASS | OPT_SORT_KEYS)


def canonical_of_read(value: object) -> bytes:
    """Do what `canonical` does for a value that `read` returned, but quicker."""
    try:
        return dumps(value, option=OPT_SORT_KEYS)
    except JSONEncodeError:
        # The value has an integer of more than 64 bits.
        return canonical(value)


def pretty_text(value: object) -> str:
    """Return JSON for people: indented by two spaces, characters not escaped."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def holds_nul(text: bytes) -> bool:
    """Whether JSON has the character NUL in one of its strings."""
    return _NUL.search(text) is not None


def _write_json(value: object, options: int) -> bytes:
    try:
        text = dumps(value, _convert_value, options)
    except JSONEncodeError:
        return dumps(_plain_value(value, ()), option=options)
    # orjson writes NaN and Infinity as null, as it writes None, so the value is checked
    # for them.  In a long text this is quicker than to search for null.
    if (len(text) > _LONG or b"null" in text) and not _is_plain(value):
        _plain_value(value, ())
    return text


_LONG = 2_048


def _is_plain(value: object) -> bool:
    """Whether a value that orjson has written certainly has no NaN; quick."""
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is dict:
            pending.extend(item.values())
        elif kind is list:
            pending.extend(item)
        elif kind not in _SCALARS and not (kind is float and isfinite(item)):
            return False
    return True


def path_text(path: Iterable[str | int]) -> str:
    """A path in the form `$.items[3]["odd key"]`."""
    text = "$"
    for key in path:
        if isinstance(key, str) and key.isidentifier():
            text += f".{key}"
        else:
            text += f"[{key if isinstance(key, int) else json.dumps(key[:80])}]"
    return text


def _plain_value(value: object, path: Path) -> object:
    """Return `value` in types that orjson writes exactly; or UnserializableValue."""
    plain = _PLAIN.get(type(value))
    if plain is None:
        plain = next(
            (_PLAIN[kind] for kind in type(value).__mro__ if kind in _PLAIN),
            _plain_other,
        )
    return plain(value, path)


def _plain_unchanged(value: object, path: Path) -> object:
    return value


def _plain_text(value: str, path: Path) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UnserializableValue(path, "has half of a surrogate pair.") from None
    return value


def _plain_integer(value: int, path: Path) -> object:
    if -(1 << 63) <= value < (1 << 64):
        return value
    try:
        return Fragment(int.__repr__(value))
    except ValueError:
        raise UnserializableValue(path, "is an integer with too many digits.") from None


def _plain_float(value: float, path: Path) -> float:
    if not isfinite(value):
        raise UnserializableValue(path, f"is {value}, which JSON cannot express.")
    return value


def _plain_members(value: Mapping[object, object], path: Path) -> dict[str, object]:
    _check_written_depth(path)
    members: dict[str, object] = {}
    for key, member in value.items():
        name = key if type(key) is str else _text_of_key(key, path)
        if name in members:
            raise UnserializableValue(
                path, f"has two keys that are both written as {name!r}."
            )
        members[_plain_text(name, path)] = _plain_value(member, (*path, name))
    return members


def _plain_items(value: Iterable[object], path: Path) -> list[object]:
    _check_written_depth(path)
    items: list[object] = []
    # No comprehension: its frame would count against the recursion limit.
    for index, item in enumerate(value):
        items.append(_plain_value(item, (*path, index)))
    return items


def _check_written_depth(path: Path) -> None:
    if len(path) >= WRITTEN_DEPTH:
        raise UnserializableValue(
            path[:3], f"is nested more than {WRITTEN_DEPTH} deep, or within itself."
        )


def _plain_enumeration(value: Enum, path: Path) -> object:
    return _plain_value(value.value, path)


def _plain_other(value: object, path: Path) -> object:
    try:
        converted = _convert_value(value)
    except TypeError:
        kind = type(value).__name__
        raise UnserializableValue(
            path, f"is of type {kind!r}, which JSON does not have."
        ) from None
    return converted if converted is value else _plain_value(converted, path)


def _text_of_key(key: object, path: Path) -> str:
    """Return the text for a key: its JSON, without the quotes of a text or a date."""
    text = dumps(_plain_value(key, path)).decode()
    if text[0] in "[{":
        raise UnserializableValue(path, f"has a key of type {type(key).__name__!r}.")
    return str(json.loads(text)) if text[0] == '"' else text


_SCALARS = frozenset({str, int, bool, type(None), Fragment})
_PLAIN: dict[type, Callable[[Any, Path], object]] = {
    str: _plain_text,
    int: _plain_integer,
    float: _plain_float,
    bool: _plain_unchanged,
    type(None): _plain_unchanged,
    dict: _plain_members,
    list: _plain_items,
    tuple: _plain_items,
    Enum: _plain_enumeration,
    Fragment: _plain_unchanged,
}


@singledispatch
def _convert_value(value: object) -> object:
    """Return a value that orjson does not know in a simpler type; or TypeError."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (field.name for field in dataclasses.fields(value))
        return {name: getattr(value, name) for name in names if name[0] != "_"}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    # A lazy string of Django is known by its class's name: Django is not imported.
    if any(
        base.__name__ == "Promise" and base.__module__ == "django.utils.functional"
        for base in type(value).__mro__
    ):
        return str(value)
    # orjson writes dates and UUIDs itself; for anything else this raises a TypeError.
    dumps(value)
    return value


_convert_value.register(Decimal, str)
# orjson writes a time only if it has no time zone.
_convert_value.register(time, time.isoformat)
_convert_value.register(tuple, list)
_convert_value.register(Mapping, dict)


@_convert_value.register(bytes)
@_convert_value.register(bytearray)
@_convert_value.register(memoryview)
def _(value: bytes) -> str:
    return base64.b64encode(value).decode()


@_convert_value.register(set)
@_convert_value.register(frozenset)
def _(value: set[Any]) -> list[object]:
    try:
        return sorted(value)
    except TypeError:
        return sorted(value, key=repr)


@_convert_value.register
def _(value: timedelta) -> str:
    sign = "-" if value < timedelta(0) else ""
    value = abs(value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{value.microseconds:06}" if value.microseconds else ""
    clock = f"{hours}H{minutes}M{seconds}{fraction}S"
    return f"{sign}P{value.days}DT{clock}"
