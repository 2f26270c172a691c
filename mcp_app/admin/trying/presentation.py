"""The result of a trial, in words and parts that a page can show.

Nothing in it is markup: texts are shown as texts. A browser draws an image or plays a
sound only if its first bytes prove the type.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.template.defaultfilters import filesizeformat
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.admin.calls.outcome_help import meaning_of, outcome_look
from mcp_app.admin.calls.presentation import milliseconds_text
from mcp_app.admin.page.result import ResultTable, result_table
from mcp_app.catalog.definition_texts import estimate_tokens
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models.fields import parse_json
from mcp_app.protocol import jsonrpc, schemas
from mcp_app.protocol.json_types import JsonObject
from mcp_app.transports.in_process import Message
from mcp_app.workbench.trying.trial import Plan, Trial, run_trial

MAX_TEXT_LENGTH: Final = 64 * 1024
"""Characters of a text that the page shows; the download has all."""
LARGEST_DRAWN: Final = 2 * 1024 * 1024
MAX_LINES: Final = 200
"""Notifications that the page shows."""
DRAWN_MEDIA: Final[Mapping[str, tuple[bytes, ...]]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "audio/wav": (b"RIFF",),
    "audio/mpeg": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
    "audio/ogg": (b"OggS",),
    "audio/flac": (b"fLaC",),
}
"""The first bytes of the images and sounds that the page shows."""
REFUSED: Final[Mapping[int, Label]] = {
    400: gettext_lazy("Clients get 400 here: the request is not valid."),
    401: gettext_lazy("Clients get 401 here: the server asks who they are."),
    403: gettext_lazy("Clients get 403 here: they may not use this server."),
    404: gettext_lazy("Clients get 404 here: there is no such server."),
    413: gettext_lazy("Clients get 413 here: the request is too large."),
    429: gettext_lazy("Clients get 429 here: that was too often."),
    503: gettext_lazy("Clients get 503 here: the server does not serve now."),
}


@dataclass(frozen=True, slots=True, repr=False)
class Part:
    """A part of the answer: a text, or an image or sound at the data URI `source`.

    `kind` is "text", "image" or "audio".
    """

    kind: str
    title: str
    text: str = ""
    source: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Presentation:
    """A trial as the page shows it; `look` is the CSS class of its mark."""

    label: Label
    look: str
    details: Sequence[str] = ()
    sentence: str = ""
    table: ResultTable | None = None
    parts: Sequence[Part] = ()
    json: Part | None = None
    """The answer as JSON, which the page folds; None if the answer is not JSON."""
    lines: Sequence[str] = ()
    more_lines: int = 0
    fits: bool | None = None
    """Whether the structured part fits the schema; None if one of them is missing."""
    download: str = ""
    undone: Sequence[str] = ()
    """Sentences on whether the changes of a dry run were undone."""
    is_undone: bool = True


def present_trial(trial: Trial, definition: object) -> Presentation:
    """Return what the page shows of a trial."""
    if trial.refused or trial.reason:
        label = REFUSED.get(trial.refused, gettext_lazy("It cannot run."))
        reason = visible(trial.reason, None)
        return Presentation(label=label, look="bad", sentence=reason)
    messages = (message for message in trial.messages if not message.from_client)
    lines = [*filter(None, map(notification_line, messages))]
    structured, dry = trial.result.get("structuredContent"), trial.dry_run
    schema = getattr(definition, "output_schema", None)
    fits = None
    if schema is not None and structured is not None:
        fits = schemas.compile_schema(schema).is_valid(structured)
    parts, value = split_answer(trial.result)
    download = b64encode(jsonrpc.pretty_text(trial.answer).encode()).decode()
    return Presentation(
        label=meaning_of(trial.outcome).label,
        look=outcome_look(trial.outcome),
        details=[*_trial_details(trial)],
        sentence=_sentence_about(trial),
        table=result_table(value),
        parts=parts,
        json=None if value is None else _text_part("JSON", jsonrpc.pretty_text(value)),
        lines=lines[:MAX_LINES],
        more_lines=max(0, len(lines) - MAX_LINES),
        fits=fits,
        download=f"data:application/octet-stream;base64,{download}",
        undone=() if dry is None else [visible(each, None) for each in dry.sentences()],
        is_undone=dry is None or dry.is_all_undone,
    )


def _trial_details(trial: Trial) -> Iterator[str]:
    yield milliseconds_text(round(trial.took_ms))
    yield filesizeformat(trial.size)
    size = estimate_tokens(json.dumps(trial.result, ensure_ascii=False))
    yield _("≈ %(count)d tokens") % {"count": size}
    if trial.dry_run is not None:
        count = trial.dry_run.statements
        text = ngettext("%(count)d database query", "%(count)d database queries", count)
        yield text % {"count": count}


def _sentence_about(trial: Trial) -> str:
    """Say what failed, or how many events the person would have received."""
    if trial.failure:
        sentence = _("Error number %(number)s. The server's log has the details.")
        return sentence % {"number": visible(trial.failure)}
    message = visible(str(trial.error.get("message", "")), None)
    if message or "events" not in trial.result:
        return message
    if not trial.occurrences:
        return _("Nothing has happened yet. Let it happen once, then press Run again.")
    sentence = _("Of the last %(count)d that happened, %(told)d would be told.")
    return sentence % {"count": trial.occurrences, "told": len(trial.result["events"])}


# -- the parts ----------------------------------------------------------------------


def split_answer(result: JsonObject) -> tuple[Sequence[Part], object]:
    """Return the readable parts of a result, and its JSON; None if it has no JSON.

    A text that says the same as the JSON is left out.
    """
    value = result.get("structuredContent")
    if "events" in result:
        events = _json_objects(result["events"])
        rows = [{"time": event["timestamp"], **event["data"]} for event in events]
        return (), rows or None
    blocks = _json_objects(result.get("content"))
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    if value is None and len(texts) == len(blocks) == 1:
        value = _read_object(texts[0])
    if value is not None:
        blocks = [block for block in blocks if _read_object(block.get("text")) != value]
    return [*parts_of({**result, "content": blocks})], value


def _read_object(text: object) -> object:
    """Parse a text as JSON; return None for anything but an object or a list."""
    with suppress(ValueError):
        value = parse_json(str(text))
        return value if isinstance(value, dict | list) else None
    return None


def parts_of(result: JsonObject) -> Iterator[Part]:
    """Yield the parts of the result of a tool, a resource or a prompt."""
    for block in _json_objects(result.get("content")):
        yield _block_part(block)
    for contents in _json_objects(result.get("contents")):
        yield _contents_part(contents)
    for message in _json_objects(result.get("messages")):
        for part in map(_block_part, _json_objects(message.get("content"))):
            title = f"{visible(str(message.get('role')))}: {part.title}"
            yield Part(part.kind, title, part.text, part.source, part.note)


def _json_objects(value: object) -> list[JsonObject]:
    listed = value if isinstance(value, list) else [value]
    return [each for each in listed if isinstance(each, dict)]


def _block_part(block: JsonObject) -> Part:
    match block.get("type"):
        case "text":
            return _text_part(_("Text"), str(block.get("text", "")))
        case "image" | "audio" as kind:
            return _media_part(kind, block)
        case "resource":
            return _contents_part(block.get("resource", {}))
        case "resource_link":
            uri = str(block.get("uri", ""))
            host = uri_host(uri)
            # People look at the host first.
            return _text_part(_("Link"), f"{uri}\n({host})" if host else uri)
    return _text_part(_("Content"), jsonrpc.pretty_text(block))


def _contents_part(contents: JsonObject) -> Part:
    uri = visible(str(contents.get("uri", "")))
    if "text" in contents:
        return _text_part(_("Content of %(uri)s") % {"uri": uri}, str(contents["text"]))
    mime = str(contents.get("mimeType", ""))
    kind = "audio" if mime.startswith("audio/") else "image"
    return _media_part(kind, {"data": contents.get("blob", ""), "mimeType": mime}, uri)


def _text_part(title: str, text: str) -> Part:
    cut = text[:MAX_TEXT_LENGTH]
    note = ""
    if len(text) > MAX_TEXT_LENGTH:
        wording = _("The first %(shown)d of %(count)d characters.")
        note = wording % {"shown": MAX_TEXT_LENGTH, "count": len(text)}
    return Part("text", title, visible(cut, None), note=note)


def uri_host(uri: str) -> str:
    """Return the host of an address, with user and port; "" if it names none."""
    try:
        return urlsplit(uri).netloc
    except ValueError:
        return ""


def _media_part(kind: str, block: JsonObject, uri: str = "") -> Part:
    """Return an image or sound to draw, or a text if the page cannot show it."""
    mime = str(block.get("mimeType", ""))
    try:
        content = b64decode(str(block.get("data", "")), validate=True)
    except (Error, ValueError):
        return _text_part(_("Content"), _("This is not base64."))
    label = uri or (_("Image") if kind == "image" else _("Sound"))
    title = f"{label}: {visible(mime[:100])}, {filesizeformat(len(content))}"
    # For an unknown type, `startswith(())` is False.
    is_proven = mime.startswith(kind) and content.startswith(DRAWN_MEDIA.get(mime, ()))
    if not is_proven or len(content) > LARGEST_DRAWN:
        return Part("text", title, _("The page does not show this. Download it."))
    source = f"data:{mime};base64,{b64encode(content).decode()}"
    return Part(kind, title, source=source)


# -- notifications ------------------------------------------------------------------


def notification_line(message: Message) -> str:
    """Return a notification of the server as a line; "" for any other message."""
    value: dict[str, Any] = json.loads(message.text)
    params = value.get("params", {})
    if "id" in value:
        return ""
    match value.get("method"):
        case "notifications/progress":
            line, total = f"progress {params.get('progress')}", params.get("total")
            line += "" if total is None else f" of {total}"
            return visible(f"{line} {params.get('message', '')}".strip())
        case "notifications/message":
            data = params.get("data")
            text = data if isinstance(data, str) else json.dumps(data)
            return visible(f"log {params.get('level')}: {text}"[:MAX_TEXT_LENGTH])
        case str(method):
            return visible(f"{method} {json.dumps(params)}"[:MAX_TEXT_LENGTH])
    return ""


# -- live ------------------------------------------------------------------------------
# A trial whose lines are shown while it runs: JSON objects, one in each line.
#
# Only for pages with a script, under ASGI.  Under WSGI Django would run the generator
# on a loop of its own.

CONTENT_TYPE: Final = "application/x-ndjson"
JsonPart: TypeAlias = dict[str, str]


def is_wanted(request: HttpRequest) -> bool:
    """Return whether the page accepts a stream of lines, and the server can send it."""
    accepted = request.headers.get("Accept", "")
    return isinstance(request, ASGIRequest) and CONTENT_TYPE in accepted


class TrialLines:
    """Yields a line for each notification, then the `part` that shows the result.

    The call begins with the first line. That line has the `ticket` of the next run, so
    that a user who stops waiting can start again.  Closing the iterator cancels the
    call. So does `close`, which Django calls when the response is over: if the browser
    leaves while a line is sent, Django does not close the iterator.
    """

    def __init__(
        self, plan: Plan, ticket: str, part: Callable[[Trial], JsonPart]
    ) -> None:
        self._plan = plan
        self._ticket = ticket
        self._part = part
        self._language = translation.get_language()
        self._task: asyncio.Task[Trial] | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        messages: asyncio.Queue[Message | None] = asyncio.Queue()
        self._task = task = asyncio.create_task(
            run_trial(self._plan, messages.put_nowait)
        )
        task.add_done_callback(lambda _: messages.put_nowait(None))
        lines_left = MAX_LINES
        try:
            yield _json_line({"to": "begun", "once": self._ticket})
            while (message := await messages.get()) is not None:
                has_room = lines_left and not message.from_client
                if has_room and (text := notification_line(message)):
                    lines_left -= 1
                    yield _json_line({"to": "along", "text": text})
            if not task.cancelled():
                with translation.override(self._language):
                    line = _json_line({"to": "result", **self._part(task.result())})
                yield line
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def close(self) -> None:
        """Cancel the call, if it still runs; callable from any thread."""
        if self._task is not None and not self._task.done():
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)


def streaming_response(lines: TrialLines) -> StreamingHttpResponse:
    """Return a response that tells proxies not to buffer, compress or store it."""
    headers = {
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
        "Content-Encoding": "identity",
    }
    return StreamingHttpResponse(lines, content_type=CONTENT_TYPE, headers=headers)


def _json_line(value: JsonPart) -> bytes:
    return jsonrpc.write(value) + b"\n"
