"""The other sites that tools may call: those of the setting `HTTP`, by their keys.

    MCP = {"HTTP": {"helpdesk": {
        "title": "Help desk",
        "url": "https://help.example.com/api/v2",
        "secret_headers": {"Authorization": "Bearer " + env("HELPDESK_KEY")},
    }}}

Rows name a site by its key, so hosts and secrets are not in the database.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypeVar
from unicodedata import category
from urllib.parse import unquote

from django.utils.module_loading import import_string
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from mcp_app.conf import MIB, mcp_settings, settings_cache

# -- addresses -------------------------------------------------------------------------
# Which addresses a name may have: public ones, and those that a site allows.
#
# The IPv4 list is IANA's special-purpose registry (RFC 6890), plus the addresses of two
# cloud providers' own services.  In IPv6, only global unicast is public, without the
# ranges that embed IPv4 addresses or are for documentation.  A NAT64 address (RFC 6052)
# counts as the IPv4 address in it.

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_SPECIAL_NETWORKS: Final = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16
    172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24
    192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
    203.0.113.0/24 224.0.0.0/3 2001::/23 2001:db8::/32 2002::/16 3fff::/20
"""
_SPECIAL: Final = tuple(map(ip_network, _SPECIAL_NETWORKS.split()))
_GLOBAL: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Whether an address leads to the same host from everywhere on the Internet."""
    if address in _NAT64:
        # The last 32 bits are the IPv4 address.
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    is_local = isinstance(address, IPv6Address) and (
        address.scope_id is not None or address not in _GLOBAL
    )
    return not (is_local or any(address in each for each in _SPECIAL))


def is_allowed(address: Address, networks: Iterable[Network]) -> bool:
    """Whether a site may have this address, given its private networks."""
    return is_public(address) or any(address in network for network in networks)


def parse_address(text: str) -> Address | None:
    """Return the address that a text stands for, None if it is no address."""
    try:
        return ip_address(text)
    except ValueError:
        return None


# -- sites -----------------------------------------------------------------------------

SITE_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
MAX_TIMEOUT_S: Final = 600
MAX_CONNECTIONS: Final = 1_000
MAX_ANSWER_BYTES: Final = 256 * MIB
HIGHEST_PORT: Final = 65_535
PORTS: Final = {"http": 80, "https": 443}

Caller: TypeAlias = Callable[..., Mapping[str, str]]
"""Returns the headers for a caller: `(AccessRequest) -> dict`; it may block."""


class UnusableSite(ValueError):
    """An entry of the setting that cannot be used; the message says why."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Site:
    """Another site; it has no repr, because it holds secrets.

    `prefix` is the path of its URL without a slash at the end.  `timeout` is in
    seconds, for a whole call, and `answer` in bytes after decompression.
    """

    key: str
    title: str
    scheme: str
    host: str
    port: int
    prefix: str
    secret_headers: Mapping[str, str] | Caller = field(default_factory=dict)
    secret_query: Mapping[str, str] = field(default_factory=dict)
    networks: Sequence[Network] = ()
    ca: str = ""
    timeout: float = 30.0
    connections: int = 10
    answer: int = 4 * MIB
    mcp: bool = False
    """Whether it is an MCP server, whose tools can be taken over."""
    trace: bool = False
    """Whether the current trace is sent to it."""

    @property
    def url(self) -> str:
        """Return its address as the settings have it, without a slash at the end."""
        return f"{self.scheme}://{self.authority}{self.prefix}"

    @property
    def authority(self) -> str:
        """Return host and port, without the port if it is the scheme's."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def per_caller(self) -> bool:
        """Whether its headers depend on the caller."""
        return callable(self.secret_headers)

    @property
    def secret_names(self) -> frozenset[str]:
        """The names of the headers that the settings set, in lower case."""
        if isinstance(self.secret_headers, Mapping):
            return frozenset(header.lower() for header in self.secret_headers)
        return frozenset()


# -- options ---------------------------------------------------------------------------
# The shapes of options, which sites, issuers and `MCP["OAUTH"]` share.


def _read_network(value: object) -> Network:
    if not isinstance(value, str | IPv4Network | IPv6Network):
        # `ip_network` would read numbers and bytes as addresses.
        raise ValueError("it must be a text")
    return ip_network(value)


def _check_file(path: object) -> str:
    if path and not (isinstance(path, str | Path) and Path(path).is_file()):
        raise ValueError("it is not a file")
    return str(path)


Networks: TypeAlias = Annotated[
    list[Annotated[Any, AfterValidator(_read_network)]], Field(strict=False)
]
CaPath: TypeAlias = Annotated[Any, AfterValidator(_check_file)]
Timeout: TypeAlias = Annotated[
    float, Field(gt=0, le=MAX_TIMEOUT_S, allow_inf_nan=False)
]


class Options(BaseModel, extra="forbid", strict=True):
    """Options for the networks of another host, and for its certificate."""

    networks: Networks = []
    ca: CaPath = ""


class SiteOptions(Options):
    """An entry of `MCP["HTTP"]`; docs/settings.md has each option."""

    title: Annotated[Any, AfterValidator(str), Field(min_length=1)] = None
    url: Any = None
    secret_headers: Mapping[str, str] | str = Field({}, repr=False)
    secret_query: Mapping[str, str] = Field({}, repr=False)
    timeout: Timeout = 30.0
    connections: int = Field(10, ge=1, le=MAX_CONNECTIONS)
    answer: int = Field(4 * MIB, ge=1, le=MAX_ANSWER_BYTES)
    mcp: bool = False
    trace: bool = False


Shape = TypeVar("Shape", bound=Options)


def read_shape(shape: type[Shape], options: Mapping[str, Any]) -> Shape:
    """Return options in their shape; raises `UnusableSite` with the first problem."""
    try:
        return shape.model_validate(dict(options))
    except ValidationError as error:
        raise UnusableSite(next(shape_problems(shape, error))) from None


def shape_problems(shape: type[BaseModel], error: ValidationError) -> Iterator[str]:
    """Yield a sentence for each wrong option; no sentence repeats a secret."""
    for each in error.errors(include_url=False, include_context=False):
        name, *inner = each["loc"] or ("",)
        value, rule = each["input"], each["msg"].removeprefix("Value error, ")
        if each["type"] == "extra_forbidden":
            matches = difflib.get_close_matches(str(name), shape.model_fields, 1)
            suggestion = f" Did you mean {matches[0]!r}?" if matches else ""
            yield f"has no option {name!r}.{suggestion}"
        elif not name:
            yield rule
        elif name in SECRET_OPTIONS:
            yield f'has "{name}" that cannot be used: {rule}.'
        elif inner:
            yield f'has {value!r} in "{name}": {rule}.'
        else:
            yield f'has the "{name}" {value!r}: {rule}.'


def option_problems(key: str, shape: type[BaseModel], options: object) -> Iterator[str]:
    """Yield a sentence for each unusable option of a key of `MCP`."""
    if not isinstance(options, Mapping):
        yield f'MCP["{key}"] is {options!r}: it must be a dict.'
        return
    try:
        shape.model_validate(dict(options))
    except ValidationError as error:
        for problem in shape_problems(shape, error):
            yield f'MCP["{key}"] {problem}'


SECRET_OPTIONS: Final = ("secret_headers", "secret_query", "token", "issuers")


def usable_sites() -> Mapping[str, Site]:
    """Return the usable sites that are no MCP servers; see `setting_problems`."""
    return {key: each for key, each in _every_site().items() if not each.mcp}


def upstream_sites() -> Mapping[str, Site]:
    """Return the usable sites that are MCP servers."""
    return {key: each for key, each in _every_site().items() if each.mcp}


@settings_cache
def _every_site() -> Mapping[str, Site]:
    usable = {}
    for key, options in mcp_settings.http.items():
        with suppress(UnusableSite):
            usable[key] = _read_site(key, options)
    return usable


def setting_problems(entries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each entry that cannot be used; it shows no secret."""
    for key, options in entries.items():
        try:
            _read_site(key, options)
        except UnusableSite as error:
            yield f'MCP["HTTP"][{key!r}] {error}'


def _read_site(key: object, options: Mapping[str, Any]) -> Site:
    if not (isinstance(key, str) and SITE_KEY.fullmatch(key)):
        raise UnusableSite(
            "has a key that no row can name. A key must begin with a letter and have at"
            " most 40 characters of a-z, 0-9, _ and -."
        )
    if not isinstance(options, Mapping):
        raise UnusableSite('must be a dict with at least "url".')
    values = dict(read_shape(SiteOptions, options))
    values |= address_of(values.pop("url"), private=bool(values["networks"]))
    if values["mcp"] and str(options["url"]).endswith("/"):
        # Servers redirect from one form to the other, and redirects are not followed.
        values["prefix"] += "/"
    values["title"] = values["title"] or key
    values["secret_headers"] = _secret_headers(values["secret_headers"])
    return Site(key=key, **values)


_URL: Final = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*)"
)
_SLASH: Final = re.compile(r"[/\\]")
_NUMBERS: Final = re.compile(r"(.*\.)?(0[xX][0-9A-Fa-f]*|[0-9]+)")
"""Hosts that systems read as addresses: 127.1, 0x7f000001."""


def address_of(url: object, *, private: bool, option: str = "url") -> dict[str, Any]:
    """Return scheme, host, port and prefix of a URL; raises `UnusableSite`.

    `option` is its name in the settings.  No message repeats the URL, because it may
    hold a secret.
    """
    match = _URL.fullmatch(url) if isinstance(url, str) else None
    if match is None:
        raise UnusableSite(
            f'needs "{option}", an address such as "https://help.example.com/api": http'
            " or https, a host in ASCII, a path; no user, no query, no fragment."
        )
    scheme, host = match["scheme"], match["host"].lower().strip("[]")
    if problem := path_problem(match["path"]):
        raise UnusableSite(
            f'has as "{option}" an address with a segment that {problem}.'
        )
    address = parse_address(host)
    if address is None and (":" in host or _NUMBERS.fullmatch(host)):
        raise UnusableSite(
            f'has as "{option}" an address with the host {host!r}: write one with four'
            " decimal numbers, or a name."
        )
    if not private and (scheme == "http" or address is not None or "." not in host):
        part = "http://" if scheme == "http" else f"the host {host!r}"
        raise UnusableSite(
            f'has as "{option}" an address with {part}, which is for private networks'
            ' alone. Name them in "networks", or write https:// and a name with a dot.'
        )
    port = int(match["port"] or PORTS[scheme])
    if not 0 < port <= HIGHEST_PORT:
        raise UnusableSite(f'has as "{option}" an address with the port {port}.')
    prefix = match["path"].rstrip("/")
    return {"scheme": scheme, "host": host, "port": port, "prefix": prefix}


def readings_of(path: str) -> list[list[str]]:
    """Return the segments of a path, for each way in which servers may decode it.

    It is encoded once for sending, and a caller may have encoded a value twice before.
    """
    readings = [path, once := unquote(path), twice := unquote(once), unquote(twice)]
    return [_SLASH.split(reading) for reading in readings]


def path_problem(path: str) -> str:
    """Return what a segment of a path is or has, "" if the path may be sent.

    Servers and proxies decode a path once or twice.  Some read a backslash as a slash,
    and some ignore what follows a semicolon, so “..;a” is “..” to them.
    """
    for segments in readings_of(path):
        if any(segment.partition(";")[0] in (".", "..") for segment in segments):
            return "is “.” or “..”"
        text = "".join(segments)
        if not text.isprintable() and any(category(each) == "Cc" for each in text):
            return "has a control character"
    return ""


_DOTTED: Final = re.compile(r"[A-Za-z_]\w{0,39}(\.[A-Za-z_]\w{0,39})+", re.ASCII)
"""A path that a message may show: a secret token rarely has such a form."""


def _secret_headers(value: Mapping[str, str] | str) -> Mapping[str, str] | Caller:
    if isinstance(value, str):
        try:
            function = import_string(value)
        except Exception as error:
            # A module may raise any error.  A value that is no path may be a secret, so
            # the message does not show it.
            description = "that are neither a dict nor the dotted path of a function."
            if _DOTTED.fullmatch(value):
                description = f"{value!r}, which cannot be imported: {error}"
            raise UnusableSite(f'has "secret_headers" {description}') from None
        if not callable(function):
            raise UnusableSite(f'has "secret_headers" {value!r}, which is no function.')
        return function  # type: ignore[no-any-return]
    # Raise the first problem, if there is one.
    for problem in filter(None, map(header_problem, value, value.values())):
        raise UnusableSite(f'has "secret_headers" {problem}')
    return value


_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?|")
"""Visible ASCII, with blanks and tabs only inside, or nothing."""
OURS: Final = frozenset(
    {"connection", "content-length", "host", "te", "transfer-encoding", "upgrade"}
)
"""Headers that only the connection may set."""


def header_problem(name: str, value: str) -> str:
    """Return what is wrong with a header, "" if nothing; never shows its value."""
    if not _HEADER_NAME.fullmatch(name):
        return f"with {name!r}, which is no name of a header."
    if name.lower() in OURS:
        return f"with {name!r}, which belongs to the connection."
    if not _HEADER_VALUE.fullmatch(value):
        return (
            f"with a value of {name!r} that has a line break, another control"
            " character, a character that is not ASCII, or a space at an end."
        )
    return ""
