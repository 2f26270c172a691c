"""Addresses that can be looked at, and those that belong to the site."""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import urljoin, urlsplit

from mcp_app.interface.server import DEFAULT_SLUG

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
    # With nothing behind them, too: a slash is added to the address.
    if parts.username is not None or "?" in url or "#" in url:
        return "it must have no user name, no question mark and no #."
    return "the port 0 is none." if port == 0 else ""


def leads_back(asked: str, location: str) -> bool:
    """Whether a redirect leads back; a proxy may have lost the port with the Host."""
    try:
        here, there = urlsplit(asked), urlsplit(urljoin(asked, location))
        usual = 443 if here.scheme == "https" else 80
        is_port = there.port is None or there.port == (here.port or usual)
    except ValueError:
        return False
    is_host = (here.scheme, here.hostname) == (there.scheme, there.hostname)
    return is_host and is_port and here[2:] == there[2:]


def better_address(asked: str, location: str) -> str:
    """Return the address of the same server to which a redirect leads, or "".

    A login has another path, and nobody is told to speak without TLS.
    """
    try:
        there = urljoin(asked, location)
        one, other = urlsplit(asked), urlsplit(there)
    except ValueError:
        return ""
    is_path = one.path.rstrip("/") == other.path.rstrip("/")
    is_worse = (one.scheme, other.scheme) == ("https", "http")
    return "" if is_worse or not is_path or address_problem(there) else there


def public_line(url: str, slug: str) -> str:
    """Return the setting by which a server has an address, "" if none does."""
    base = url.rstrip("/")
    if slug != DEFAULT_SLUG:
        base, _, end = base.rpartition("/")
        if end != slug:
            return ""
    return f'MCP["PUBLIC_URL"] = {json.dumps(base)}'
