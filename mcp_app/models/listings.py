"""Lists of words in one text column: tags, and names of authentication methods."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcp_app.interface.rules import tag_problem

_SEPARATORS = re.compile(r"[\s,]+")


def words(text: str) -> tuple[str, ...]:
    """Split at spaces and commas, keeping the order and the first of each."""
    return tuple(dict.fromkeys(word for word in _SEPARATORS.split(text) if word))


def lines(text: str) -> tuple[str, ...]:
    """Return the lines that say something: names that may have spaces."""
    stripped = (line.strip() for line in text.split("\n"))
    return tuple(dict.fromkeys(line for line in stripped if line))


def tag_problems(tags: str) -> Iterator[tuple[str, str]]:
    """Yield ("tags", sentence) for each word that cannot be a tag."""
    for tag in words(tags):
        if problem := tag_problem(tag):
            yield "tags", problem
