"""A request of a session that must not run twice has its row before it runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sized
from functools import partial
from math import inf
from typing import Any, Final, TypeAlias

import pytest

from mcp_app.invalidation import workers
from mcp_app.models import Event, Stop, Stream
from mcp_app.models.stops import By, Scope
from mcp_app.pools.database import reader, writer
from mcp_app.process.runtime import Process
from mcp_app.server.outcome import STOPPED_CALL
from mcp_app.server.request import Request
from mcp_app.streams import replay
from mcp_app.transports.http import call_handler
from mcp_app.transports.http.handler import EndpointHandler
from tests.asgi_client import Client, HeaderChanges, Visit
from tests.behaviours import Stage
from tests.marks import STATEFUL_NEWEST_FIRST
from tests.serving import Connect, all_logged, counted
from tests.streams.logging_rows import until
from tests.streams.writes import Writes

pytestmark = pytest.mark.databases

NEWEST: Final = "2025-11-25"
BY: Final = By("kim", "7")
ANSWERS: Final = {
    "json": {"accept": "application/json"},
    "events": {"accept": "text/event-stream"},
    "both": {},
}

Start: TypeAlias = Callable[[], Awaitable[None]]


@pytest.fixture
async def client(connect: Connect) -> Client:
    return await connect(NEWEST)


@pytest.fixture
async def plain(connect: Connect) -> Client:
    return await connect(NEWEST, headers=ANSWERS["json"])


def talking(
    client: Client,
    request_id: str | int = "seven",
    headers: HeaderChanges | None = None,
    **more: Any,
) -> Visit:
    params = {"name": "talks", "arguments": {"after": "second"}, **more}
    return client.begin("tools/call", params, id=request_id, headers=headers)


async def at_least(count: int, waiting: Sized) -> None:
    """Wait until so many streams, or listeners, are there."""
    await until(lambda: len(waiting) >= count)


async def rows() -> list[Stream]:
    return await reader.run(list, Stream.objects.order_by("pk"))


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_the_row_is_there_before_it_runs(
    connect: Connect, process: Process, stage: Stage, version: str
) -> None:
    client = await connect(version, headers=ANSWERS["json"])
    visit = talking(client)
    await stage.begun()
    (row,) = await rows()
    assert (row.state, row.tool, row.owner) == ("open", "talks", process._row.id)
    stage.released.set()
    answer = await visit.json()
    assert answer["result"]["content"][0]["text"] == "talked"
    (row,) = await rows()
    assert (row.state, row.head_seq) == ("completed", 1)
    payload = await reader.run(Event.objects.get)
    assert json.loads(payload.payload) == answer


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
@pytest.mark.parametrize("accept", ANSWERS)
async def test_a_repeated_request_is_answered_from_the_row(
    connect: Connect, stage: Stage, version: str, accept: str
) -> None:
    client = await connect(version, headers=ANSWERS[accept])
    stage.released.set()
    answers = [(await talking(client).messages())[-1] for _ in range(3)]
    assert answers == [answers[0]] * 3
    assert stage.told == []
    assert len(await rows()) == 1
    assert (await counted())["Stream"] == 1


@pytest.mark.parametrize("accept", ANSWERS)
async def test_a_request_that_runs_is_followed(
    client: Client, stage: Stage, accept: str
) -> None:
    first = talking(client)
    await stage.begun()
    stage.entered.clear()
    again = talking(client, headers=ANSWERS[accept])
    if accept != "json":
        await again.opened()
    stage.released.set()
    whole = await first.messages()
    messages = await again.messages()
    assert messages == (whole[-1:] if accept == "json" else whole)
    assert not stage.entered.is_set()
    if accept == "both":
        assert again.ids == first.ids
        assert again.ids[0].endswith(".0")


@pytest.mark.parametrize("ended", [False, True])
async def test_another_request_with_the_same_id(
    client: Client, stage: Stage, ended: bool
) -> None:
    first = talking(client)
    await stage.begun()
    if ended:
        stage.released.set()
        await first.messages()
    refused = await talking(client, arguments={"after": "other"}).begun()
    error = (await refused.json())["error"]
    assert (refused.status, error["code"]) == (400, -32600)
    assert error["message"] == (
        "The id 'seven' was used before in this session, for a call of talks. Give"
        " each request an id of its own."
    )
    stage.released.set()
    if not ended:
        await first.messages()


async def test_ids_of_two_types_are_two(client: Client, stage: Stage) -> None:
    stage.released.set()
    for request_id in (1, "1"):
        (*_, answer) = await talking(client, request_id).messages()
        assert answer["id"] == request_id
    assert len(await rows()) == 2


async def test_sessions_have_ids_of_their_own(connect: Connect, stage: Stage) -> None:
    stage.released.set()
    for _ in range(2):
        await talking(await connect(NEWEST)).messages()
    assert len(await rows()) == 2


async def test_many_at_once_run_once(plain: Client, stage: Stage) -> None:
    calls = [talking(plain) for _ in range(8)]
    await stage.begun()
    stage.released.set()
    answers = [await each.json() for each in calls]
    assert answers == [answers[0]] * 8
    assert len(await rows()) == 1


@pytest.mark.parametrize("accept", ANSWERS)
async def test_a_cancelled_request_has_no_answer_later(
    client: Client, stage: Stage, accept: str
) -> None:
    first = talking(client)
    await stage.begun()
    await client.notify("notifications/cancelled", {"requestId": "seven"})
    await first.messages()
    again = talking(client, headers=ANSWERS[accept])
    assert all("id" not in each for each in await again.messages())
    assert again.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize("tool", ["peeks", "turns_on"])
async def test_a_call_that_may_be_repeated_runs_again(
    plain: Client, stage: Stage, tool: str
) -> None:
    stage.released.set()
    for _ in range(2):
        stage.entered.clear()
        visit = plain.begin("tools/call", {"name": tool}, id=7)
        await visit.json()
        assert stage.entered.is_set()
    assert await rows() == []


async def test_while_it_runs_its_id_is_taken(client: Client, stage: Stage) -> None:
    first = client.begin("tools/call", {"name": "peeks"}, id="seven")
    await stage.begun()
    for tool in ("peeks", "talks"):
        other = client.begin("tools/call", {"name": tool}, id="seven")
        assert "is running" in (await other.json())["error"]["message"]
    stage.released.set()
    await first.messages()


async def test_unknown_and_hidden_tools_have_no_row(client: Client) -> None:
    for params in ({"name": "no such tool"}, {"name": 7}, {}):
        found = await client.request("tools/call", params)
        assert found.error["code"] == -32602
    assert await rows() == []


def outage(monkeypatch: pytest.MonkeyPatch) -> Writes:
    """Let the log not reach the database, until the test ends it."""
    writes = Writes(monkeypatch)
    writes.outages = inf
    return writes


@pytest.mark.parametrize("leaves", [False, True])
async def test_an_outage_refuses_what_has_not_begun(
    client: Client,
    process: Process,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    leaves: bool,
) -> None:
    """And leaves nothing behind that would answer when it is sent again."""
    writes = outage(monkeypatch)
    if leaves:
        visit = talking(client)
        await asyncio.sleep(0.05)
        visit.task.cancel()
        await asyncio.wait([visit.task])
    else:
        # What is asked afterwards may take longer.
        with monkeypatch.context() as impatient:
            impatient.setattr(call_handler, "PATIENCE_S", 0.05)
            visit = await talking(client).begun()
        assert (visit.status, "retry-after" in visit.headers) == (503, True)
    writes.outages = 0
    await all_logged(process.log)
    assert not stage.entered.is_set()
    assert (await rows(), len(process.log)) == ([], 0)
    stage.released.set()
    assert len(await talking(client).messages()) == 3


@pytest.mark.parametrize("look", [1, 2])
async def test_a_row_that_another_process_took_back(
    client: Client, stage: Stage, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    """If the database was away, it takes the row back somewhat later."""
    first = talking(client, headers=ANSWERS["json"])
    await stage.begun()
    found, looks = replay._row, []

    def taken_back(session_id: int, **named: str) -> Stream | None:
        looks.append(named)
        if len(looks) == look:
            Stream.objects.filter(session_id=session_id).delete()
        return found(session_id, **named)

    monkeypatch.setattr(replay, "_row", taken_back)
    again = await talking(client).begun()
    assert (again.status, "retry-after" in again.headers) == (503, True)
    monkeypatch.undo()
    stage.released.set()
    await first.messages()
    assert len(await talking(client).messages()) == 3


@pytest.fixture
async def start(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Start]:
    """People stop everything as soon as a call has its row; it starts all again."""
    renew = EndpointHandler._renew

    async def stop(handler: EndpointHandler, request: Request) -> Request:
        monkeypatch.setattr(EndpointHandler, "_renew", renew)
        await writer.run(partial(workers.stop, Scope.EVERYTHING, by=BY))
        await process.gate.wait_for_check()
        return await renew(handler, request)

    async def started() -> None:
        on = Stop.objects.on().values_list("pk", flat=True)
        await writer.run(lambda: workers.start(list(on), by=BY))
        await process.gate.wait_for_check()

    monkeypatch.setattr(EndpointHandler, "_renew", stop)
    yield started
    await started()
    await writer.run(Stop.objects.all().delete)


@pytest.mark.parametrize("accept", ANSWERS)
async def test_what_was_refused_once_its_row_was_there_may_come_again(
    connect: Connect, process: Process, stage: Stage, start: Start, accept: str
) -> None:
    client = await connect(NEWEST, headers=ANSWERS[accept])
    refused = await talking(client).begun()
    assert (refused.status, "retry-after" in refused.headers) == (503, True)
    await all_logged(process.log)
    assert (await rows(), len(process.log)) == ([], 0)
    await start()
    stage.released.set()
    answer = (await talking(client).messages())[-1]
    assert answer["result"]["content"][0]["text"] == "talked"


async def test_what_had_no_place_may_come_again(
    client: Client, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.threads, "ceiling", 0)
    params = {"name": "returns_sync", "arguments": {"which": "none"}}
    for _ in range(2):
        refused = await client.begin("tools/call", params, id="seven").begun()
        assert (refused.status, "retry-after" in refused.headers) == (503, True)
    await all_logged(process.log)
    assert await rows() == []
    monkeypatch.undo()
    answer = await client.begin("tools/call", params, id="seven").messages()
    assert "result" in answer[-1]


async def test_a_request_is_cancelled_before_it_runs(
    client: Client, process: Process, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = outage(monkeypatch)
    visit = talking(client)
    await at_least(1, process.log)
    await client.notify("notifications/cancelled", {"requestId": "seven"})
    writes.outages = 0
    assert await visit.messages() == []
    await all_logged(process.log)
    assert not stage.entered.is_set()
    (row,) = await rows()
    assert row.state == "aborted"


async def test_what_waits_for_its_row_counts_as_running(
    client: Client, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = outage(monkeypatch)
    before = sum(process.running._owned.values())
    visits = [talking(client, number) for number in range(3)]
    await at_least(3, process.log)
    assert sum(process.running._owned.values()) == before + 3
    for each in visits:
        each.task.cancel()
    await asyncio.wait([each.task for each in visits])
    writes.outages = 0
    await all_logged(process.log)
    assert sum(process.running._owned.values()) == before


async def test_a_process_that_stops_begins_nothing(
    client: Client, process: Process, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = outage(monkeypatch)
    visit = talking(client)
    await at_least(1, process.log)
    process.stopping = True
    writes.outages = 0
    assert (await visit.begun()).status == 503
    await all_logged(process.log)
    assert (await rows(), stage.entered.is_set()) == ([], False)


async def test_who_waits_for_json_is_sent_away_at_a_stop(
    plain: Client, process: Process, stage: Stage
) -> None:
    first = talking(plain)
    await stage.begun()
    again = talking(plain)
    await at_least(1, process.listeners)
    for listener in process.listeners:
        assert (listener.watched("tools"), list(listener.watching())) == (None, [])
        listener.tell(["tools"], 1)
        listener.beat()
        listener.end(retry_ms=3_000)
        listener.end(retry_ms=4_000)
    await again.begun()
    assert (again.status, again.headers["retry-after"]) == (503, "3")
    stage.released.set()
    assert "result" in await first.json()
    assert len(process.listeners) == 0


async def test_who_waits_for_json_may_leave(
    plain: Client, process: Process, stage: Stage
) -> None:
    first = talking(plain)
    await stage.begun()
    again = talking(plain)
    await at_least(1, process.listeners)
    await again.leave()
    assert len(process.listeners) == 0
    stage.released.set()
    assert "result" in await first.json()


async def test_an_empty_meta_is_none(plain: Client, stage: Stage) -> None:
    stage.released.set()
    given: list[dict[str, Any]] = [{}, {"_meta": {}}, {"_meta": {"progressToken": 1}}]
    answers = [await talking(plain, **each).json() for each in given]
    assert answers == [answers[0]] * 3
    assert len(await rows()) == 1


# -- batches of 2025-03-26 --------------------------------------------------------


def batch(client: Client, *calls: tuple[int, str]) -> Visit:
    return client.post(
        [
            client.message("tools/call", {"name": tool}, id=number)
            for number, tool in calls
        ]
    )


async def test_each_of_a_batch_has_its_row(connect: Connect, stage: Stage) -> None:
    client = await connect("2025-03-26", headers=ANSWERS["json"])
    stage.released.set()
    answers = await batch(client, (1, "talks"), (2, "peeks"), (3, "talks")).messages()
    assert {each["id"] for each in answers} == {1, 2, 3}
    found = await rows()
    assert [json.loads(each.requests) for each in found] == [1, 3]
    assert {each.state for each in found} == {"completed"}
    (answer,) = await batch(client, (1, "talks")).messages()
    assert answer["error"]["code"] == -32600
    assert "was used before" in answer["error"]["message"]


async def test_one_of_a_batch_is_cancelled(
    connect: Connect, process: Process, stage: Stage
) -> None:
    client = await connect("2025-03-26", headers=ANSWERS["json"])
    visit = batch(client, (1, "talks"), (2, "ping"))
    await stage.begun()
    await client.notify("notifications/cancelled", {"requestId": 1})
    (answer,) = await visit.messages()
    assert answer["id"] == 2
    await all_logged(process.log)
    (row,) = await rows()
    assert row.state == "aborted"


@pytest.mark.parametrize("owner", ["another", None])
async def test_what_one_of_a_batch_answers_cannot_be_stored(
    connect: Connect,
    process: Process,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    owner: str | None,
) -> None:
    client = await connect("2025-03-26", headers=ANSWERS["json"])
    visit = batch(client, (1, "talks"), (2, "ping"))
    await stage.begun()
    if owner is not None:
        await writer.run(Stream.objects.update, owner=owner)
    else:
        Writes(monkeypatch).faults.append(ValueError("a fault"))
    stage.released.set()
    answers = {each["id"]: each for each in await visit.messages()}
    assert answers[2]["error"]["code"] == -32602
    assert answers[1]["error"]["code"] == -32603
    await all_logged(process.log)


async def test_one_of_a_batch_that_had_no_place_may_come_again(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect("2025-03-26", headers=ANSWERS["json"])
    monkeypatch.setattr(process.threads, "ceiling", 0)
    params = {"name": "returns_sync", "arguments": {"which": "none"}}
    (answer,) = await client.post(
        [client.message("tools/call", params, id=1)]
    ).messages()
    assert "threads" in answer["error"]["message"]
    await all_logged(process.log)
    assert await rows() == []


async def test_one_of_a_batch_that_was_refused_once_its_row_was_there(
    connect: Connect, process: Process, stage: Stage, start: Start
) -> None:
    client = await connect("2025-03-26", headers=ANSWERS["json"])
    (answer,) = await batch(client, (1, "talks")).messages()
    assert answer["error"]["message"] == STOPPED_CALL
    await all_logged(process.log)
    assert (await rows(), len(process.log)) == ([], 0)
    await start()
    stage.released.set()
    (answer,) = await batch(client, (1, "talks")).messages()
    assert answer["result"]["content"][0]["text"] == "talked"


async def test_one_of_a_batch_loses_its_stream(
    connect: Connect, process: Process, stage: Stage
) -> None:
    client = await connect("2025-03-26", headers=ANSWERS["json"])
    visit = batch(client, (1, "waits"), (2, "ping"))
    await stage.begun()
    await writer.run(Stream.objects.all().delete)
    (lost,) = process.log._open.values()
    lost.append(b"1")
    answers = await visit.messages()
    assert sorted(each["id"] for each in answers) == [1, 2]
    assert stage.told == ["cancelled"]
