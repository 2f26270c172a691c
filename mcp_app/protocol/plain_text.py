"""Texts of results, without what steers a terminal or hides from people.

Models and people read such a text, and often a terminal shows it.  What goes: sequences
of ECMA-48 and xterm as a whole, control characters other than tabs and line breaks, and
tag characters, which nobody sees and models understand.
"""

from __future__ import annotations

import re
from typing import Final

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import Text

_CONTROL: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_CONTROL_BYTES: Final = bytes(
    each for each in range(0x80) if re.match(f"[{_CONTROL}]", chr(each))
)
_TAG: Final = "\U000e0000-\U000e007f"
_UNWANTED: Final = re.compile(f"[{_CONTROL}{_TAG}]")
# A string for a terminal, such as a title, ends in its line, or only its beginning
# goes: an end that is missing must not take the rest of the text.
_SEQUENCE: Final = re.compile(
    r"(?:\x1b[PX^_\]]|[\x90\x98\x9d-\x9f])[^\x00-\x1f\x7f-\x9f]*+(?:[\x07\x9c]|\x1b\\)"
    r"|(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?"
    r"|\x1b[ -/]*+[0-~]?"
    f"|{_UNWANTED.pattern}"
)
_PAGE: Final = re.compile("[\x0b\x0c\x85]")
"""What ends a line or a page, and stands between words: it becomes a line break."""
_UTF_16: Final = re.compile("(....)")


class CleanBlocks(tuple[Text, ...]):
    """Blocks whose texts are clean, because they are `json_text`."""

    __slots__ = ()


def clean_text(text: str) -> str:
    """Return a text without what is unwanted; the same object if it has none."""
    # A search takes three microseconds for a kilobyte, a look at each character one.
    if text.isascii():
        usual = len(text.encode().translate(None, _CONTROL_BYTES)) == len(text)
    else:
        usual = text.replace("\n", " ").isprintable()
    if usual or not _UNWANTED.search(text):
        return text
    return _SEQUENCE.sub("", _PAGE.sub("\n", text))


def json_text(value: object) -> str:
    """Return the JSON of a value as a text that `clean_text` leaves as it is.

    What is unwanted is escaped, so it reads as the same value.  Raises
    `UnserializableValue` as `jsonrpc.write` does.
    """
    text = jsonrpc.write(value).decode()
    if (text.isascii() and "\x7f" not in text) or text.isprintable():
        return text
    return _UNWANTED.sub(_escape, text)


def _escape(character: re.Match[str]) -> str:
    units = character.group().encode("utf-16-be").hex()
    return _UTF_16.sub(r"\\u\1", units)
