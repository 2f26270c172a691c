"""Docstrings as descriptions: the text, and what it says about each parameter.

Parameters are found in the styles of Google, NumPy and reST; what follows them
(returns, raises) is for readers of the code and left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import cleandoc

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
    """`text` is what stands before the parameters."""

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
        if read is not None:
            start = min(start, position)
            parameters.update(_described(read(lines[position:])))
    return Documentation("\n".join(lines[:start]).strip(), parameters)


_Item = tuple[str, list[str]]
_Reader = Callable[[list[str]], Iterator[_Item]]


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


def _described(items: Iterable[_Item]) -> Iterator[tuple[str, str]]:
    for names, texts in items:
        text = " ".join(" ".join(texts).split())
        if text:
            for name in names.split(","):
                yield name.strip().lstrip("*"), text


def _google_items(lines: list[str]) -> Iterator[_Item]:
    """Items are indented by as much as the first; deeper lines continue them."""
    block = list(_indented(lines[1:]))
    depth = _indentation(block[0]) if block else 0
    item: _Item | None = None
    for line in block:
        head = _GOOGLE_ITEM.match(line.strip())
        if head and _indentation(line) == depth:
            if item:
                yield item
            item = (head["names"], [head["text"]])
        elif item:
            item[1].append(line)
    if item:
        yield item


def _numpy_items(lines: list[str]) -> Iterator[_Item]:
    """Items stand at the margin, until the next title with its underline."""
    item: _Item | None = None
    for position, line in enumerate(lines[2:], start=2):
        if _indentation(line) or not line.strip():
            if item:
                item[1].append(line)
            continue
        if item:
            yield item
        head = _NUMPY_ITEM.match(line)
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if head is None or _UNDERLINE.match(following):
            return
        item = (head["names"], [])
    if item:
        yield item


def _field_items(lines: list[str]) -> Iterator[_Item]:
    """One field: `:param name: …` or `:param type name: …`, and indented lines."""
    head = _FIELD.match(lines[0])
    if head and head["kind"] in _PARAMETER_FIELDS and head["rest"].strip():
        yield head["rest"].split()[-1], [head["text"], *_indented(lines[1:])]


def _indented(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.strip() and not _indentation(line):
            return
        if line.strip():
            yield line


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
