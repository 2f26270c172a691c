"""Absolute http and https URLs, read so that no browser reads them otherwise.

`urlsplit` and browsers disagree on hosts where a URL has other characters than those
of RFC 3986, escapes in its host, numbers that are no dotted address, or slashes too
many or too few.  All of these are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_CHARACTERS: Final = re.compile(
    r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*"
)
_NO_BRACKETS: Final = re.compile(r"(?:[^/?\[\]]*//[^/?]*)?[^\[\]]*")
"""None behind the authority, where there is one, and else none at all."""

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?]*)(?P<path>[^?]*)(?:\?(?P<query>.*))?",
    re.IGNORECASE | re.ASCII,
)
_AUTHORITY: Final = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*))"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?"
)
_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
_MOST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class WebUrl:
    """A URL in parts; scheme and host are in lower case, the rest is as written.

    `port` is None where it is the scheme's own, `query` where there is no `?`.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    query: str | None

    @property
    def authority(self) -> str:
        """The host, with its port if that is not the scheme's own."""
        return self.host if self.port is None else f"{self.host}:{self.port}"


def check_characters(url: str) -> None:
    """Raise ValueError, with a sentence, unless `url` is written as RFC 3986 wants.

    A fragment is refused, too, and square brackets anywhere but around a host.
    """
    if not _CHARACTERS.fullmatch(url):
        raise ValueError("It has characters that a URL cannot have (RFC 3986).")
    if "#" in url:
        raise ValueError("It has a fragment (#).")
    if not _NO_BRACKETS.fullmatch(url):
        raise ValueError("It has square brackets outside its host.")


def read_web_url(url: str) -> WebUrl:
    """The parts of an absolute URL; ValueError, with a sentence, for anything else.

    It has no fragment and no user part.  Its host is a name of letters, digits,
    hyphens and underscores between single dots, an IPv4 address of four numbers, or
    an IPv6 address; its port is 1 to 65535.
    """
    check_characters(url)
    parts = _URL.fullmatch(url)
    if parts is None:
        raise ValueError("It is no absolute URL of http or https.")
    scheme = parts["scheme"].lower()
    host, port = _host_and_port(parts["authority"])
    own = DEFAULT_PORTS[scheme]
    return WebUrl(
        scheme, host, None if port == own else port, parts["path"], parts["query"]
    )


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise ValueError("It has a user part (@).")
    parts = _AUTHORITY.fullmatch(authority)
    port = int(parts["port"]) if parts and parts["port"] else None
    if parts is None or (port or 0) > _MOST_PORT:
        raise ValueError("Its host or its port cannot be read.")
    return _six(parts["six"]) if parts["six"] else _name(parts["name"]), port


def _six(text: str) -> str:
    try:
        return f"[{IPv6Address(text).compressed}]"
    except ValueError:
        raise ValueError("Its host is no IPv6 address.") from None


def _name(text: str) -> str:
    """A name in lower case; browsers read one that ends in a number as IPv4."""
    name = text.lower()
    if _NUMBER.fullmatch(name):
        try:
            IPv4Address(name)
        except ValueError:
            raise ValueError("Its host is no IPv4 address of four numbers.") from None
    return name
