"""Arguments of 4 MiB in many shapes, each bad for what reads or checks them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

BODY: Final = 4 * 1024 * 1024 - 4096
"""Bytes of a value, so that its body is not too large."""
NODES: Final = 99_000
"""Of these a body may have 100,000."""
NUMBERS: Final = b",".join([b"12"] * NODES)

OPEN: Final = "wide_open"
FITS: Final = "fits"
MISFIT: Final = "does not fit"
NO_JSON: Final = "no JSON"


@dataclass(frozen=True, slots=True)
class Shape:
    """A value that is the argument of a tool, as JSON, and what comes of it."""

    value: bytes
    tool: str = OPEN
    outcome: str = FITS
    session: bool = False


def _row(*parts: bytes, around: bytes = b"[]") -> bytes:
    """Return an array or object of so many parts that it is as long as may be."""
    size = 0
    taken = []
    for part in parts:
        size += len(part) + 1
        if size > BODY:
            break
        taken.append(part)
    return around[:1] + b",".join(taken) + around[1:]


def _names(pattern: bytes, width: int = 26) -> bytes:
    members = (pattern % (number, b"x" * width) for number in range(NODES))
    return _row(*members, around=b"{}")


def _choice(last: bytes) -> bytes:
    return _row(*([b'{"kind":"' + last + b'","count":1}'] * (NODES // 3)))


def _text(content: bytes) -> bytes:
    return b'"' + content * ((BODY - 2) // len(content)) + b'"'


def shapes() -> Iterator[tuple[str, Shape]]:
    """Yield the shapes by their names."""
    yield from _of_names()
    yield from _of_brackets()
    yield from _of_texts()
    yield from _of_numbers()
    yield from _of_schemas()
    yield from _of_types()


def _of_names() -> Iterator[tuple[str, Shape]]:
    names = _names(b'"n%d":"%s"')
    yield "one level of 99,000 names", Shape(names)
    yield "99,000 names with escapes", Shape(_names(b'"\\u0061%d":"%s"', 20))
    twice = names[:-1] + b',"n7":1}'
    yield "99,000 names, one of them twice", Shape(twice, outcome=NO_JSON)
    yield "99,000 names, once", Shape(names, "wide_change", session=True)


def _of_brackets() -> Iterator[tuple[str, Shape]]:
    deep = b"[" * 60 + b"]" * 60
    yield "60 levels, 1,600 times", Shape(_row(*([deep] * (NODES // 61))))
    yield "brackets alone", Shape(b"[" * BODY, outcome=NO_JSON)
    nested = b"[" * 90_000 + b"]" * 90_000
    yield "90,000 levels", Shape(nested, outcome=NO_JSON)
    yield "commas alone", Shape(b"[" + b"," * BODY, outcome=NO_JSON)


def _of_texts() -> Iterator[tuple[str, Shape]]:
    for name, content in (
        ("one text", b"x"),
        ("one text of escapes", b"\\n"),
        ("one text of long escapes", b"\\u0061"),
        ("one text of pairs of surrogates", b"\\ud83e\\udd9c"),
    ):
        yield name, Shape(_text(content))
    broken = _text(b"x")[:-1] + b'\xff"'
    yield "one text, not UTF-8 at its end", Shape(broken, outcome=NO_JSON)


def _of_numbers() -> Iterator[tuple[str, Shape]]:
    yield "99,000 numbers", Shape(b"[" + NUMBERS + b"]")
    large = _row(*([b"9" * 5_000] * 830))
    yield "integers of 5,000 digits", Shape(large, outcome=NO_JSON)
    yield "integers of 4,300 digits", Shape(_row(*([b"9" * 4_300] * 970)))
    yield "fractions of 5,000 digits", Shape(_row(*([b"0." + b"9" * 5_000] * 830)))


def _of_schemas() -> Iterator[tuple[str, Shape]]:
    different = _row(*(b"%d" % number for number in range(NODES)))
    yield "uniqueItems: 99,000 numbers", Shape(different, "wide_unique")
    alike = [b'"%s%d"' % (b"x" * 30, number) for number in range(NODES)]
    two = _row(*alike[:-1], alike[0])
    yield "uniqueItems: texts, two of them alike", Shape(two, "wide_unique", MISFIT)
    objects = (b'{"a":{"b":%d}}' % number for number in range(NODES // 3))
    yield "uniqueItems: objects", Shape(_row(*objects), "wide_unique")
    yield "oneOf of fifty: the last", Shape(_choice(b"k49"), "wide_choice")
    yield "oneOf of fifty: none", Shape(_choice(b"k50"), "wide_choice", MISFIT)
    slow = _row(*([b'"' + b"a" * 36 + b'!"'] * NODES))
    yield "a pattern that backtracks", Shape(slow, "wide_pattern", MISFIT)


def _of_types() -> Iterator[tuple[str, Shape]]:
    wrong = _row(*([b'"x"'] * NODES))
    yield "99,000 texts for numbers", Shape(wrong, "wide_numbers", MISFIT)
    texts = _row(*([b'"12"'] * NODES))
    yield "99,000 numbers as texts", Shape(texts, "wide_numbers", MISFIT)
    yield "one text of 99,000 numbers", Shape(b'"[' + NUMBERS + b']"', "wide_numbers")
    lists = _row(*([b'"[' + b",".join([b"12"] * 1_300) + b']"'] * 1_000))
    yield "1,000 texts of 1,300 numbers", Shape(lists, "wide_lists", MISFIT)
    lines = [b'{"sku":"a","count":1}'] * (NODES // 4)
    yield "objects of a model", Shape(_row(*lines), "wide_lines")
