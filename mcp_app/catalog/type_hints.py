"""Reads the type hints of a function, and its docstring."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from inspect import cleandoc
from operator import or_
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import typing_extensions

from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.questions import ToolOutput
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import Text
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.texts import clean_text

# -- annotations -----------------------------------------------------------------------
# The parts of type hints.

Annotation: TypeAlias = Any
"""The hint after a colon or an arrow, with its strings resolved."""

typed_dict = cast(
    "Callable[[str, dict[str, Annotation]], type]", vars(typing_extensions)["TypedDict"]
)
"""Make a TypedDict of members that are known only now."""

NEEDS_EXTENSIONS = sys.version_info < (3, 12)
"""Whether pydantic refuses `typing.TypedDict`, which lacks what it must know."""


def hint_origin(annotation: Annotation) -> Annotation:
    """Return the part before the brackets; None if there are no brackets."""
    return get_origin(annotation)


def bare_hint(annotation: Annotation) -> Annotation:
    """Return the hint inside of `Annotated` and `type` aliases."""
    if hint_origin(annotation) is Annotated:
        return bare_hint(get_args(annotation)[0])
    if isinstance(annotation, typing_extensions.TypeAliasType):
        return bare_hint(annotation.__value__)
    return annotation


def hint_metadata(annotation: Annotation) -> tuple[object, ...]:
    """Return the metadata of `Annotated`, without that of inner hints."""
    if hint_origin(annotation) is Annotated:
        return tuple(annotation.__metadata__)
    return ()


def without_metadata(annotation: Annotation) -> Annotation:
    """Return the hint without its own metadata; inner hints keep theirs."""
    return get_args(annotation)[0] if hint_metadata(annotation) else annotation


def without_none(annotation: Annotation) -> Annotation:
    """Return a union without its None."""
    remaining = [each for each in union_members(annotation) if each is not type(None)]
    return reduce(or_, remaining) if remaining else annotation


def or_none(annotation: Annotation) -> Annotation:
    """Return the hint or None, with `Annotated` still around it."""
    widened = without_metadata(annotation) | None
    extras = hint_metadata(annotation)
    return Annotated[(widened, *extras)] if extras else widened


def union_members(annotation: Annotation) -> Iterator[Annotation]:
    """Yield the members of a union, bare; any other hint is its own member."""
    inner = bare_hint(annotation)
    if hint_origin(inner) in {Union, types.UnionType}:
        for argument in get_args(inner):
            yield from union_members(argument)
    else:
        yield inner


def is_kind(annotation: Annotation, *kinds: type) -> bool:
    """Whether the hint is one of the classes, or a subclass."""
    return isinstance(annotation, type) and issubclass(
        hint_origin(annotation) or annotation, kinds
    )


def for_pydantic(annotation: Annotation) -> Annotation:
    """Return the hint in a form that pydantic reads on every version of Python."""
    if not NEEDS_EXTENSIONS:
        return annotation
    try:
        return _with_extensions(annotation)
    except RecursionError:
        raise RegistrationError(
            f"{annotation!r} contains itself. Before Python 3.12, import its"
            " TypedDict from typing_extensions."
        ) from None


def _with_extensions(annotation: Annotation) -> Annotation:
    """Make each TypedDict in a hint again by `typing_extensions`."""
    if is_typeddict(annotation):
        return _rebuild_typed_dict(annotation)
    arguments = get_args(annotation)
    if hint_origin(annotation) is Literal or not arguments:
        return annotation
    changed = tuple(_with_extensions(argument) for argument in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return annotation
    outer = hint_origin(annotation)
    if outer is Annotated:
        return Annotated[(changed[0], *hint_metadata(annotation))]
    return reduce(or_, changed) if outer is types.UnionType else outer[changed]


def _rebuild_typed_dict(declared: Annotation) -> type:
    members = {}
    for name, hint in get_type_hints(declared, include_extras=True).items():
        member = _with_extensions(hint)
        if hint_origin(member) not in {Required, NotRequired}:
            is_required = name in declared.__required_keys__
            member = (Required if is_required else NotRequired)[member]
        members[name] = member
    rebuilt = typed_dict(declared.__name__, members)
    for name in ("__doc__", "__module__", "__pydantic_config__"):
        if hasattr(declared, name):
            setattr(rebuilt, name, getattr(declared, name))
    return rebuilt


# -- scalars ---------------------------------------------------------------------------
# Results that are one text, number or truth value: the most frequent and quickest.

SCALARS: Mapping[type, tuple[str, Callable[[Any], str]]] = {
    str: ("string", str),
    int: ("integer", repr),
    float: ("number", repr),
    bool: ("boolean", ("false", "true").__getitem__),
}
"""JSON Schema's name of each type, and its text for a model."""

_TEXT = {kind: text for kind, (_, text) in SCALARS.items()}


def scalar_of(schema: object) -> type | None:
    """Return the scalar type of an output schema; None for any other schema."""
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
        members = (other.content, other.structured, other.is_error, other.meta)
        return (self.content, self.structured, False, None) == members

    def __hash__(self) -> int:
        return hash(self.value)

    @property
    def content(self) -> tuple[Text, ...]:
        return (Text(_TEXT[type(self.value)](self.value)),)

    @property
    def structured(self) -> dict[str, object]:
        return {"result": self.value}

    @property
    def is_error(self) -> bool:
        return False

    @property
    def meta(self) -> None:
        return None

    def encoded_members(self) -> bytes:
        """Return the result's members as JSON, without the brace that ends it.

        Raises `UnserializableValue` for NaN, Infinity and lone surrogates.
        """
        return scalar_members(self.value)


def scalar_members(value: Any) -> bytes:
    """Return the members of a result as JSON for a value of one of the `SCALARS`."""
    if type(value) is int and -_PLAIN < value < _PLAIN:
        return _INTEGER_MEMBERS % (value, value)
    # The slice takes the value out of `{"result":…}`.
    encoded = jsonrpc.write({"result": value})[10:-1]
    text = clean_text(_TEXT[type(value)](value))
    if text is value:  # The value is a string, and nothing was cleaned.
        return _MEMBERS % (encoded, encoded)
    return _MEMBERS % (jsonrpc.write(text), encoded)


_PLAIN = 10**18
"""Smaller integers are written without a check; Python refuses to write huge ones."""
_set_value: Callable[[ScalarOutput, object], None]
_set_value = ScalarOutput.__dict__["value"].__set__
"""Sets `value`, although the base class is frozen."""
_MEMBERS = b'{"content":[{"type":"text","text":%b}],"structuredContent":{"result":%b}'
_INTEGER_MEMBERS = _MEMBERS.replace(b"%b", b'"%d"', 1).replace(b"%b", b"%d")


# -- docstrings ------------------------------------------------------------------------
# Docstrings as descriptions: the text, and what it says about each parameter.
#
# Parameters are read in the styles of Google, NumPy and reST.  What follows them
# (returns, raises) is for readers of the code, and is left out.

_SECTION = (
    r"(?:Args|Arguments|Params|Parameters|Other Parameters"
    r"|Keyword Args|Keyword Arguments)"
)
_GOOGLE_SECTION = re.compile(rf"{_SECTION}:\s*$")
_NUMPY_SECTION = re.compile(rf"{_SECTION}\s*$")
_UNDERLINE = re.compile(r"-{3,}\s*$")
_GOOGLE_ITEM = re.compile(
    r"\*{0,2}(?P<names>\w+)\s*(?:\(.*?\))?\s*:(?!:)\s*(?P<text>.*)$"
)
_NUMPY_ITEM = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_FIELD = re.compile(
    r":(?P<kind>param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?"
    r"|except|exception|yields?|ytype|var|ivar|cvar|vartype|meta)\b(?P<rest>[^:]*):"
    r"\s*(?P<text>.*)$"
)
_PARAMETER_FIELDS = frozenset(
    {"param", "parameter", "arg", "argument", "key", "keyword"}
)


@dataclass(frozen=True, slots=True)
class Documentation:
    """What a docstring says; `text` is the part before the parameters."""

    text: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def documentation(docstring: str | None) -> Documentation:
    """Read a docstring of any of the styles."""
    if not docstring:
        return Documentation()
    lines = cleandoc(docstring).splitlines()
    start = len(lines)
    parameters: dict[str, str] = {}
    for position in range(len(lines)):
        read = _reader_at(lines, position)
        if read is None:
            continue
        start = min(start, position)
        for names, texts in read(lines[position:]):
            if text := " ".join(" ".join(texts).split()):
                parameters |= {n.strip().lstrip("*"): text for n in names.split(",")}
    return Documentation("\n".join(lines[:start]).strip(), parameters)


_Item = tuple[str, list[str]]
"""The names of parameters, with commas between them, and the lines about them."""
_Reader = Callable[[list[str]], list[_Item]]


def _reader_at(lines: list[str], position: int) -> _Reader | None:
    line = lines[position]
    if _GOOGLE_SECTION.match(line):
        return _google_items
    if _FIELD.match(line):
        return _field_items
    following = lines[position + 1] if position + 1 < len(lines) else ""
    if _NUMPY_SECTION.match(line) and _UNDERLINE.match(following):
        return _numpy_items
    return None


def _google_items(lines: list[str]) -> list[_Item]:
    """Read items with the indent of the first one; deeper lines continue an item."""
    block = list(_indented_lines(lines[1:]))
    depth = _indentation(block[0]) if block else 0
    items: list[_Item] = []
    for line in block:
        head = _GOOGLE_ITEM.match(line.strip())
        if head and _indentation(line) == depth:
            items.append((head["names"], [head["text"]]))
        elif items:
            items[-1][1].append(line)
    return items


def _numpy_items(lines: list[str]) -> list[_Item]:
    """Read items at the margin, until the next title with its underline."""
    items: list[_Item] = []
    for line, following in zip(lines[2:], [*lines[3:], ""], strict=False):
        if _indentation(line) or not line.strip():
            if items:
                items[-1][1].append(line)
            continue
        head = _NUMPY_ITEM.match(line)
        if head is None or _UNDERLINE.match(following):
            break
        items.append((head["names"], []))
    return items


def _field_items(lines: list[str]) -> list[_Item]:
    """Read one field: `:param name: …` or `:param type name: …`, and indented lines."""
    head = _FIELD.match(lines[0])
    if head and head["kind"] in _PARAMETER_FIELDS and head["rest"].strip():
        return [(head["rest"].split()[-1], [head["text"], *_indented_lines(lines[1:])])]
    return []


def _indented_lines(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.strip() and not _indentation(line):
            return
        if line.strip():
            yield line


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
