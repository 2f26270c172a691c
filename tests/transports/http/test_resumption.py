"""What another process answers reaches the client that is still connected here.

A process that stood still finds its calls ended by another one, which took it for dead.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import pytest
from django.db import OperationalError

from mcp_app.models import Event, Session, Stream, Worker
from mcp_app.pools.database import log_writer, reader
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS, STATEFUL
from mcp_app.streams import claims, replay
from mcp_app.transports.http import resumption
from tests.asgi_client import Client, JsonObject, Visit
from tests.behaviours import Stage
from tests.marks import STATEFUL_NEWEST_FIRST
from tests.serving import Connect

pytestmark = pytest.mark.databases

ONCE: Final = "talks"
TWICE: Final = "peeks"
JSON_ONLY: Final = {"accept": "application/json"}


async def begun(client: Client, tool: str = ONCE) -> Visit:
    params = {"name": tool, "arguments": {"after": "second"}}
    visit = client.begin("tools/call", params, id="seven")
    assert await visit.message() is not None
    return visit


async def taken(process: Process) -> None:
    """Let another process take this one for dead."""
    await log_writer.run(_taken, process._row.id)


def _taken(owner: str) -> None:
    Worker.objects.filter(pk=owner).delete()
    assert claims.claim_orphans("another", {owner: None})


def told(answer: JsonObject) -> JsonObject:
    assert answer["error"]["code"] == -32603
    assert "is gone" in answer["error"]["message"]
    data: JsonObject = answer["error"]["data"]
    return data


@pytest.mark.parametrize("version", STATEFUL)
@pytest.mark.parametrize("tool", [ONCE, TWICE])
async def test_who_is_connected_gets_the_end_that_another_process_wrote(
    connect: Connect, process: Process, stage: Stage, version: str, tool: str
) -> None:
    client = await connect(version)
    visit = await begun(client, tool)
    await taken(process)
    stage.released.set()
    (answer,) = await visit.messages()
    assert (answer["id"], told(answer)) == ("seven", {"retryable": tool == TWICE})
    row = await reader.run(Stream.objects.get)
    if REVISIONS[version].resumable:
        assert visit.ids[-2:] == [f"{row.public_id}.{n}" for n in (1, 2)]
    assert (row.state, row.head_seq) == ("aborted", 2)
    assert not process.running
    again = client.begin(
        "tools/call", {"name": tool, "arguments": {"after": "second"}}, id="seven"
    )
    if tool == ONCE:
        assert [each for each in await again.messages() if "id" in each] == [answer]
    else:
        await again.messages()


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_json_is_what_the_other_process_answered(
    connect: Connect, process: Process, stage: Stage, version: str
) -> None:
    client = await connect(version, headers=JSON_ONLY)
    visit = client.begin("tools/call", {"name": "waits"}, id="seven")
    await stage.begun()
    await taken(process)
    stage.released.set()
    answer = await visit.json()
    assert (answer["id"], told(answer)) == ("seven", {"retryable": False})


@pytest.mark.parametrize("accept", ["application/json", None])
async def test_each_of_a_batch_is_answered(
    connect: Connect, process: Process, stage: Stage, accept: str | None
) -> None:
    headers: dict[str, Any] = {"accept": accept} if accept else {}
    client = await connect("2025-03-26", headers=headers)
    calls = [
        client.message("tools/call", {"name": tool}, id=number)
        for number, tool in enumerate([ONCE, ONCE, TWICE])
    ]
    visit = client.post(calls)
    if accept is None:
        assert await visit.message() is not None
    await _open(2 if accept else 3)
    await taken(process)
    stage.released.set()
    messages = await visit.messages()
    answers = {each["id"]: each for each in messages if "id" in each}
    assert sorted(answers) == [0, 1, 2]
    assert len([each for each in messages if "id" in each]) == 3
    for number in (0, 1) if accept else (0, 1, 2):
        assert told(answers[number]) == {"retryable": False}


async def _open(count: int) -> None:
    async with asyncio.timeout(60):
        while await reader.run(Stream.objects.count) < count:
            await asyncio.sleep(0.001)


async def test_what_was_committed_is_sent_before_the_end(
    connect: Connect, process: Process, stage: Stage
) -> None:
    """A batch whose outcome was not known may be there, and another's word after it."""
    client = await connect("2025-06-18")
    visit = await begun(client)
    await log_writer.run(_said_unheard)
    await taken(process)
    stage.released.set()
    notification, answer = await visit.messages()
    assert notification["params"]["data"] == "unheard"
    assert told(answer) == {"retryable": False}
    assert [each.rpartition(".")[2] for each in visit.ids] == ["1", "2", "3"]


def _said_unheard() -> None:
    row = Stream.objects.get()
    params = {"level": "error", "data": "unheard"}
    message = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
    text = json.dumps(message)
    Event.objects.create(stream_id=row.pk, seq=2, payload=text, size=len(text))
    Stream.objects.update(head_seq=2, last_batch="another")


async def away(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let nobody read the log; the event says that somebody has tried."""
    tried, loop = asyncio.Event(), asyncio.get_running_loop()

    def failing(*_: Any) -> Any:
        loop.call_soon_threadsafe(tried.set)
        raise OperationalError("away")

    monkeypatch.setattr(replay, "_heads", failing)
    monkeypatch.setattr(replay, "LOOK_S", 0.01)
    return tried


async def test_who_waits_for_it_has_heartbeats_and_may_leave(
    connect: Connect, process: Process, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect("2025-06-18")
    visit = await begun(client)
    await taken(process)
    tried = await away(monkeypatch)
    stage.released.set()
    await tried.wait()
    (listener,) = process.listeners
    listener.beat()
    await visit.comment()
    await visit.leave()


@pytest.mark.parametrize("accept", ["application/json", None])
@pytest.mark.parametrize("first", [True, False])
async def test_a_process_that_stops_waits_no_longer(
    connect: Connect,
    process: Process,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    accept: str | None,
    first: bool,
) -> None:
    monkeypatch.setattr(resumption, "LAST_LOOK_S", 0.01)
    client = await connect("2025-06-18", headers={"accept": accept} if accept else {})
    visit = client.begin("tools/call", {"name": ONCE}, id="seven")
    await stage.begun()
    if accept is None:
        assert await visit.message() is not None
    await taken(process)
    tried = await away(monkeypatch)
    process.stopping = first
    stage.released.set()
    await tried.wait()
    if not first:
        for listener in process.listeners:
            listener.end(retry_ms=2_000)
    messages = await visit.messages()
    process.stopping = False
    assert ["error" in each for each in messages] == ([True] if accept else [])


async def test_a_session_that_is_closed_meanwhile_ends_its_streams(
    connect: Connect, process: Process, stage: Stage
) -> None:
    client = await connect("2025-06-18")
    visit = await begun(client)
    await taken(process)
    await log_writer.run(Session.objects.all().delete)
    stage.released.set()
    assert await visit.messages() == []
    assert not process.running
