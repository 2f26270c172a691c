"""What a page shows of an answer: texts, and what is an image or sound for sure."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.test import AsyncClient
from django.utils import translation

from mcp_app import Context
from mcp_app.admin.trying.presentation import (
    LARGEST_DRAWN,
    MAX_LINES,
    MAX_TEXT_LENGTH,
    Part,
    Presentation,
    TrialLines,
    notification_line,
    parts_of,
    present_trial,
    uri_host,
)
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.models import Tool
from mcp_app.process.runtime import Process
from mcp_app.transports.in_process import Message
from mcp_app.workbench.trying.dry_run_outcome import DryRunOutcome
from mcp_app.workbench.trying.trial import Trial
from tests.admin.trying.conftest import Offer
from tests.admin.trying.console import typed
from tests.audit.reading import kept
from tests.drill.contents import PNG
from tests.scripting import STATEFUL, STATELESS
from tests.serving import PATIENCE_S
from tests.workbench.trying.test_trial import plan_of

EVIL: Final = (
    '<script>alert(1)</script><img src=x onerror="alert(1)">',
    "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    "\x1b[31mred\x1b[0m",
    "admin\u202etxt.exe",
    "[click](javascript:alert(1)) **bold**",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "\"'><b>",
    "http://[",
)
SVG: Final = b64encode(EVIL[1].encode()).decode()


def trial(result: dict[str, Any] | None = None, **more: Any) -> Trial:
    answer = {"result": result} if result is not None else {}
    return Trial(**{"answer": answer, **more})


def html(value: Presentation) -> str:
    context = {"opts": Tool._meta, "shown": value, "forms": []}
    return render_to_string("admin/mcp_app/includes/try_result.html", context)


def blocks(text: str) -> list[dict[str, Any]]:
    """Return a block of each type with a text in each of its members."""
    resource = {"uri": text, "mimeType": text, "text": text}
    return [
        {"type": "text", "text": text},
        {"type": "image", "data": SVG, "mimeType": text},
        {"type": "audio", "data": text, "mimeType": text},
        {"type": "resource", "resource": resource},
        {"type": "resource", "resource": {**resource, "text": None, "blob": text}},
        {"type": "resource_link", "uri": text, "name": text, "description": text},
        {"type": text, "anything": text},
    ]


@pytest.mark.parametrize("text", EVIL)
def test_nothing_of_an_answer_is_markup(text: str) -> None:
    everywhere = {
        "content": blocks(text),
        "contents": [{"uri": text, "text": text}, {"uri": text, "blob": SVG}],
        "messages": [{"role": text, "content": each} for each in blocks(text)],
        "structuredContent": {text: text},
        "completion": {"values": [text]},
    }
    said = {"message": text, "progress": 1, "level": text, "data": text}
    lines = [
        Message(False, json.dumps({"method": method, "params": said}).encode())
        for method in ("notifications/progress", "notifications/message", text)
    ]
    told = present_trial(trial(everywhere, messages=tuple(lines)), None)
    error = present_trial(trial(answer={"error": {"message": text}}), None)
    away = present_trial(trial(refused=403, reason=text), None)
    for page in map(html, (told, error, away)):
        for part in ("<script", "<svg", "<img", "<audio", "<b>", "\x1b", "\u202e"):
            assert part not in page
        for part in ('href="javascript:', "href='", 'src="'):
            assert part not in page
        links = page.count("href=")
        assert links == page.count('href="data:application/octet-stream;base64,')


def media(content: bytes, mime: str, kind: str = "image") -> Part:
    data = b64encode(content).decode()
    [part] = parts_of({"content": [{"type": kind, "data": data, "mimeType": mime}]})
    return part


def test_an_image_is_drawn_if_its_first_bytes_say_so() -> None:
    kinds = {
        "image/png": b64decode(PNG),
        "image/jpeg": b"\xff\xd8\xff\xe0",
        "image/gif": b"GIF89a",
        "image/webp": b"RIFF\0\0\0\0WEBP",
    }
    sounds = {
        "audio/wav": b"RIFF\0\0\0\0WAVE",
        "audio/mpeg": b"ID3",
        "audio/ogg": b"OggS",
    }
    for kind, contents in (("image", kinds), ("audio", sounds)):
        for mime, content in contents.items():
            data = b64encode(content).decode()
            part = media(content, mime, kind)
            assert (part.kind, part.source) == (kind, f"data:{mime};base64,{data}")
            assert part.title.endswith(f": {mime}, {filesizeformat(len(content))}")
            blob = {"uri": "x:y", "blob": data, "mimeType": mime}
            [part] = parts_of({"contents": [blob]})
            assert part.kind == kind
            assert part.title.startswith("x:y: ")


@pytest.mark.parametrize(
    "mime",
    [
        "image/svg+xml",
        "text/html",
        "image/png; charset=utf-8",
        'image/png"><script>',
        "image/png\r\nX: y",
        "IMAGE/PNG",
        "",
    ],
)
@pytest.mark.parametrize("content", [b64decode(PNG), EVIL[1].encode(), b""])
def test_what_is_no_image_for_sure_is_not_drawn(mime: str, content: bytes) -> None:
    for kind in ("image", "audio"):
        part = media(content, mime, kind)
        assert (part.kind, part.source) == ("text", "")
        assert part.text == "The page does not show this. Download it."


def test_an_image_that_is_none() -> None:
    large = b64decode(PNG) + bytes(LARGEST_DRAWN)
    for content in (EVIL[1].encode(), b"GIF89", large):
        assert media(content, "image/png").kind == "text"
    [part] = parts_of({"content": {"type": "image", "data": "no base64!"}})
    assert part.text == "This is not base64."


def test_a_long_text_is_cut_and_the_download_has_all() -> None:
    text = "ä" * 500_000
    told = present_trial(trial({"content": [{"type": "text", "text": text}]}), None)
    [part] = told.parts
    assert len(part.text) == MAX_TEXT_LENGTH
    assert part.note == f"The first {MAX_TEXT_LENGTH} of 500000 characters."
    kind, _, data = told.download.partition(",")
    assert kind == "data:application/octet-stream;base64"
    answer = json.loads(b64decode(data))
    assert answer["result"]["content"][0]["text"] == text


def test_how_it_ended_how_long_it_took_and_how_large_it_is() -> None:
    told = present_trial(trial({}, took_ms=12.4, size=2_048), None)
    assert (str(told.label), told.look) == ("Answered", "good")
    assert told.details[:2] == ["12 ms", "2.0\xa0KB"]


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
def test_who_is_turned_away_reads_what_clients_get(status: int) -> None:
    told = present_trial(trial(refused=status, reason="Because."), None)
    assert str(told.label).startswith(f"Clients get {status} here")
    assert (told.sentence, told.parts, told.download) == ("Because.", (), "")
    cannot = present_trial(trial(reason="There is no function “a”."), None)
    assert str(cannot.label) == "It cannot run."


def test_whether_the_structured_part_fits() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tool = ToolDefinition(name="t", output_schema=schema)
    plain = ToolDefinition(name="t")
    for definition, value, fits in (
        (tool, {"n": 1}, True),
        (tool, {"n": "1"}, False),
        (tool, None, None),
        (plain, {}, None),
        (None, {}, None),
    ):
        told = present_trial(trial({"structuredContent": value}), definition)
        assert told.fits is fits


def test_lines_along_the_way() -> None:
    def line(method: str, **params: Any) -> str:
        value = {"method": method, "params": params}
        return notification_line(Message(False, json.dumps(value).encode()))

    progress = "notifications/progress"
    assert line(progress, progress=1) == "progress 1"
    assert line(progress, progress=1, total=2, message="a") == "progress 1 of 2 a"
    logged = line("notifications/message", level="info", data={"a": 1})
    assert logged == 'log info: {"a": 1}'
    other = "notifications/tools/list_changed"
    assert line(other) == f"{other} {{}}"
    for message in (b'{"id": 1, "method": "roots/list"}', b'{"id": 1, "result": {}}'):
        assert notification_line(Message(False, message)) == ""


def test_many_lines_are_counted() -> None:
    one = Message(False, b'{"method": "notifications/progress", "params": {}}')
    sent = Message(True, one.text)
    told = present_trial(trial({}, messages=(sent, *[one] * 5_000)), None)
    assert (len(told.lines), told.more_lines) == (MAX_LINES, 5_000 - MAX_LINES)
    assert "And 4800 more lines." in html(told)


def test_what_became_of_a_dry_run() -> None:
    told = present_trial(trial({}, dry_run=DryRunOutcome(statements=1)), None)
    assert told.details[-1] == "1 database query"
    assert told.undone
    assert told.is_undone


def test_a_link_shows_its_host() -> None:
    assert uri_host("https://user@example.org:8/a") == "user@example.org:8"
    assert uri_host("mailto:a@b") == uri_host("http://[") == uri_host("") == ""
    [part] = parts_of({"content": [{"type": "resource_link", "uri": "https://a.b/c"}]})
    assert part.text == "https://a.b/c\n(a.b)"


# -- live ------------------------------------------------------------------------------


ERAS: Final = [STATELESS, STATEFUL]
ACCEPT: Final = {"Accept": "application/x-ndjson, text/html"}


async def opened(client: AsyncClient, url: str, data: dict[str, Any]) -> Any:
    response: Any = await client.post(url, data, headers=ACCEPT)
    assert response.status_code == 200
    return response


async def read(response: Any) -> list[dict[str, str]]:
    text = b"".join([each async for each in response.streaming_content])
    return [json.loads(each) for each in text.splitlines()]


@pytest.mark.parametrize("version", ERAS)
async def test_lines_come_in_order_while_it_runs(
    client: AsyncClient, offer: Offer, version: str
) -> None:
    """Each is there before the function goes on."""
    steps: asyncio.Queue[int] = asyncio.Queue()

    async def reports(ctx: Context) -> str:
        for _ in range(5):
            step = await steps.get()
            ctx.progress(step, 5, f"<b>{step}</b>")
        return "reported"

    url = await offer("reports_here", reports, read_only=True)
    data = await typed(
        client, url, revision=version, server="private", which="published"
    )
    response = await opened(client, url, data)
    assert response["Content-Type"] == "application/x-ndjson"
    assert response["X-Accel-Buffering"] == "no"
    assert response["Content-Encoding"] == "identity"
    assert "no-store" in response["Cache-Control"]
    stream: AsyncIterator[bytes] = aiter(response.streaming_content)
    async with asyncio.timeout(PATIENCE_S):
        begun = json.loads(await anext(stream))
        assert begun["to"] == "begun"
        # Whoever stops waiting presses the button again.
        assert begun["once"] not in ("", data["once"])
        for step in range(1, 6):
            steps.put_nowait(step)
            line = json.loads(await anext(stream))
            text = f"progress {step} of 5 <b>{step}</b>"
            assert line == {"to": "along", "text": text}
        last = json.loads(await anext(stream))
        assert [each async for each in stream] == []
    assert last["to"] == "result"
    assert "reported" in last["html"]
    assert "<b>5" not in last["html"]


@pytest.mark.parametrize("version", ERAS)
async def test_a_response_that_is_over_ends_the_call(
    client: AsyncClient, offer: Offer, process: Process, version: str
) -> None:
    """Also if nobody closes the iterator, as when the browser leaves during a line."""
    began = asyncio.Event()

    async def hangs(ctx: Context) -> str:
        began.set()
        await asyncio.Event().wait()
        return "never"

    url = await offer("hangs_on", hangs, read_only=True)
    data = await typed(client, url, revision=version, server="private")
    response = await opened(client, url, data)
    stream = aiter(response.streaming_content)
    async with asyncio.timeout(PATIENCE_S):
        await anext(stream)
        await began.wait()
        await sync_to_async(response.close)()
        [call] = await kept(process)
    assert call.outcome == Outcome.CANCELLED
    assert [each async for each in stream] == []


async def test_50_000_lines_are_200_and_a_count(
    client: AsyncClient, offer: Offer
) -> None:
    async def floods(ctx: Context) -> str:
        for at in range(50_000):
            ctx.log("info", str(at))
        return "done"

    url = await offer("floods", floods, read_only=True)
    response = await opened(client, url, await typed(client, url, server="private"))
    shown = await read(response)
    along = [each for each in shown if each["to"] == "along"]
    assert len(along) <= 200
    assert "done" in shown[-1]["html"]


async def test_the_result_is_in_the_language_of_the_page(process: Process) -> None:
    plan = plan_of({"name": "there_is_none", "arguments": {}}, STATELESS)
    told: list[str | None] = []

    def part(_trial: object) -> dict[str, str]:
        told.append(translation.get_language())
        return {}

    with translation.override("de"):
        stream = aiter(TrialLines(plan, "ticket", part))
        await anext(stream)
    with translation.override("fr"):
        rest = [each async for each in stream]
    assert told == ["de"]
    assert json.loads(rest[-1]) == {"to": "result"}
