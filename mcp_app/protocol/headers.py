"""The headers of a request: singletons, Accept, and those that mirror the body.

Mirrored headers are those of 2026-07-28, basic/transports/streamable-http, Request
Metadata; any error in them is a HeaderMismatch.
"""

from __future__ import annotations

import binascii
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, overload

from mcp_app.protocol.errors import HeaderMismatch, ProtocolError, RequestRefused
from mcp_app.protocol.jsonrpc import Path, path_text
from mcp_app.protocol.schema_graph import every_subschema

LARGEST_MIRRORED = 2**53 - 1
"""Integers beyond ± this are not safe in JavaScript and are not mirrored."""

_MIRRORED_TYPES = frozenset({"integer", "string", "boolean"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_INTEGER = re.compile(r"([+-]?[0-9]{1,40})(?:\.0{1,40})?")
_SENTINEL_START, _SENTINEL_END = "=?base64?", "?="
_QUALITY = re.compile(r"0(?:\.0*)?")

# They decide whether anything else of the request is read.
_ADMITTING = frozenset({b"host", b"origin"})
# `mcp-protocol-version` decides the era, and so the meaning of all other headers.
_SINGLETONS = _ADMITTING.union(
    (b"authorization", b"content-type", b"last-event-id", b"mcp-protocol-version")
)
SESSION_HEADER = b"mcp-session-id"
MOST_HEADERS = 256
MOST_HEADER_BYTES = 64 * 1024
"""The most bytes of all values together.  Servers in front mostly have lower limits."""
NOTHING: frozenset[bytes] = frozenset()


class Headers:
    """The headers of an ASGI scope: pairs of bytes, names in lower case.

    If `Host` or `Origin` occurs twice, the constructor raises RequestRefused (400 or
    403), and nothing else of the request is read.  `check_singletons` checks the other
    headers that may occur only once.  Too many or too large headers raise
    RequestRefused (431, RFC 6585).
    """

    __slots__ = ("raw", "repeated")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        pairs = raw if type(raw) is list else list(raw)
        self.raw = dict(pairs)
        """The values as they were sent, for the hot path, which only compares
        them."""
        self.repeated = NOTHING
        """Names that occur more than once but must not: those of `check_singletons`,
        and those that matter in one era only."""
        if len(self.raw) != len(pairs):
            self.raw, self.repeated = _combine_headers(pairs)
        size = sum(map(len, self.raw.values()))
        if size > MOST_HEADER_BYTES or len(pairs) > MOST_HEADERS:
            raise RequestRefused(
                431, "There are too many headers, or they are too large."
            )

    @overload
    def get(self, name: bytes | str) -> str | None: ...
    @overload
    def get(self, name: bytes | str, default: str) -> str: ...
    def get(self, name: bytes | str, default: str | None = None) -> str | None:
        """The value without surrounding white space, or `default`.

        A name may be a string in any case, or bytes in lower case.  Each byte is one
        character.  If a header occurred several times, its values are joined with
        commas, or with semicolons for cookies.
        """
        if isinstance(name, str):
            name = name.lower().encode("latin-1")
        value = self.raw.get(name)
        return default if value is None else value.strip(b" \t").decode("latin-1")


def _combine_headers(
    pairs: list[tuple[bytes, bytes]],
) -> tuple[dict[bytes, bytes], frozenset[bytes]]:
    counts = Counter(name for name, _ in pairs)
    repeated = frozenset(name for name, count in counts.items() if count > 1)
    for name in sorted(repeated & _ADMITTING):
        raise _repeated_error(name)
    values: dict[bytes, bytes] = {}
    for name, value in pairs:
        if name in values and name not in _SINGLETONS:
            # HTTP/2 may split cookies; they are joined again (RFC 9113, section 8.2.3).
            separator = b"; " if name == b"cookie" else b", "
            values[name] += separator + value
        else:
            values[name] = value
    return values, frozenset(
        name for name in repeated if name in _SINGLETONS or name.startswith(b"mcp-")
    )


def check_singletons(headers: Headers) -> None:
    """Raise if a header that may occur only once occurs more than once.

    HeaderMismatch for `MCP-Protocol-Version`, RequestRefused (400) for the others.
    """
    for name in sorted(headers.repeated & _SINGLETONS):
        raise _repeated_error(name)


def check_repeated(headers: Headers) -> None:
    """Raise if a header that mirrors the body occurs more than once."""
    for name in sorted(headers.repeated - {SESSION_HEADER}):
        raise _repeated_error(name)


def check_session_header(headers: Headers) -> None:
    """Raise if a request names its session more than once."""
    if SESSION_HEADER in headers.repeated:
        raise _repeated_error(SESSION_HEADER)


def _repeated_error(name: bytes) -> ProtocolError:
    title = name.decode("latin-1").title()[:80]
    if name.startswith(b"mcp-") and name != SESSION_HEADER:
        return HeaderMismatch(
            f"Header mismatch: the {title} header is there more than once"
        )
    status = 403 if name == b"origin" else 400
    return RequestRefused(status, f"The {title} header is there more than once.")


@dataclass(frozen=True, slots=True)
class Accepts:
    """What a client accepts: a JSON body, an event stream."""

    json: bool
    events: bool


@lru_cache(maxsize=32)
def parse_accept(value: str | None) -> Accepts:
    """Return what an `Accept` header allows; an absent or empty one allows both.

    The most specific range that matches decides; `q=0` excludes it.
    """
    ranges = dict(_media_range(item) for item in (value or "*/*").split(","))
    return Accepts(
        json=_is_accepted(ranges, "application/json"),
        events=_is_accepted(ranges, "text/event-stream"),
    )


def _media_range(item: str) -> tuple[str, bool]:
    """Return the range in lower case, and whether its quality is above 0."""
    media, *parameters = (part.strip().lower() for part in item.split(";"))
    qualities = [part[2:].strip() for part in parameters if part.startswith("q=")]
    return media, not any(_QUALITY.fullmatch(quality) for quality in qualities)


def _is_accepted(ranges: Mapping[str, bool], media: str) -> bool:
    any_subtype = f"{media.split('/', 1)[0]}/*"
    return ranges.get(media, ranges.get(any_subtype, ranges.get("*/*", False)))


@lru_cache(maxsize=32)
def is_json_type(content_type: str | None) -> bool:
    """Whether a type is `application/json`, alone or with `charset=utf-8`."""
    media, *parameters = (
        part.strip().lower() for part in (content_type or "").split(";")
    )
    charsets: tuple[list[str], ...] = ([], ["charset=utf-8"], ['charset="utf-8"'])
    return media == "application/json" and parameters in charsets


# A client can invent long headers, so the cache is small.
@lru_cache(maxsize=32)
def accepted_content(
    content_type: bytes | None, encoding: bytes | None, accept: bytes | None
) -> Accepts:
    """Return what the client of a POST accepts, by its raw headers.

    Raises RequestRefused: 415 if the body is not plain JSON, 406 if neither form of an
    answer is accepted.
    """
    if not is_json_type(_latin_text(content_type)):
        raise RequestRefused(415, "The content type must be application/json.")
    if encoding is not None and encoding.lower() != b"identity":
        raise RequestRefused(
            415, f"The content encoding {_latin_text(encoding)!r} is not supported."
        )
    accepted = parse_accept(_latin_text(accept))
    if not accepted.json and not accepted.events:
        raise RequestRefused(
            406, "Accept must allow application/json and text/event-stream."
        )
    return accepted


def _latin_text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


def decode_value(value: str) -> str:
    """Return the text of a mirroring header: `=?base64?…?=` decoded, others unchanged.

    Raises HeaderMismatch for characters other than visible ASCII, space or tab, and for
    Base64 that differs from what an encoder writes for UTF-8 text.
    """
    if not value.isascii() or not value.replace("\t", " ").isprintable():
        raise HeaderMismatch("Header mismatch: a header value has invalid characters.")
    inside = value.removeprefix(_SENTINEL_START)
    # One `?` cannot belong to both the start and the end.
    if inside == value or not inside.endswith(_SENTINEL_END):
        return value
    try:
        encoded = inside.removesuffix(_SENTINEL_END)
        text = binascii.a2b_base64(encoded, strict_mode=True).decode()
    except ValueError:
        text = ""  # Its Base64 differs from `value`, which could not be decoded.
    if _encode_base64(text) != value:
        raise HeaderMismatch("Header mismatch: a header value is not valid Base64.")
    return text


def encode_value(value: str) -> str:
    """Return the header value for a text; `decode_value` is the reverse."""
    if is_plain_value(value) and value == value.strip():
        return value
    return _encode_base64(value)


def _encode_base64(text: str) -> str:
    encoded = binascii.b2a_base64(text.encode(), newline=False).decode()
    return f"{_SENTINEL_START}{encoded}{_SENTINEL_END}"


def check_routing(headers: Headers, method: str, name: str | None) -> None:
    """Raise HeaderMismatch unless the headers agree with the body.

    `name` is `params.name`, `params.uri` or another member by which the method is
    routed.  If it is None, `Mcp-Name` is not required, and is not read.
    """
    if headers.raw.get(b"mcp-method") != method.encode("utf-8"):
        header_method = headers.get(b"mcp-method")
        if header_method != method:
            raise _header_mismatch("Mcp-Method", header_method, method)
    if name is None:
        return
    if is_plain_value(name) and headers.raw.get(b"mcp-name") == name.encode("ascii"):
        return
    header_name = headers.get(b"mcp-name")
    if header_name is None or decode_value(header_name) != name:
        raise _header_mismatch("Mcp-Name", header_name, name)


def is_plain_value(name: str) -> bool:
    """Whether a header can carry a name without encoding."""
    return name.isascii() and name.isprintable() and not name.startswith("=?")


def _header_mismatch(header: str, value: str | None, body: object) -> HeaderMismatch:
    if value is None:
        return HeaderMismatch(f"Header mismatch: the {header} header is missing")
    if isinstance(body, Mapping | list):
        text = "of another type"
    else:
        text = repr(body[:100]) if isinstance(body, str) else json.dumps(body)[:100]
    return HeaderMismatch(
        f"Header mismatch: {header} header value {value[:100]!r} does not match body"
        f" value {text}"
    )


@dataclass(frozen=True, slots=True)
class MirroredParameter:
    """A parameter that `Mcp-Param-{header}` repeats; `type` is its JSON type."""

    path: tuple[str, ...]
    header: str
    type: str
    name: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The name is computed once for a tool, and used in every call.
        name = f"mcp-param-{self.header.lower()}".encode()
        object.__setattr__(self, "name", name)

    def header_value(self, arguments: Mapping[str, object]) -> str | None:
        """Return the header's value for these arguments, None if there is no header.

        An absent or null argument has none, nor has a type that no header carries.
        """
        value = _argument_at(arguments, self.path)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value)
        return encode_value(value) if isinstance(value, str) else None


def mirrored_parameters(schema: Mapping[str, object]) -> tuple[MirroredParameter, ...]:
    """Return the parameters with an `x-mcp-header`; raise ValueError with a sentence.

    The annotation must be a non-empty token, unique without regard to case, on an
    integer, string or boolean that is reached only through `properties`.  Clients drop
    a tool that breaks this rule.
    """
    parameters: dict[bytes, MirroredParameter] = {}
    for path, _, inner in every_subschema(schema):
        if "x-mcp-header" in inner:
            parameter = _mirrored_parameter(path, inner)
            first = parameters.setdefault(parameter.name, parameter)
            if first is not parameter:
                raise ValueError(
                    f"More than one parameter has the x-mcp-header {first.header!r};"
                    " upper and lower case are the same."
                )
    return tuple(parameters.values())


def _mirrored_parameter(path: Path, schema: Mapping[str, object]) -> MirroredParameter:
    header, kind = schema["x-mcp-header"], schema.get("type")
    if not isinstance(header, str) or not _TOKEN.fullmatch(header):
        raise ValueError(
            f"The x-mcp-header {header!r} at {path_text(path)} must be a token: only"
            " letters, digits and !#$%&'*+-.^_`|~ are allowed."
        )
    # Keywords and names alternate in a path of `properties` alone.
    if not path or set(path[::2]) != {"properties"}:
        raise ValueError(
            f"The x-mcp-header {header!r} at {path_text(path)} must be on a parameter"
            " that is reached from the root through 'properties' alone."
        )
    if not isinstance(kind, str) or kind not in _MIRRORED_TYPES:
        raise ValueError(
            f"The x-mcp-header {header!r} at {path_text(path)} is on the type {kind!r};"
            " only an integer, a string or a boolean can be sent as a header."
        )
    return MirroredParameter(tuple(map(str, path[1::2])), header, kind)


def check_mirrored(
    parameters: Sequence[MirroredParameter],
    headers: Headers,
    arguments: Mapping[str, object],
) -> None:
    """Raise HeaderMismatch unless each header agrees with its argument.

    An absent or null argument must have no header.  Otherwise a proxy may have routed
    the request by a value that the body does not have.
    """
    for parameter in parameters:
        text = headers.get(parameter.name)
        value = _argument_at(arguments, parameter.path)
        if value is None and text is None:
            continue
        if text is None or not _stands_for(decode_value(text), value):
            raise _header_mismatch(f"Mcp-Param-{parameter.header}", text, value)


def _argument_at(arguments: Mapping[str, object], path: tuple[str, ...]) -> object:
    value: object = arguments
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _stands_for(text: str, value: object) -> bool:
    """Whether a header's text stands for the value; compared by the value's type.

    A value that is no string, integer or boolean has no text.
    """
    if isinstance(value, str):
        return text == value
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    number = _INTEGER.fullmatch(text)
    if number is None or not isinstance(value, int | float):
        return False
    return int(number[1]) == value and abs(value) <= LARGEST_MIRRORED


# -- loopback --------------------------------------------------------------------------
# Hosts that lead only to this computer: for them http is as safe as https.

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "[::1]", "localhost"})
"""Their forms in URLs.  Programs may read other forms of them differently."""


def is_loopback_host(host: str | None) -> bool:
    """Whether a host, in lower case, is a loopback host.

    It may be in the form of `urlsplit`, without [].  The answer for None is False.
    """
    return host in LOOPBACK_HOSTS or f"[{host}]" in LOOPBACK_HOSTS
