"""Names that programs give themselves, as text that cannot pass for more."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

MOST_CHARACTERS: Final = 60

_MOST_MARKS: Final = 2
"""Marks above or below one letter: more of them reach into other lines."""

_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)
"""Letters, marks and symbols without a picture; their category does not tell."""

_QUOTATION_MARK: Final = re.compile(
    "[\"'`\u00ab\u00b4\u00bb\u02b9-\u02bd\u02dd\u02ee\u05f3\u05f4\u2018-\u201f"
    "\u2032-\u2037\u2039\u203a\u2057\u275b-\u2760\u276e\u276f\u2e02-\u2e0d\u2e1c"
    "\u2e1d\u2e20\u2e21\u2e42\u3003\u300c-\u300f\u301d-\u301f\ufe41-\ufe44\uff02"
    "\uff07\uff40\uff62\uff63\U0001f676-\U0001f678]+"
)
"""Quotation marks (Unicode's Quotation_Mark), and what looks like them."""


def shown_name(name: object, host: str) -> str:
    """A name of at most 60 characters that can stand between quotation marks.

    Without control, bidirectional and invisible characters; quotation marks become
    `'`, and any white space one blank.  What is no text, or nothing after that, gives
    `host`.
    """
    if not isinstance(name, str):
        return host
    text = "".join(_visible(name[: MOST_CHARACTERS * 9]))
    text = "".join(_few_marks(unicodedata.normalize("NFC", text)))
    text = _QUOTATION_MARK.sub("'", text)
    return " ".join(text.split())[:MOST_CHARACTERS].strip() or host


def _visible(text: str) -> Iterator[str]:
    for character in _INVISIBLE.sub("", text):
        if character.isspace():
            yield " "
        elif unicodedata.category(character)[0] != "C":
            yield character


def _few_marks(text: str) -> Iterator[str]:
    marks = _MOST_MARKS  # A mark at the beginning would stand on what is before it.
    for character in text:
        is_mark = unicodedata.category(character)[0] == "M"
        marks = marks + 1 if is_mark else _MOST_MARKS * character.isspace()
        if not is_mark or marks <= _MOST_MARKS:
            yield character
