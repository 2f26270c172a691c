"""URLs of the sign-in: web addresses, redirect URIs and audiences of tokens."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote, unquote_plus, urlencode

from mcp_app.protocol.headers import is_loopback_host

# -- web urls --------------------------------------------------------------------------
# Absolute http and https URLs, read so that no browser reads them differently.
#
# `urlsplit` and browsers may read different hosts if a URL has characters that RFC 3986
# forbids, escapes in its host, numbers that are no dotted address, or too many or too
# few slashes.  All of these are refused.

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_CHARACTERS: Final = re.compile(
    r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*"
)
_NO_BRACKETS: Final = re.compile(r"(?:[^/?\[\]]*//[^/?]*)?[^\[\]]*")
"""Square brackets only in the authority, if there is one, and nowhere else."""

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?]*)(?P<path>[^?]*)(?:\?(?P<query>.*))?",
    re.IGNORECASE | re.ASCII,
)
_AUTHORITY: Final = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*))"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?"
)
_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
_MAX_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class WebUrl:
    """A URL in parts; scheme and host are in lower case, the rest is as written.

    `port` is None if it is the scheme's default, `query` if there is no `?`.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    query: str | None

    @property
    def authority(self) -> str:
        """The host, with its port if that is not the scheme's default."""
        return self.host if self.port is None else f"{self.host}:{self.port}"


def check_characters(url: str) -> None:
    """Raise ValueError, with a sentence, unless `url` is written as RFC 3986 requires.

    A fragment is refused, too, and so are square brackets that are not around a host.
    """
    if not _CHARACTERS.fullmatch(url):
        raise ValueError("It has characters that a URL cannot have (RFC 3986).")
    if "#" in url:
        raise ValueError("It has a fragment (#).")
    if not _NO_BRACKETS.fullmatch(url):
        raise ValueError("It has square brackets outside its host.")


def read_web_url(url: str) -> WebUrl:
    """Return the parts of an absolute URL; ValueError, with a sentence, if it is none.

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
    usual = DEFAULT_PORTS[scheme]
    return WebUrl(
        scheme, host, None if port == usual else port, parts["path"], parts["query"]
    )


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise ValueError("It has a user part (@).")
    parts = _AUTHORITY.fullmatch(authority)
    port = int(parts["port"]) if parts and parts["port"] else None
    if parts is None or (port or 0) > _MAX_PORT:
        raise ValueError("Its host or its port cannot be read.")
    if parts["six"]:
        try:
            return f"[{IPv6Address(parts['six']).compressed}]", port
        except ValueError:
            raise ValueError("Its host is no IPv6 address.") from None
    name = parts["name"].lower()
    # Browsers read a name whose last label is a number as IPv4.
    if _NUMBER.fullmatch(name):
        try:
            IPv4Address(name)
        except ValueError:
            raise ValueError("Its host is no IPv4 address of four numbers.") from None
    return name, port


# -- redirects -------------------------------------------------------------------------
# Where the answer for a program may be sent: redirect URIs, and their comparison.
#
# URIs are compared letter by letter (RFC 9700 §4.1.3), except for the port of programs
# on the person's own computer, which use any free port (RFC 8252 §7.3).

MAX_REDIRECT_LENGTH: Final = 500
_FORBIDDEN: Final = (
    "about blob chrome chrome-extension chrome-untrusted cid content data devtools edge"
    " feed file filesystem ftp ftps gopher http https intent jar javascript livescript"
    " mailto mid mocha moz-extension ms-msdt resource safari-extension search-ms sftp"
    " sms ssh tel telnet urn vbs vbscript view-source wais ws wss wyciwyg"
)
FORBIDDEN_SCHEMES: Final = frozenset(_FORBIDDEN.split())
"""Schemes of standards and of browsers; some of them run their content."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_PRIVATE_USE: Final = re.compile(
    r"[^:]+:(?://[^/?@:\[\]]+(?::[0-9]+)?(?:[/?].*)?|(?!//)[^?].*)"
)
"""The URI has a non-empty host and no user part, or it has no `//`."""

_PORT: Final = re.compile(r"([^:]+://(?:\[[^\]]*\]|[^:/?]*)):[0-9]+")
_ANSWER: Final = frozenset({"code", "state", "iss", "error", "error_description"})


def redirect_problem(uri: object, schemes: Collection[str] = ()) -> str | None:
    """Return why an answer may not be sent to a URI, in a sentence, else None.

    Allowed are https, http on this computer, and the private-use schemes of `schemes`
    (RFC 8252 §7.1).
    """
    if not isinstance(uri, str) or not uri:
        return "It is no text."
    if len(uri) > MAX_REDIRECT_LENGTH:
        return f"It has more than {MAX_REDIRECT_LENGTH} characters."
    try:
        check_characters(uri)
        _check_kind(uri, schemes)
        _check_query(uri)
    except ValueError as error:
        return str(error)
    return None


def _check_kind(uri: str, schemes: Collection[str]) -> None:
    scheme = _scheme_of(uri)
    if scheme in {"http", "https"}:
        url = read_web_url(uri)
        if scheme == "http" and not is_loopback_host(url.host):
            raise ValueError("http is allowed on 127.0.0.1, [::1] and localhost alone.")
    elif not is_private_use(uri) or scheme not in map(str.lower, schemes):
        raise ValueError("Its scheme is not allowed.")
    elif not _PRIVATE_USE.fullmatch(uri):
        raise ValueError("The host behind its scheme cannot be read.")


def _check_query(uri: str) -> None:
    """Refuse parameters that the program could confuse with our answer.

    Some programs also split queries at `;`, strip blanks, read `code[]` as a list, or
    ignore the case.
    """
    for piece in re.split("[?&;]", uri.partition("?")[2]):
        name = unquote_plus(piece.partition("=")[0]).partition("[")[0].strip()
        if name.lower() in _ANSWER:
            raise ValueError(f"Its query has {name}, which belongs to the answer.")


def scheme_problem(scheme: object) -> str | None:
    """Return why a text cannot be a private-use scheme, in a sentence, else None."""
    if not isinstance(scheme, str) or not _SCHEME.fullmatch(f"{scheme}:"):
        return "A scheme is a letter, then letters, digits, +, - and . (RFC 3986 §3.1)."
    if scheme.lower() in FORBIDDEN_SCHEMES:
        return f"The scheme {scheme.lower()} is no private-use scheme."
    return None


def is_same_redirect(registered: str, requested: str) -> bool:
    """Whether two URIs are equal, except for the port of a program on this computer."""
    return registered == requested or (
        is_loopback(registered)
        and is_loopback(requested)
        and _without_port(registered) == _without_port(requested)
    )


def is_loopback(uri: str) -> bool:
    """Whether a URI leads to 127.0.0.1, [::1] or localhost, by http or https."""
    try:
        return is_loopback_host(read_web_url(uri).host)
    except ValueError:
        return False


def is_on_own_computer(uri: str) -> bool:
    """Whether a URI leads to a program on the computer of the person who follows it."""
    return is_loopback(uri) or is_private_use(uri)


def is_private_use(uri: str) -> bool:
    """Whether a URI has a scheme that a program has made its own."""
    scheme = _scheme_of(uri)
    return bool(scheme) and scheme not in FORBIDDEN_SCHEMES


def redirect_host(uri: str) -> str:
    """Return the host in lower case, with its port if that is not the default.

    It is "" for private-use schemes; raises ValueError if the URI is no redirect.
    """
    return "" if is_private_use(uri) else read_web_url(uri).authority


def with_answer(redirect: str, answer: Mapping[str, str]) -> str:
    """Return the redirect with an answer added to its query (RFC 6749 §4.1.2).

    Spaces become `%20`, which readers of forms and of URLs decode in the same way.
    """
    base, mark, query = redirect.partition("?")
    prefix = f"{query}&" if mark and query else ""
    return f"{base}?{prefix}{urlencode(answer, safe='', quote_via=quote)}"


def _scheme_of(uri: str) -> str:
    scheme = _SCHEME.match(uri)
    return scheme[1].lower() if scheme else ""


def _without_port(uri: str) -> str:
    match = _PORT.match(uri)
    return match[1] + uri[match.end() :] if match else uri


# -- resources -------------------------------------------------------------------------
# The address of a server as the audience of a token (RFC 8707).

MAX_RESOURCE_LENGTH: Final = 2_000


def canonical(resource: str) -> str:
    """Return a server's address in the one form for comparisons.

    Scheme and host are in lower case; the scheme's default port, one `/` at the end and
    then `/sse` are removed.  Raises ValueError, with a sentence, for more than 2,000
    characters, a query, and URLs that `read_web_url` refuses.
    """
    if len(resource) > MAX_RESOURCE_LENGTH:
        raise ValueError(f"It has more than {MAX_RESOURCE_LENGTH} characters.")
    url = read_web_url(resource)
    if url.query is not None:
        raise ValueError("It has a query (?).")
    path = url.path.removesuffix("/").removesuffix("/sse")
    return f"{url.scheme}://{url.authority}{path}"
