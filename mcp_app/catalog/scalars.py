"""Results that are one text, number or truth value: the most frequent and quickest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_app.interface.results import ToolOutput
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import Text
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.plain_text import clean_text

SCALARS: Mapping[type, tuple[str, Callable[[Any], str]]] = {
    str: ("string", str),
    int: ("integer", repr),
    float: ("number", repr),
    bool: ("boolean", ("false", "true").__getitem__),
}
"""JSON Schema's name of each type, and its text for a model."""

_TEXT = {kind: text for kind, (_, text) in SCALARS.items()}


def scalar_of(schema: object) -> type | None:
    """Return the type that an output schema promises, where it promises no more."""
    return next((kind for kind in SCALARS if schema == scalar_schema(kind)), None)


def scalar_schema(kind: type) -> JsonObject:
    """Return the output schema of a function that returns such a value."""
    name, _ = SCALARS[kind]
    return {
        "type": "object",
        "properties": {"result": {"type": name}},
        "required": ["result"],
    }


class ScalarOutput(ToolOutput):
    """What a tool returned as `{"result": value}`, with its blocks made when asked."""

    __slots__ = ("value",)

    value: str | float

    def __init__(self, value: object) -> None:
        _set_value(self, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ToolOutput):
            return NotImplemented
        return (
            (self.content, self.structured) == (other.content, other.structured)
            and not other.is_error
            and other.meta is None
        )

    def __hash__(self) -> int:
        return hash(self.value)

    @property
    def text(self) -> str:
        """The text for a model."""
        return _TEXT[type(self.value)](self.value)

    @property
    def content(self) -> tuple[Text, ...]:
        return (Text(self.text),)

    @property
    def structured(self) -> dict[str, object]:
        return {"result": self.value}

    @property
    def is_error(self) -> bool:
        return False

    @property
    def meta(self) -> None:
        return None

    def members(self) -> bytes:
        """Return the result's members as JSON, without the brace that ends it.

        Raises `UnserializableValue` for NaN, Infinity and lone surrogates.
        """
        return scalar_members(self.value)


def scalar_members(value: Any) -> bytes:
    """Return what `members` does of a value whose type is one of `SCALARS`."""
    if type(value) is int and -_PLAIN < value < _PLAIN:
        return _INTEGER_MEMBERS % (value, value)
    shown = jsonrpc.write({"result": value})[10:-1]
    said = _TEXT[type(value)](value)
    text = clean_text(said)
    if text is value:
        return _MEMBERS % (shown, shown)
    return _MEMBERS % (jsonrpc.write(text), shown)


_PLAIN = 10**18
"""Integers below it are written without a look; Python refuses the largest."""
_set_value: Callable[[ScalarOutput, object], None]
_set_value = ScalarOutput.__dict__["value"].__set__
_MEMBERS = b'{"content":[{"type":"text","text":%b}],"structuredContent":{"result":%b}'
_INTEGER_MEMBERS = _MEMBERS.replace(b"%b", b'"%d"', 1).replace(b"%b", b"%d")
