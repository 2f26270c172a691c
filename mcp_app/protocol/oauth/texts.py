"""Codes, access tokens and refresh tokens: their form, and how some are computed.

Codes and later refresh tokens are computed.  So a program that missed an answer can get
the same one again.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from collections.abc import Iterator
from secrets import token_urlsafe
from typing import Final

from mcp_app.protocol.cursors import base64url, derived_key

CODE: Final = "mcp_ac_"
ACCESS: Final = "mcp_at_"
REFRESH: Final = "mcp_rt_"
CLIENT: Final = "mcp_cl_"

_ACCESS: Final = re.compile(rf"{ACCESS}[A-Za-z0-9_-]{{43}}")
_REFRESH: Final = re.compile(rf"{REFRESH}([A-Za-z0-9_-]{{22}})([A-Za-z0-9_-]{{43}})")


def code_of(page_id: str, secret: str) -> str:
    """The code of one consent page, of 50 characters: the same for the same page."""
    return CODE + _hmac_text(secret, "oauth-code", page_id)


def new_access() -> str:
    """Return a new random access token, of 50 characters."""
    return ACCESS + token_urlsafe(32)


def is_access(text: str) -> bool:
    """Whether a text has the form of such a token; other tokens have another length."""
    return _ACCESS.fullmatch(text) is not None


def new_refresh() -> str:
    """Return the first refresh token of an app: 22 characters of name, 43 of secret."""
    return REFRESH + token_urlsafe(16) + token_urlsafe(32)


def refresh_parts(text: str) -> tuple[str, str] | None:
    """Return the name and the secret of a refresh token; None if it is none."""
    parts = _REFRESH.fullmatch(text)
    return (parts[1], parts[2]) if parts else None


def successor(text: str, secret: str) -> str:
    """Return the refresh token that follows this one, with the same name.

    Raises ValueError if the text is no refresh token.
    """
    parts = refresh_parts(text)
    if parts is None:
        raise ValueError("This is no refresh token.")
    return REFRESH + parts[0] + _hmac_text(secret, "oauth-refresh", parts[1])


def _hmac_text(secret: str, purpose: str, text: str) -> str:
    key = derived_key(secret, purpose)
    return base64url(hmac.digest(key, text.encode(), "sha256"))


# -- names -----------------------------------------------------------------------------
# Names that programs give themselves, made safe to show.

MAX_NAME_LENGTH: Final = 60

_MAX_MARKS: Final = 2
"""The most marks above or below one letter: more would reach into other lines."""

_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)
"""Letters, marks and symbols that are invisible; their category does not show it."""

_QUOTATION_MARK: Final = re.compile(
    "[\"'`\u00ab\u00b4\u00bb\u02b9-\u02bd\u02dd\u02ee\u05f3\u05f4\u2018-\u201f"
    "\u2032-\u2037\u2039\u203a\u2057\u275b-\u2760\u276e\u276f\u2e02-\u2e0d\u2e1c"
    "\u2e1d\u2e20\u2e21\u2e42\u3003\u300c-\u300f\u301d-\u301f\ufe41-\ufe44\uff02"
    "\uff07\uff40\uff62\uff63\U0001f676-\U0001f678]+"
)
"""Quotation marks (Unicode's Quotation_Mark), and characters that look like them."""


def display_name(name: object, host: str) -> str:
    """Return a name of at most 60 characters that can stand between quotation marks.

    Control, bidirectional and invisible characters are removed; quotation marks become
    `'`, and white space becomes one blank.  If `name` is no text, or nothing is left,
    the result is `host`.
    """
    if not isinstance(name, str):
        return host
    text = "".join(_visible_characters(name[: MAX_NAME_LENGTH * 9]))
    text = "".join(_few_marks(unicodedata.normalize("NFC", text)))
    text = _QUOTATION_MARK.sub("'", text)
    return " ".join(text.split())[:MAX_NAME_LENGTH].strip() or host


def _visible_characters(text: str) -> Iterator[str]:
    for character in _INVISIBLE.sub("", text):
        if character.isspace():
            yield " "
        elif unicodedata.category(character)[0] != "C":
            yield character


def _few_marks(text: str) -> Iterator[str]:
    # At the beginning and after a blank, no mark is left: it has no letter to stand on.
    marks = _MAX_MARKS
    for character in text:
        is_mark = unicodedata.category(character)[0] == "M"
        marks = marks + 1 if is_mark else _MAX_MARKS * character.isspace()
        if not is_mark or marks <= _MAX_MARKS:
            yield character
