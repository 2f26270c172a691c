"""From the answer of another site to what clients get."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from mcp_app.conf import KIB
from mcp_app.egress.requests import SiteAnswer
from mcp_app.interface.errors import ExternalError
from mcp_app.interface.outcomes import Outcome
from mcp_app.kinds import placeholders
from mcp_app.kinds.http.config import HttpCall
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ParseError

IN_THREAD: Final = 64 * KIB
"""Bytes of JSON from which on the loop does not read it."""
SHOWN: Final = 500
"""Characters of a refusal that clients read."""
LONGEST_WAIT_S: Final = 3_600

_CHARSET: Final = re.compile(
    r"charset=\"?(?P<name>utf-8|utf-16(le|be)?|us-ascii|latin-?1"
    r"|iso-8859-(1[013-6]|[1-9])|windows-125[0-8]"
    r"|shift_jis|euc-jp|euc-kr|gbk|gb2312|gb18030|big5|koi8-[ru])\b",
    re.IGNORECASE | re.ASCII,
)
"""Those of the web.  Python has codecs that take minutes, and some that raise."""
_UNSEEN = re.compile(
    # Sequences of terminals, then control characters but tab and line feed.
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

    Raises `ExternalError` for JSON that cannot be read, or lacks what is to be taken.
    """
    if not answer.body:
        return None
    media_type = answer.media_type
    if is_json(media_type):
        return _chosen(call, await _json(call, answer))
    if call.take or call.keep:
        raise _shape(call, "is no JSON")
    if media_type.startswith("text/"):
        return await _aside(_clean_text, answer)
    return Media(answer.body, media_type)


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON, also by its suffix (RFC 6839, section 3.1)."""
    return media_type == "application/json" or media_type.endswith("+json")


async def _json(call: HttpCall, answer: SiteAnswer) -> object:
    try:
        return await _aside(_clean_json, answer)
    except ParseError:
        raise _shape(call, "is no JSON that can be read") from None


async def _aside(read: Callable[[SiteAnswer], Any], answer: SiteAnswer) -> Any:
    """Read a large answer in a thread: the loop has others to serve."""
    if len(answer.body) < IN_THREAD:
        return read(answer)
    return await asyncio.to_thread(read, answer)


def _clean_json(answer: SiteAnswer) -> object:
    return answer.secrets.blot(jsonrpc.read(answer.body))


def _clean_text(answer: SiteAnswer) -> str:
    match = _CHARSET.search(answer.headers.get("content-type", ""))
    text = answer.body.decode(match["name"] if match else "utf-8", "replace")
    return str(answer.secrets.blot(_UNSEEN.sub("", text.replace("\r\n", "\n"))))


def _shape(call: HttpCall, what: str) -> ExternalError:
    return ExternalError(f"The answer of {call.site.title} {what}.", Outcome.SHAPE)


def _chosen(call: HttpCall, value: object) -> object:
    """Return what `take`, `keep` and `most` leave of a value."""
    value = _taken(call, value) if call.take else value
    if isinstance(value, list):
        count = len(value)
        value = value[: call.most] if call.most else value
        kept = [_kept(call, each) for each in value]
        if len(kept) == count:
            return kept
        note = f"These are the first {len(kept)} of {count}."
        return {"result": kept, "note": note}
    return _kept(call, value)


def _taken(call: HttpCall, value: object) -> object:
    try:
        return _at(value, call.take)
    except LookupError:
        raise _shape(call, f"has no “{call.take}”") from None


def _at(value: Any, path: str) -> object:
    """Return what a dotted path leads to; raise `LookupError`."""
    for name in path.split("."):
        if isinstance(value, list) and name.isascii() and name.isdigit():
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value[name]
        else:
            raise LookupError(name)
    return value


def _kept(call: HttpCall, value: object) -> object:
    if not call.keep or not isinstance(value, dict):
        return value
    left: dict[str, Any] = {}
    for path in call.keep:
        try:
            member = _at(value, path)
        except LookupError:
            continue
        *above, name = path.split(".")
        place = left
        for each in above:
            place = place.setdefault(each, {})
        place[name] = member
    return left


def refusal(
    call: HttpCall, answer: SiteAnswer, values: Mapping[str, object]
) -> ExternalError:
    """Return what a client reads of an answer that is no success."""
    status, title = answer.status, call.site.title
    own = call.errors.get(str(answer.status))
    if own is not None:
        said = str(placeholders.fill(own, values))
    elif status in _NO_KEY:
        said = f"{title} did not accept this site's key. Do not retry; tell the user."
    elif status == HTTPStatus.NOT_FOUND:
        said = f"{title} has nothing there."
    elif status == HTTPStatus.TOO_MANY_REQUESTS:
        said = f"{title} is busy. Try again {_when(answer)}."
    elif status // 100 == CLIENT_ERROR:
        said = f"{title} did not take the request ({status}). {_excerpt(answer)}"
    else:
        said = f"{title} failed ({status})."
    return ExternalError(said.rstrip(), Outcome.OTHER_SITE, f"{status}: {said}")


CLIENT_ERROR: Final = 4
"""The first digit of a status."""
_NO_KEY: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


def _when(answer: SiteAnswer) -> str:
    after = answer.headers.get("retry-after", "").strip()
    if re.fullmatch("[0-9]{1,9}", after):
        return f"in {min(int(after), LONGEST_WAIT_S)} seconds"
    return "later"


def _excerpt(answer: SiteAnswer) -> str:
    """Return the beginning of what a site says about a request, as one line."""
    media_type = answer.media_type
    is_text = media_type.startswith("text/")
    if len(answer.body) > IN_THREAD or not (is_text or is_json(media_type)):
        return ""
    try:
        text = (
            _clean_text(answer)
            if is_text
            else jsonrpc.write(_clean_json(answer)).decode()
        )
    except (ParseError, ValueError):
        return ""
    return " ".join(text.split())[:SHOWN]
