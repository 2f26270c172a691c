"""Makes the request from a config and arguments, and content from the answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, unquote

from mcp_app.conf import MIB
from mcp_app.egress.requests import SiteAnswer, SiteRequest
from mcp_app.egress.resolving import Forbidden
from mcp_app.egress.sites import readings_of
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.errors import ExternalError
from mcp_app.kinds import placeholders
from mcp_app.kinds.http.config import (
    BRACKETS,
    COMMAS,
    PIPES,
    SEVERAL,
    SPACES,
    HttpCall,
    Pair,
    pairs_from_json,
    quoted_path,
)
from mcp_app.kinds.other_sites import IN_THREAD
from mcp_app.kinds.placeholders import fill_placeholders, value_as_text
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ParseError

MOST_BODY: Final = MIB
FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"

Values = Mapping[str, object]


def request_for(call: HttpCall, values: Values, *, idempotent: bool) -> SiteRequest:
    """Return the request for these arguments; raise `Forbidden`.

    A null value counts as not given, like a missing one.  Only in a JSON body it is
    sent as null.
    """
    present_values = {n: value for n, value in values.items() if value is not None}
    body, media_type = _encode_body(call, values, present_values)
    headers = [*_filled_headers(call.headers, present_values)]
    if media_type:
        headers.append(("Content-Type", media_type))
    return SiteRequest(
        method=call.method,
        path=_filled_path(call, present_values),
        query=_encode_pairs(call.query, present_values, call.site.secret_query),
        headers=headers,
        body=body,
        idempotent=idempotent or call.only_reads,
        log_path=call.path,
    )


def _filled_path(call: HttpCall, values: Values) -> str:
    """Return a path; each value is a segment of it, or a part of one.

    The last value may have several segments, if the call says so.  No other value may
    add a slash, also not after repeated decoding: another address would answer.
    """
    pieces = placeholders.split_pieces(call.path)
    # Even pieces are fixed text, odd ones are names of placeholders.
    names = pieces[1::2]
    pieces[0::2] = map(quoted_path, pieces[0::2])
    # Values that are not filled in yet are a letter: it adds no slash.
    pieces[1::2] = ["x"] * len(names)
    for index, name in enumerate(names):
        several = call.segments == SEVERAL and index == len(names) - 1
        value = ",".join(
            quote(value_as_text(each), safe="/" if several else "")
            for each in _flatten_value(values.get(name))
        )
        if not value:
            raise Forbidden(
                f"The value of {name}, which is part of the path, is empty."
            )
        # The value must not change the number of segments, however servers decode it.
        before = [len(segments) for segments in readings_of("".join(pieces))]
        pieces[2 * index + 1] = value
        after = [len(segments) for segments in readings_of("".join(pieces))]
        if not several and before != after:
            raise Forbidden(
                f"The value of {name} must be one segment of the path, such as 17 or"
                " a.txt: no slash and no backslash, not even as %2F or %5C."
            )
    return "".join(pieces)


def _flatten_value(value: object) -> list[object]:
    """Return the parts of a value in the style “simple” of OpenAPI."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    return [value]


def _quote_value(value: object) -> str:
    return quote(value_as_text(value), safe="")


def _filled_headers(
    pair_templates: Iterable[Pair], values: Values
) -> Iterator[tuple[str, str]]:
    for template in pair_templates:
        if placeholders.names_in_value(template.value) <= values.keys():
            if lone_name := placeholders.only_name(template.value):
                parts = map(value_as_text, _flatten_value(values[lone_name]))
                yield template.name, ",".join(parts)
            else:
                yield template.name, fill_placeholders(template.value, values)


def _encode_pairs(
    pair_templates: Collection[Pair], values: Values, secret: Collection[str] = ()
) -> str:
    """Return pairs in the form of a query or a form body (RFC 3986, section 3.4).

    Raises `Forbidden` if a member of an object has a name that the call itself sends.
    """
    reserved_names = {template.name for template in pair_templates} | {*secret}
    return "&".join(
        f"{name}={value}"
        for each in pair_templates
        for name, value in _encode_pair(each, values, reserved_names - {each.name})
    )


def _encode_pair(
    pair: Pair, values: Values, reserved_names: Collection[str]
) -> Iterable[tuple[str, str]]:
    if not placeholders.names_in_value(pair.value) <= values.keys():
        return ()
    name = quote(pair.name, safe="[]")
    lone_name = placeholders.only_name(pair.value)
    value = values[lone_name] if lone_name else fill_placeholders(pair.value, values)
    if isinstance(value, dict | list):
        members = [*_encode_members(name, value, pair.style)] if value else []
        for member, _value in members:
            if unquote(member) in reserved_names:
                raise Forbidden(
                    f"The value of {lone_name} has “{unquote(member)}”, which the call"
                    " itself sends."
                )
        return members
    return ((name, _quote_value(value)),)


_SEPARATORS: Final = {COMMAS: ",", SPACES: "%20", PIPES: "%7C"}


def _encode_members(
    name: str, value: dict[str, Any] | list[Any], style: str
) -> Iterable[tuple[str, str]]:
    if style == BRACKETS:
        return _encode_brackets(name, value)
    if style in _SEPARATORS:
        parts = map(_quote_value, _flatten_value(value))
        return ((name, _SEPARATORS[style].join(parts)),)
    if isinstance(value, list):
        return ((name, _quote_value(each)) for each in value)
    return ((_quote_value(key), _quote_value(each)) for key, each in value.items())


def _encode_brackets(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield pairs such as a[b]=, a[c][]= and a[d][0][e]=, which PHP, Rails, qs read."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _encode_brackets(f"{name}[{_quote_value(key)}]", each)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            # Without an index, two objects in a list would be read as one.
            number = index if isinstance(each, dict | list) else ""
            yield from _encode_brackets(f"{name}[{number}]", each)
    else:
        yield name, _quote_value(value)


def _encode_body(
    call: HttpCall, values: Values, present_values: Values
) -> tuple[bytes | None, str]:
    """Return a body and its type; no body if its only value was not given."""
    if call.body is None:
        return None, ""
    match call.body:
        case {"json": part}:
            value = _filled_or_absent(part, values)
            if value is _ABSENT:
                return None, ""
            body, media_type = jsonrpc.write(value), JSON
        case {"form": part}:
            form = _encode_pairs(pairs_from_json(part), present_values)
            body, media_type = form.encode(), FORM
        case _:
            body = str(fill_placeholders(call.body["text"], present_values)).encode()
            media_type = ""
    if len(body) > MOST_BODY:
        raise Forbidden(f"The body would be larger than {MOST_BODY:,} bytes.")
    return body, call.body.get("type", media_type)


_ABSENT: Final = object()
"""Stands for a value that was not given; None is sent as null."""


def _filled_or_absent(part: object, values: Values) -> object:
    """Return JSON with its placeholders filled in; a lone one becomes the value itself.

    Members and entries whose value was not given are left out.
    """
    if isinstance(part, str):
        if lone_name := placeholders.only_name(part):
            return values.get(lone_name, _ABSENT)
        return fill_placeholders(part, values)
    if isinstance(part, dict):
        members = {n: _filled_or_absent(each, values) for n, each in part.items()}
        return {name: each for name, each in members.items() if each is not _ABSENT}
    if isinstance(part, list):
        entries = (_filled_or_absent(each, values) for each in part)
        return [entry for entry in entries if entry is not _ABSENT]
    return part


# -- answer ----------------------------------------------------------------------------
# The answer of another site, converted into what clients get.

MAX_EXCERPT_LENGTH: Final = 500
"""Characters of a refusal that clients get."""
MAX_WAIT_S: Final = 3_600

_CHARSET: Final = re.compile(
    r"charset=\"?(?P<name>utf-8|utf-16(le|be)?|us-ascii|latin-?1"
    r"|iso-8859-(1[013-6]|[1-9])|windows-125[0-8]"
    r"|shift_jis|euc-jp|euc-kr|gbk|gb2312|gb18030|big5|koi8-[ru])\b",
    re.IGNORECASE | re.ASCII,
)
"""The encodings of the web.  Some other codecs of Python take minutes, or raise."""
_UNSEEN = re.compile(
    # Escape sequences of terminals, and control characters but tab and line feed.
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b."
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


@dataclass(frozen=True, slots=True)
class Media:
    """An image, a sound or other bytes."""

    body: bytes
    media_type: str


async def content_of(call: HttpCall, answer: SiteAnswer) -> object:
    """Return a JSON value, a text or a `Media`; None for an answer without a body.

    Raises `ExternalError` for JSON that cannot be read, or lacks a part that is wanted.
    """
    if not answer.body:
        return None
    media_type = answer.media_type
    if is_json_type(media_type):
        try:
            value = await _read_off_loop(_clean_json, answer)
        except ParseError:
            raise _shape_error(call, "is no JSON that can be read") from None
        return _select_result(call, value)
    if call.take or call.keep:
        raise _shape_error(call, "is no JSON")
    if media_type.startswith("text/"):
        return await _read_off_loop(_clean_text, answer)
    return Media(answer.body, media_type)


def is_json_type(media_type: str) -> bool:
    """Whether a media type is JSON, also by its suffix (RFC 6839, section 3.1)."""
    bare = media_type.partition(";")[0].strip().lower()
    return bare == "application/json" or bare.endswith("+json")


async def _read_off_loop(read: Callable[[SiteAnswer], Any], answer: SiteAnswer) -> Any:
    """Read an answer; a large one in a thread, so that it does not block the loop."""
    if len(answer.body) < IN_THREAD:
        return read(answer)
    return await asyncio.to_thread(read, answer)


def _clean_json(answer: SiteAnswer) -> object:
    return answer.secrets.blot(jsonrpc.read(answer.body))


def _clean_text(answer: SiteAnswer) -> str:
    match = _CHARSET.search(answer.headers.get("content-type", ""))
    text = answer.body.decode(match["name"] if match else "utf-8", "replace")
    return str(answer.secrets.blot(_UNSEEN.sub("", text.replace("\r\n", "\n"))))


def _shape_error(call: HttpCall, what: str) -> ExternalError:
    return ExternalError(f"The answer of {call.site.title} {what}.", Outcome.SHAPE)


def _select_result(call: HttpCall, value: object) -> object:
    try:
        value = _value_at_path(value, call.take) if call.take else value
    except LookupError:
        raise _shape_error(call, f"has no “{call.take}”") from None
    rows = value[: call.limit] if isinstance(value, list) else [value]
    entries, notes = [_pick_members(call, row) for row in rows], []
    if call.keep and any(rows) and not any(entries):
        entries, names = rows, ", ".join(call.keep)
        notes.append(f"None of {names} is there, so no member is left out.")
    if isinstance(value, list) and len(rows) < len(value):
        notes.append(f"These are the first {len(rows)} of {len(value)}.")
    result = entries if isinstance(value, list) else entries[0]
    return {"result": result, "note": " ".join(notes)} if notes else result


def _value_at_path(value: Any, path: str) -> object:
    for name in path.split("."):
        if isinstance(value, list) and name.isascii() and name.isdigit():
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value[name]
        else:
            raise LookupError(name)
    return value


def _pick_members(call: HttpCall, value: object) -> object:
    if not call.keep or not isinstance(value, dict):
        return value
    picked: dict[str, Any] = {}
    for path in call.keep:
        try:
            member = _value_at_path(value, path)
        except LookupError:
            continue
        *above, name = path.split(".")
        parent = picked
        for each in above:
            parent = parent.setdefault(each, {})
        parent[name] = member
    return picked


def refusal_error(
    call: HttpCall, answer: SiteAnswer, values: Mapping[str, object]
) -> ExternalError:
    """Return the error that a client gets for an answer without a success status."""
    status, title = answer.status, call.site.title
    template = call.errors.get(str(answer.status))
    if template is not None:
        message = str(fill_placeholders(template, values))
    elif status in _NO_KEY:
        message = (
            f"{title} did not accept this site's key. Do not retry; tell the user."
        )
    elif status == HTTPStatus.NOT_FOUND:
        message = f"{title} has nothing there."
    elif status == HTTPStatus.TOO_MANY_REQUESTS:
        after, later = answer.headers.get("retry-after", "").strip(), "later"
        if re.fullmatch("[0-9]{1,9}", after):
            later = f"in {min(int(after), MAX_WAIT_S)} seconds"
        message = f"{title} is busy. Try again {later}."
    elif status // 100 == CLIENT_ERROR:
        message = (
            f"{title} did not take the request ({status}). {_answer_excerpt(answer)}"
        )
    else:
        message = f"{title} failed ({status})."
    by_caller = status // 100 == CLIENT_ERROR and status not in _NOT_CALLERS
    outcome = Outcome.TOOL_ERROR if by_caller else Outcome.OTHER_SITE
    message = message.rstrip()
    detail = "" if by_caller else f"{status}: {message}"
    return ExternalError(message, outcome, detail=detail)


CLIENT_ERROR: Final = 4
"""The first digit of each status that blames the request."""
_NO_KEY: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_NOT_CALLERS: Final = (
    *_NO_KEY,
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
    HTTPStatus.TOO_MANY_REQUESTS,
)
"""Refusals that a caller cannot avoid by other values."""


def _answer_excerpt(answer: SiteAnswer) -> str:
    text = ""
    if len(answer.body) > IN_THREAD:
        return text
    if answer.media_type.startswith("text/"):
        text = _clean_text(answer)
    elif is_json_type(answer.media_type):
        with suppress(ParseError, ValueError):
            text = jsonrpc.write(_clean_json(answer)).decode()
    return " ".join(text.split())[:MAX_EXCERPT_LENGTH]
