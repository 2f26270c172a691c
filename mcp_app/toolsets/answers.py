"""Turns the answer of a view of the site into a tool's output or an error."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from http import HTTPStatus
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.messages import ERROR, get_messages
from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    TooManyFieldsSent,
)
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.html import strip_tags

from mcp_app.conf import mcp_settings
from mcp_app.interface.errors import ToolError
from mcp_app.interface.questions import ToolOutput
from mcp_app.kinds.query.kind import UNTRUSTED
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import (
    Block,
    EmbeddedResource,
    Image,
    ResourceContents,
    Text,
)
from mcp_app.protocol.errors import ParseError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.toolsets.site_views import Visit

MOST_ITEMS: Final = 50
"""The most items that an answer or an error lists."""
MAX_NAME_LENGTH: Final = 200
"""In characters.  Longer names that clients send are cut in messages."""
MAX_COMPARED: Final = 1_000
"""How many right names are compared with a wrong one."""
NOT_ALLOWED: Final = "You may not do this."
UNKNOWN: Final = "There is no such thing, or it is not yours."
DONE: Final = "Done."
_SENTENCES: Final = {
    401: NOT_ALLOWED,
    403: NOT_ALLOWED,
    404: UNKNOWN,
    405: "This cannot be done to it.",
    410: UNKNOWN,
    413: "The site takes no request as large as this one.",
}
_STATUSES: Final[Mapping[type[Exception], int]] = {
    PermissionDenied: 403,
    Http404: 404,
    RequestDataTooBig: 413,
    TooManyFieldsSent: 413,
}
"""The status of exceptions, whatever page the site makes of them."""
_SPACES: Final = re.compile(r"\s+")


def plain_text(value: object) -> str:
    """Return a text in one line; HTML without its tags."""
    text = str(value)
    if hasattr(value, "__html__"):
        text = html.unescape(strip_tags(text))
    return _SPACES.sub(" ", text).strip()


def known_item(what: str, name: str, items: Mapping[str, Any]) -> Any:
    """Return the item with this name, or raise a `ToolError` that lists all names."""
    if name in items:
        return items[name]
    shown = name[:MAX_NAME_LENGTH]
    near = get_close_matches(shown, islice(items, MAX_COMPARED), 3)
    names = ", ".join([*dict.fromkeys([*near, *items])][:MOST_ITEMS]) or "none"
    raise ToolError(f"There is no {what} “{shown}”; there is: {names}.")


def check_answer(visit: Visit) -> None:
    """Raise if a view did not do what was asked of it.

    A `ToolError` has a text for the model; any other exception is the view's own.
    """
    statuses = (s for kind, s in _STATUSES.items() if isinstance(visit.error, kind))
    status = int(next(statuses, visit.response.status_code))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise visit.error or RuntimeError(f"{visit.call.path} answered {status}.")
    if status >= HTTPStatus.BAD_REQUEST:
        raise ToolError(_refusal_text(visit, status))
    if visit.error is not None:
        raise visit.error
    if is_redirect(visit):
        path = redirect_path(visit)
        if path == resolve_url(settings.LOGIN_URL):
            raise ToolError(NOT_ALLOWED)
        if visit.call.method == "GET" or not visit.is_reached:
            text = f"The site wants something done in a browser first ({path})."
            raise ToolError(text)


def is_redirect(visit: Visit) -> bool:
    """Whether the site redirects to another address."""
    status: int = visit.response.status_code
    return HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST


def redirect_path(visit: Visit) -> str:
    """Return the path that the site redirects to."""
    path: str = urlsplit(visit.response.get("Location", "")).path
    return path


def _refusal_text(visit: Visit, status: int) -> str:
    response = visit.response
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        wait = response.get("Retry-After", "")
        return f"Try again in {wait} seconds." if wait else "Try again later."
    lines = _problem_lines(_json_body(visit)) if _is_json(response) else ()
    usual = _SENTENCES.get(status, f"The site refused this request ({status}).")
    # For missing rights, the site's own text is for people who can log in.
    lacks_right = usual == NOT_ALLOWED
    return usual if lacks_right else "\n".join(lines) or usual


def _problem_lines(value: Any, path: str = "") -> Iterator[str]:
    """Yield the error messages of an API, each with the name of its field."""
    if isinstance(value, dict):
        for name, each in value.items():
            inner = "" if name in ("detail", "non_field_errors") else name
            yield from _problem_lines(each, ".".join(filter(None, [path, inner])))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            inner = f"{path}[{index}]" if isinstance(each, dict) else path
            yield from _problem_lines(each, inner)
    else:
        yield f"{path}: {value}" if path else str(value)


def object_output(value: JsonObject) -> ToolOutput:
    """Return an object as an output; its texts count as untrusted."""
    return ToolOutput((), structured=value, meta=UNTRUSTED)


def message_output(visit: Visit, usual: str = DONE, **members: object) -> ToolOutput:
    """Return the messages of the site after it did something, and further members."""
    messages = [*get_messages(visit.request)]
    texts = [plain_text(message.message) for message in messages] or [usual]
    if any(message.level >= ERROR for message in messages):
        return ToolOutput([Text("\n".join(texts))], is_error=True)
    return object_output({**members, "messages": texts})


def answer_output(visit: Visit) -> ToolOutput:
    """Return the output for an answer that `check_answer` accepted."""
    if is_redirect(visit):
        # This is no error: the call is done, and the model must not try again.
        path = redirect_path(visit)
        usual = f"The site goes on at {path}, in a browser."
        return message_output(visit, usual, see=path)
    if _is_json(visit.response) and (body := _json_body(visit)) is not None:
        return object_output(body if isinstance(body, dict) else {"result": body})
    return ToolOutput((_body_block(visit),), meta=UNTRUSTED)


def _body_block(visit: Visit) -> Block:
    content, kind = body_of(visit), _media_type(visit.response)
    if not content:
        return Text(DONE)
    is_file = visit.response.get("Content-Disposition", "").startswith("attachment")
    if kind in ("text/html", "application/xhtml+xml") and not is_file:
        raise ToolError(f"{visit.call.path} answers with a page, which is not read.")
    if kind.startswith("text/") or _is_json(visit.response):
        return Text(content.decode(visit.response.charset, "replace"))
    if kind.startswith("image/"):
        return Image(content, kind)
    uri = f"file://{visit.call.path}"
    return EmbeddedResource(ResourceContents(uri=uri, blob=content, mime_type=kind))


def body_of(visit: Visit) -> bytes:
    """Return the body; raise if it is larger than a result may be."""
    response: Any = visit.response
    if getattr(response, "is_async", False):
        raise ToolError(f"{visit.call.path} answers with a stream that has no end.")
    max_bytes, size, parts = mcp_settings.limits.tool_result, 0, []
    for part in response if response.streaming else [response.content]:
        size += len(part)
        if size > max_bytes:
            raise ToolError(
                f"The answer has more than {max_bytes} bytes. Ask for less, such as a"
                " smaller page."
            )
        parts.append(bytes(part))
    return b"".join(parts)


def _json_body(visit: Visit) -> Any:
    """Return the value of a JSON body; None if it is empty or broken."""
    content = body_of(visit)
    try:
        return jsonrpc.read(content) if content else None
    except ParseError:
        return None


def _is_json(response: HttpResponseBase) -> bool:
    kind = _media_type(response)
    return kind == "application/json" or kind.endswith("+json")


def _media_type(response: HttpResponseBase) -> str:
    return str(response.get("Content-Type", "")).partition(";")[0].strip().lower()
