"""Makes text from outside storable in every database."""

from __future__ import annotations


def storable(text: str) -> str:
    """Return a text that every database takes: no NUL, no half of a surrogate pair."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode()
