"""A difference of two contents: both sides as texts, with the changed words marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.protocol import jsonrpc

# -- text diff -------------------------------------------------------------------------
# Which words of two texts were taken away or added.

WORDS = re.compile(r"\s+|\S+\s*")


class Piece(NamedTuple):
    """A piece of a text, and whether the other text lacks it."""

    text: str
    is_changed: bool


MAX_PAIRS_OF_WORDS: Final = 1_500**2
"""Longer texts are not compared word by word: so many pairs take a second."""


def operations(
    before: list[str], after: list[str]
) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the operations that change words, as `SequenceMatcher.get_opcodes` does.

    If the text from the first to the last word that differs is very long, it is one
    difference.
    """
    start = common_start(before, after)
    end = common_start(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    yield "equal", 0, start, 0, start
    opcodes: Sequence[tuple[Any, ...]] = [("replace", 0, len(old), 0, len(new))]
    if len(old) * len(new) <= MAX_PAIRS_OF_WORDS:
        opcodes = SequenceMatcher(None, old, new).get_opcodes()
    for operation, *places in opcodes:
        old_start, old_end, new_start, new_end = (index + start for index in places)
        yield operation, old_start, old_end, new_start, new_end
    yield "equal", start + len(old), len(before), start + len(new), len(after)


def common_start(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words, or characters, are the same at the beginning of both."""
    pairs = zip(one, other, strict=False)
    return len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])


# -- difference ------------------------------------------------------------------------

FEW_WORDS: Final = 2
"""If two changes have no more equal words between them, they are shown as one."""
ABSENT: Final = object()
"""Stands for a member that is not there."""
MALFORMED: Final = (AttributeError, KeyError, TypeError)
"""The errors that are raised if a value does not fit its column."""


@dataclass(frozen=True, slots=True)
class Difference:
    """`field` is a column, `part` a part of it; a value of None is "not there"."""

    field: str
    part: str
    before: str | None
    after: str | None

    def pieces_before(self) -> list[Piece]:
        """Return the old text with what was taken away marked."""
        return self._marked_pieces(is_new=False)

    def pieces_after(self) -> list[Piece]:
        """Return the new text with what was added marked."""
        return self._marked_pieces(is_new=True)

    def _marked_pieces(self, *, is_new: bool) -> list[Piece]:
        texts = self.before or "", self.after or ""
        before, after = map(WORDS.findall, texts)
        steps = [
            each
            for each in operations(before, after)
            if each[0] != "equal" or each[1] < each[2]  # no empty equal step
        ]
        words: list[Piece] = []
        for index, (operation, start, end, *new_range) in enumerate(steps):
            is_inside = 0 < index < len(steps) - 1 and end - start <= FEW_WORDS
            is_changed = operation != "equal" or is_inside
            side = after[slice(*new_range)] if is_new else before[start:end]
            words += [Piece(each, is_changed) for each in side]
        # Invisible characters are part of the difference.
        return [
            Piece(visible("".join(each.text for each in run), None), is_changed)
            for is_changed, run in groupby(words, attrgetter("is_changed"))
        ]


def is_same_json(old: object, new: object) -> bool:
    """Whether both are the same JSON: 1, 1.0 and true are three values."""
    if old is ABSENT or new is ABSENT:
        return old is new
    return jsonrpc.write(old) == jsonrpc.write(new)


def changed_members(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the members that differ, by name; ABSENT is an object without any."""
    before, after = ({} if each is ABSENT else each for each in (old, new))
    for name in dict.fromkeys((*before, *after)):
        was, now = before.get(name, ABSENT), after.get(name, ABSENT)
        if not is_same_json(was, now):
            yield name, was, now


def readable_value(value: object) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, str):
        return value
    return jsonrpc.pretty_text(value)


def readable_pair(old: Any, new: Any) -> tuple[str | None, str | None]:
    """Return two different values in words; as JSON if the words are the same."""
    for write in (readable_value, jsonrpc.pretty_text):
        was, now = (None if each is ABSENT else write(each) for each in (old, new))
        if was != now:
            break
    return was, now
