"""Parameters of a query or a form, read in one way only (RFC 6749, appendix B)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, TypeAlias
from urllib.parse import unquote_to_bytes

from mcp_app.protocol.oauth.errors import invalid_request

Pairs: TypeAlias = list[tuple[str, str]]

_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def decode(text: str) -> str:
    """The value that is form-url-encoded as `text`.

    Raises ValueError with a sentence for what is no ASCII, has a broken escape, is no
    UTF-8 when it is decoded, or holds NUL.
    """
    if not text.isascii() or _BROKEN_ESCAPE.search(text):
        raise ValueError("It is not percent-encoded.")
    try:
        value = unquote_to_bytes(text.replace("+", " ")).decode()
    except UnicodeDecodeError:
        raise ValueError("It is not UTF-8.") from None
    if "\0" in value:
        raise ValueError("It holds the character NUL.")
    return value


def read_parameters(text: str, *, most: int, several: Collection[str] = ()) -> Pairs:
    """The names and values of a query or form of at most `most` characters.

    Raises OAuthError (`invalid_request`) for one that is longer, for what `decode`
    does not take, and for a name that is there twice, but for those of `several`.
    Empty values are left out: they count as missing (RFC 6749 §3.1).
    """
    if len(text) > most:
        raise invalid_request(f"The request has more than {most} bytes.")
    try:
        pairs = [_pair(each) for each in text.split("&") if each]
    except ValueError as error:
        raise invalid_request(f"A parameter cannot be read. {error}") from None
    _check_once(name for name, _ in pairs if name not in several)
    return [(name, value) for name, value in pairs if value]


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return decode(name), decode(value)


def _check_once(names: Iterable[str]) -> None:
    before: set[str] = set()
    for name in names:
        if name in before:
            raise invalid_request(f"The parameter {name[:40]} is there twice.")
        before.add(name)
