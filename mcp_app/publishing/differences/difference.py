"""One difference, and two values in words that differ where the values do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.protocol import jsonrpc
from mcp_app.publishing.differences.text_diff import WORDS, Change, Piece, operations

ABSENT: Final = object()
"""Stands for a member that is not there."""


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
            WORDS.findall(text or "") for text in (self.before, self.after)
        )
        pieces = []
        for operation, start, end, new_start, new_end in operations(before, after):
            words = before[start:end]
            if side is Change.ADDED:
                words = after[new_start:new_end]
            if words:
                change = Change.SAME if operation == "equal" else side
                # What nobody sees is part of the difference.
                pieces.append(Piece(change, visible("".join(words), None)))
        return pieces


def same(old: object, new: object) -> bool:
    """Whether both are the same JSON: 1, 1.0 and true are three values."""
    if old is ABSENT or new is ABSENT:
        return old is new
    return jsonrpc.write(old) == jsonrpc.write(new)


def shown_value(value: object) -> str | None:
    if value is ABSENT:
        return None
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, str):
        return value
    return jsonrpc.pretty(value)


def both(
    old: Any, new: Any, words: Callable[[Any], str | None] = shown_value
) -> tuple[str | None, str | None]:
    """Return two different values as people read them; as JSON if that is the same."""
    was, now = words(old), words(new)
    return (was, now) if was != now else (_as_json(old), _as_json(new))


def _as_json(value: object) -> str | None:
    return None if value is ABSENT else jsonrpc.pretty(value)


def are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
