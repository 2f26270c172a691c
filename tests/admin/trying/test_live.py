"""Lines of a trial while it runs, and its end if nobody waits any more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.utils import translation

from mcp_app import Context
from mcp_app.admin.trying.presentation import TrialLines
from mcp_app.interface.call_record import Outcome
from mcp_app.models import Tool
from mcp_app.process.runtime import Process
from tests.admin.trying.conftest import Offer
from tests.admin.trying.console import typed, url_of
from tests.admin.trying.people import Login
from tests.audit.reading import kept
from tests.scripting import STATEFUL, STATELESS
from tests.serving import PATIENCE_S
from tests.workbench.trying.test_trial import plan_of

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
    login: Login, offer: Offer, version: str
) -> None:
    """Each is there before the function goes on."""
    steps: asyncio.Queue[int] = asyncio.Queue()

    async def reports(ctx: Context) -> str:
        for _ in range(5):
            step = await steps.get()
            ctx.progress(step, 5, f"<b>{step}</b>")
        return "reported"

    url = await offer("reports_here", reports, read_only=True)
    client = await login()
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
async def test_who_stops_waiting_ends_the_call(
    login: Login, offer: Offer, process: Process, version: str
) -> None:
    began = asyncio.Event()
    ended: list[bool] = []

    async def hangs(ctx: Context) -> str:
        ctx.progress(1)
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(ctx.cancelled)
        return "never"

    url = await offer("hangs_here", hangs, read_only=True)
    client = await login()
    data = await typed(client, url, revision=version, server="private")
    task = asyncio.create_task(read(await opened(client, url, data)))
    async with asyncio.timeout(PATIENCE_S):
        await began.wait()
        # Django does so if the browser has left.
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ended == [True]
    [call] = await kept(process)
    assert call.outcome == Outcome.CANCELLED
    assert not process.running


@pytest.mark.parametrize("version", ERAS)
async def test_a_response_that_is_over_ends_the_call(
    login: Login, offer: Offer, process: Process, version: str
) -> None:
    """Also if nobody closes the iterator, as when the browser leaves during a line."""
    began = asyncio.Event()

    async def hangs(ctx: Context) -> str:
        began.set()
        await asyncio.Event().wait()
        return "never"

    url = await offer("hangs_on", hangs, read_only=True)
    client = await login()
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


async def test_a_page_that_takes_no_lines_gets_the_page(login: Login) -> None:
    client = await login()
    url = await url_of(Tool, name="drill_add")
    data = await typed(client, url, a="1", b="2")
    response = await client.post(url, data, headers={"Accept": "text/html"})
    assert response["Content-Type"].startswith("text/html")
    assert not response.streaming


async def test_what_cannot_be_tried_is_a_page(login: Login) -> None:
    client = await login()
    url = await url_of(Tool, name="drill_add")
    response = await opened(client, url, await typed(client, url, a="two"))
    assert response["Content-Type"].startswith("text/html")
    assert "is not a whole number." in response.content.decode()


async def test_a_question_comes_as_part_of_the_page(login: Login) -> None:
    client = await login()
    url = await url_of(Tool, name="drill_ask")
    response = await opened(client, url, await typed(client, url, question="How?"))
    last = (await read(response))[-1]
    assert 'name="state"' in last["html"]
    assert 'value="accept"' in last["html"]


async def test_50_000_lines_are_200_and_a_count(login: Login, offer: Offer) -> None:
    async def floods(ctx: Context) -> str:
        for at in range(50_000):
            ctx.log("info", str(at))
        return "done"

    url = await offer("floods", floods, read_only=True)
    client = await login()
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
