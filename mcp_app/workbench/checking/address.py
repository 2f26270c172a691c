"""Addresses that can be looked at, and those that belong to the site."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

LONGEST: Final = 1_000
"""Characters of an address."""


def address_problem(url: str) -> str:
    """Return what is wrong with an address, as a sentence; "" if nothing is."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"{error}."
    if len(url) > LONGEST:
        return f"it is longer than {LONGEST} characters."
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "it must begin with https:// or http://, and name a host."
    if not url.isascii() or not url.isprintable() or " " in url:
        return "it may have only characters of ASCII, and no spaces."
    if parts.username is not None or parts.query or parts.fragment:
        return "it must have no user name, no question mark and no #."
    return "the port 0 is none." if port == 0 else ""
