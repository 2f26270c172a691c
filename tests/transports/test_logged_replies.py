"""What a session's request says is logged before it is sent, and can be had again."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest

from mcp_app.models import Event, Session, Stream
from mcp_app.pools.database import log_writer, reader, writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.transports import replies
from tests.asgi_client import Client, JsonObject, Visit
from tests.behaviours import Stage
from tests.serving import Connect, all_logged, counted

pytestmark = pytest.mark.databases

NEWEST: Final = "2025-11-25"
RESUMABLE: Final = [name for name, each in REVISIONS.items() if each.resumable]
STATELESS: Final = [name for name, each in REVISIONS.items() if each.stateless]
TEXT: Final = [{"type": "text", "text": "talked"}]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is too long at once."""
    monkeypatch.setattr(replies, "PROMOTE_AFTER", 0.01)


def talking(client: Client, tool: str = "peeks", **arguments: Any) -> Visit:
    """Call a tool that says one thing, waits for the test, and says another."""
    return client.begin(
        "tools/call",
        {
            "name": tool,
            "arguments": {"after": "second", **arguments},
            "_meta": {"io.modelcontextprotocol/logLevel": "debug"},
        },
    )


def resumed(client: Client, last: str) -> Visit:
    return client.visit("GET", headers={"last-event-id": last})


def said(messages: list[JsonObject]) -> list[Any]:
    """Return what was logged, and the content of an answer."""
    return [
        each["params"]["data"] if "method" in each else each["result"]["content"]
        for each in messages
    ]


async def logged() -> list[JsonObject]:
    """Return the messages of the only stream."""
    rows = Event.objects.order_by("seq")
    payloads = await reader.run(list, rows.values_list("payload", flat=True))
    return [json.loads(each) for each in payloads]


async def stream() -> Stream:
    return await reader.run(Stream.objects.get)


@pytest.mark.parametrize("version", RESUMABLE)
async def test_a_stream_has_ids_and_rows(
    connect: Connect, process: Process, stage: Stage, version: str
) -> None:
    client = await connect(version)
    visit = talking(client)
    first = await visit.message()
    assert first is not None
    row = await stream()
    assert (row.state, row.head_seq, row.owner) == ("open", 1, process._row.id)
    stage.released.set()
    messages = [first, *await visit.messages()]
    assert said(messages) == ["first", "second", TEXT]
    assert messages == await logged()
    name, primed = row.public_id, REVISIONS[version].priming
    assert visit.ids == [f"{name}.{n}" for n in range(1 - primed, 4)]
    row = await stream()
    assert (row.state, row.head_seq) == ("completed", 3)
    assert json.loads(row.requests) == [messages[-1]["id"]]
    assert len(process.log) == 0


async def test_a_revision_without_ids_has_rows(connect: Connect, stage: Stage) -> None:
    """A question on its stream may be answered at another process."""
    client = await connect("2024-11-05")
    visit = talking(client)
    stage.released.set()
    messages = await visit.messages()
    assert said(messages) == ["first", "second", TEXT]
    assert visit.ids == []
    assert messages == await logged()


@pytest.mark.parametrize("version", STATELESS)
async def test_the_stateless_era_leaves_no_rows(
    connect: Connect, stage: Stage, version: str
) -> None:
    client = await connect(version)
    visit = talking(client)
    stage.released.set()
    assert said(await visit.messages()) == ["first", "second", TEXT]
    assert visit.ids == []
    found = await counted()
    assert (found["Stream"], found["Event"]) == (0, 0)


async def test_json_leaves_no_rows(connect: Connect, stage: Stage) -> None:
    client = await connect(NEWEST)
    assert (await client.request("ping")).result == {}
    only = await connect(NEWEST, headers={"accept": "application/json"})
    stage.released.set()
    assert said(await talking(only).messages()) == [TEXT]
    assert (await counted())["Stream"] == 0


async def test_who_takes_no_json_gets_a_stream_with_ids(connect: Connect) -> None:
    client = await connect(NEWEST, headers={"accept": "text/event-stream"})
    visit = client.begin("ping", {})
    (answer,) = await visit.messages()
    assert answer["result"] == {}
    name = (await stream()).public_id
    assert visit.ids == [f"{name}.0", f"{name}.1"]


async def test_silence_opens_a_stream_that_can_be_resumed(
    connect: Connect, impatient: None, stage: Stage
) -> None:
    client = await connect(NEWEST)
    visit = talking(client)
    first = await visit.message()
    assert first is not None
    await visit.leave()
    stage.released.set()
    again = resumed(client, visit.ids[0])
    assert said(await again.messages()) == ["first", "second", TEXT]


@pytest.mark.parametrize("version", RESUMABLE)
async def test_a_client_comes_back_for_the_rest(
    connect: Connect, stage: Stage, version: str
) -> None:
    client = await connect(version)
    visit = talking(client)
    first = await visit.message()
    assert first is not None
    await visit.leave()
    again = await resumed(client, visit.ids[-1]).begun()
    assert (again.status, again.headers["content-type"]) == (200, "text/event-stream")
    await again.opened()
    stage.released.set()
    assert said(await again.messages()) == ["second", TEXT]
    name = (await stream()).public_id
    assert again.ids == [f"{name}.2", f"{name}.3"]
    # The call is over, and can be had once more.
    for number, left in ((0, 3), (1, 2), (2, 1), (3, 0)):
        once_more = resumed(client, f"{name}.{number}")
        assert len(await once_more.messages()) == left


async def test_two_read_one_stream(connect: Connect, stage: Stage) -> None:
    client = await connect(NEWEST)
    visit = talking(client)
    assert await visit.message() is not None
    others = [resumed(client, visit.ids[0]) for _ in range(2)]
    for each in others:
        await each.opened()
    stage.released.set()
    assert said(await visit.messages()) == ["second", TEXT]
    for each in others:
        assert said(await each.messages()) == ["first", "second", TEXT]


async def test_a_call_goes_on_without_its_client(
    connect: Connect, process: Process, stage: Stage
) -> None:
    client = await connect(NEWEST)
    visit = talking(client)
    assert await visit.message() is not None
    await visit.leave()
    stage.released.set()
    while process.running or len(process.log):
        await reader.run(lambda: None)
    assert said(await logged()) == ["first", "second", TEXT]


async def test_a_batch_has_one_stream(connect: Connect, stage: Stage) -> None:
    client = await connect("2025-03-26")
    calls = [
        client.message("tools/call", {"name": "peeks"}, id=7),
        client.message("ping", id="p"),
    ]
    visit = client.post(calls)
    assert await visit.message() is not None
    await visit.leave()
    stage.released.set()
    again = resumed(client, visit.ids[0])
    answers = await again.messages()
    assert {each["id"] for each in answers if "id" in each} == {7, "p"}
    assert json.loads((await stream()).requests) == [7, "p"]


@pytest.mark.parametrize("leaves", [False, True])
async def test_a_cancelled_call_ends_without_an_answer(
    connect: Connect, process: Process, stage: Stage, leaves: bool
) -> None:
    client = await connect(NEWEST)
    visit = talking(client)
    assert await visit.message() is not None
    if leaves:
        await visit.leave()
        visit = resumed(client, visit.ids[-1])
        await visit.opened()
    request_id = json.loads((await stream()).requests)[0]
    await client.notify("notifications/cancelled", {"requestId": request_id})
    assert await visit.messages() == []
    await all_logged(process)
    assert (await stream()).state == "aborted"


async def test_a_session_that_is_closed_takes_its_streams_along(
    connect: Connect, process: Process, stage: Stage
) -> None:
    client = await connect(NEWEST)
    visit = talking(client)
    assert await visit.message() is not None
    again = resumed(client, visit.ids[-1])
    await again.opened()
    assert (await client.visit("DELETE").begun()).status == 204
    assert await visit.messages() == []
    assert await again.messages() == []
    assert len(process.log) == 0
    found = await counted()
    assert (found["Session"], found["Stream"], found["Event"]) == (0, 0, 0)


async def test_rows_that_are_deleted_elsewhere_end_the_stream(
    connect: Connect, process: Process, stage: Stage
) -> None:
    """As another process does it; this one learns of it when it appends."""
    client = await connect(NEWEST)
    visit = talking(client)
    assert await visit.message() is not None
    await log_writer.run(Session.objects.all().delete)
    stage.released.set()
    assert await visit.messages() == []
    assert len(process.log) == 0


# -- wrong ids ----------------------------------------------------------------------


async def refused(client: Client, last: str) -> bytes:
    visit = await resumed(client, last).begun()
    assert visit.status == 400, last
    body = json.loads(await visit.body())
    assert body["error"]["code"] == -32600
    return visit.raw


async def test_wrong_ids_have_one_answer(connect: Connect, stage: Stage) -> None:
    client, other = await connect(NEWEST), await connect(NEWEST)
    visits = [talking(client), talking(other)]
    for each in visits:
        assert await each.message() is not None
    own, foreign = (visit.ids[-1] for visit in visits)
    name, _, number = own.partition(".")
    changed = ("A" if name[0] != "A" else "B") + name[1:]
    wrong = [
        foreign,
        foreign.partition(".")[0] + ".0",
        f"{changed}.{number}",
        f"{name}.2",
        f"{name}.99999999999999999",
        f"{name}.01",
        f"{name}.-1",
        f"{name}.1_0",
        f"{name}.",
        f"{name}.1.0.0.0",
        name,
        "1",
        own + " .",
        "x" * 5_000,
    ]
    answers = {re.sub(rb"\d+", b"", await refused(client, each)) for each in wrong}
    assert len(answers) == 1
    stage.released.set()
    for visit in visits:
        await visit.messages()


async def test_a_stream_whose_row_is_gone(connect: Connect, stage: Stage) -> None:
    client = await connect(NEWEST)
    visit = talking(client)
    stage.released.set()
    await visit.messages()
    await writer.run(Stream.objects.all().delete)
    await refused(client, visit.ids[0])


async def test_a_message_that_is_missing_raises_an_alarm(
    connect: Connect, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Better an end than a gap."""
    client = await connect(NEWEST)
    visit = talking(client)
    stage.released.set()
    await visit.messages()
    await writer.run(Event.objects.filter(seq=2).delete)
    again = resumed(client, visit.ids[0])
    assert said(await again.messages()) == ["first"]
    assert "lacks message 2" in caplog.text


async def test_a_process_that_stops_sends_its_readers_away(
    connect: Connect, process: Process, stage: Stage
) -> None:
    client = await connect(NEWEST)
    visit = talking(client)
    assert await visit.message() is not None
    again = resumed(client, visit.ids[-1])
    await again.opened()
    for listener in process.listeners:
        listener.end(retry_ms=2_000)
    assert await again.messages() == []
    assert b"retry: 2000" in again.raw
    stage.released.set()
    await visit.messages()


async def test_an_outage_is_waited_for(
    connect: Connect,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from django.db import OperationalError  # noqa: PLC0415

    from mcp_app.streams import following  # noqa: PLC0415

    client = await connect(NEWEST)
    visit = talking(client)
    stage.released.set()
    await visit.messages()
    heads, failures = following._heads, [1, 2]

    def failing(keys: Any) -> Any:
        if failures:
            failures.pop()
            raise OperationalError("The database is away.")
        return heads(keys)

    monkeypatch.setattr(following, "_heads", failing)
    monkeypatch.setattr(following, "LOOK_S", 0.01)
    again = resumed(client, visit.ids[0])
    assert len(await again.messages()) == 3
    assert "Streams could not be read" in caplog.text
