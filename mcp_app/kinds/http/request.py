"""From a config and the arguments of a call to the request that is sent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from mcp_app.conf import MIB
from mcp_app.egress.errors import Forbidden
from mcp_app.egress.requests import SiteRequest
from mcp_app.egress.sites import readings_of
from mcp_app.kinds import placeholders
from mcp_app.kinds.http.config import HttpCall, Pair, pairs, quoted_path
from mcp_app.kinds.http.schema import BRACKETS, COMMAS, PIPES, REPEAT, SEVERAL, SPACES
from mcp_app.kinds.placeholders import as_text
from mcp_app.protocol import jsonrpc

MOST_BODY: Final = MIB
FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"

Values = Mapping[str, object]


def request_for(call: HttpCall, values: Values, *, idempotent: bool) -> SiteRequest:
    """Return the request for these arguments; raise `Forbidden`.

    A value that is missing was not given, nor was one that is null: only in JSON it is
    null.
    """
    given = {name: value for name, value in values.items() if value is not None}
    body, media_type = _body(call, values, given)
    headers = [*_headers(call.headers, given)]
    if media_type:
        headers.append(("Content-Type", media_type))
    return SiteRequest(
        method=call.method,
        path=_path(call, given),
        query=_encoded(call.query, given, call.site.secret_query),
        headers=headers,
        body=body,
        idempotent=idempotent or call.only_reads,
        log_path=call.path,
    )


def _path(call: HttpCall, given: Values) -> str:
    """Return a path; each value is a segment of it, or a part of one.

    The last value may have several segments, if the call says so.  Of all others none
    adds a slash, however often a server decodes the path: another address would answer.
    """
    pieces = placeholders.pieces(call.path)
    names = pieces[1::2]
    pieces[0::2] = map(quoted_path, pieces[0::2])
    # What stands for values that are not filled in yet: a letter adds no slash.
    pieces[1::2] = ["x"] * len(names)
    for index, name in enumerate(names):
        several = call.segments == SEVERAL and index == len(names) - 1
        value = ",".join(
            quote(as_text(each), safe="/" if several else "")
            for each in _flat(given.get(name))
        )
        if not value:
            raise Forbidden(
                f"The value of {name}, which is part of the path, is empty."
            )
        before = map(len, readings_of("".join(pieces)))
        pieces[2 * index + 1] = value
        after = map(len, readings_of("".join(pieces)))
        if not several and [*before] != [*after]:
            raise Forbidden(
                f"The value of {name} must be one segment of the path, such as 17 or"
                " a.txt: no slash and no backslash, not even as %2F or %5C."
            )
    return "".join(pieces)


def _flat(value: object) -> list[object]:
    """Return the parts of a value in the style “simple” of OpenAPI."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    return [value]


def _quoted(value: object) -> str:
    return quote(as_text(value), safe="")


def _headers(given_pairs: Iterable[Pair], given: Values) -> Iterator[tuple[str, str]]:
    for each in given_pairs:
        if placeholders.names_in(each.value) <= given.keys():
            alone = placeholders.only_name(each.value)
            if alone:
                yield each.name, ",".join(map(as_text, _flat(given[alone])))
            else:
                yield each.name, placeholders.fill(each.value, given)


def _encoded(
    given_pairs: Collection[Pair], given: Values, secret: Collection[str] = ()
) -> str:
    """Return pairs as a query, or a form, has them (RFC 3986, section 3.4).

    The members of an object must not be what others send; raise `Forbidden`.
    """
    taken = {each.name for each in given_pairs} | {*secret}
    return "&".join(
        f"{name}={value}"
        for each in given_pairs
        for name, value in _pair(each, given, taken - {each.name})
    )


def _pair(
    pair: Pair, given: Values, taken: Collection[str]
) -> Iterable[tuple[str, str]]:
    names = placeholders.names_in(pair.value)
    if not names <= given.keys():
        return ()
    name = quote(pair.name, safe="[]")
    alone = placeholders.only_name(pair.value)
    value = given[alone] if alone else placeholders.fill(pair.value, given)
    if isinstance(value, list):
        return _list(name, value, pair.style) if value else ()
    if isinstance(value, dict):
        members = [*_object(name, value, pair.style)] if value else []
        for member, _value in members:
            if unquote(member) in taken:
                raise Forbidden(
                    f"The value of {alone} has “{unquote(member)}”, which the call"
                    " itself sends."
                )
        return members
    return ((name, _quoted(value)),)


_SEPARATORS: Final = {COMMAS: ",", SPACES: "%20", PIPES: "%7C"}


def _list(name: str, value: list[Any], style: str) -> Iterable[tuple[str, str]]:
    if style in _SEPARATORS:
        return ((name, _SEPARATORS[style].join(map(_quoted, value))),)
    repeated = f"{name}[]" if style == BRACKETS else name
    return ((repeated, _quoted(each)) for each in value)


def _object(name: str, value: dict[str, Any], style: str) -> Iterable[tuple[str, str]]:
    if style == REPEAT:
        return ((_quoted(key), _quoted(each)) for key, each in value.items())
    if style == BRACKETS:
        return (
            (f"{name}[{_quoted(key)}]", _quoted(each)) for key, each in value.items()
        )
    return ((name, _SEPARATORS[style].join(map(_quoted, _flat(value)))),)


def _body(call: HttpCall, values: Values, given: Values) -> tuple[bytes | None, str]:
    """Return a body and its type; a body whose only value was not given is none."""
    if call.body is None:
        return None, ""
    ((kind, part),) = ((name, call.body[name]) for name in _BODIES if name in call.body)
    body = _BODIES[kind](part, values if kind == "json" else given)
    if body is None:
        return None, ""
    if len(body) > MOST_BODY:
        raise Forbidden(f"The body would be larger than {MOST_BODY:,} bytes.")
    return body, call.body.get("type", _TYPES.get(kind, ""))


def _json(part: object, values: Values) -> bytes | None:
    value = _filled_or_absent(part, values)
    return None if value is _ABSENT else jsonrpc.write(value)


def _form(part: Any, given: Values) -> bytes:
    return _encoded(pairs(part), given).encode()


def _text(part: str, given: Values) -> bytes:
    return str(placeholders.fill(part, given)).encode()


_BODIES: Final[Mapping[str, Callable[[Any, Values], bytes | None]]] = {
    "json": _json,
    "form": _form,
    "text": _text,
}
_TYPES: Final = {"json": JSON, "form": FORM}

_ABSENT: Final = object()


def _filled_or_absent(part: object, given: Values) -> object:
    """Return a JSON value filled in: what is one placeholder becomes its value.

    Members and entries whose value was not given are left out.
    """
    if isinstance(part, str):
        alone = placeholders.only_name(part)
        if alone:
            return given.get(alone, _ABSENT)
        return placeholders.fill(part, given)
    if isinstance(part, dict):
        members = (
            (name, _filled_or_absent(each, given)) for name, each in part.items()
        )
        return {name: each for name, each in members if each is not _ABSENT}
    if isinstance(part, list):
        entries = (_filled_or_absent(each, given) for each in part)
        return [each for each in entries if each is not _ABSENT]
    return part
