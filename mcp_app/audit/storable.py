"""Makes text from outside storable in every database, and as short as it must be."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 500
"""Bytes that the call log stores of a text, in UTF-8."""
BYTES_OF_CHARACTER: Final = 4
"""A character has no more."""


def storable(text: str) -> str:
    """Return a text that every database takes: no NUL, no half of a surrogate pair."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def cut(text: str, most: int = LONGEST) -> str:
    """Return as much of a text as fits into so many bytes; no character is split.

    Of characters a column counts a part only: most have one byte, others four.
    """
    if len(text) * BYTES_OF_CHARACTER <= most:
        return text
    return text.encode()[:most].decode("utf-8", "ignore")
