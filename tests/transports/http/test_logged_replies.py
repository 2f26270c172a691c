"""What a session's request says is logged before it is sent, and can be had again."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, Final

import pytest
from django.db import OperationalError

from mcp_app.models import Event, Session, Stream, Worker
from mcp_app.pools.database import log_writer, reader, writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.streams import claims, replay, request_log
from mcp_app.transports.http import replies
from tests.asgi_client import Client, JsonObject, Visit
from tests.behaviours import Stage
from tests.serving import Connect, all_logged, counted
from tests.streams.logging_rows import message_of, until
from tests.streams.writes import Writes

pytestmark = pytest.mark.databases

NEWEST: Final = "2025-11-25"
RESUMABLE: Final = [name for name, each in REVISIONS.items() if each.resumable]
STATELESS: Final = [name for name, each in REVISIONS.items() if each.stateless]
LOGGED: Final = {"_meta": {"io.modelcontextprotocol/logLevel": "debug"}}
TEXT: Final = [{"type": "text", "text": "talked"}]


@pytest.fixture
def version() -> str:
    return NEWEST


@pytest.fixture
async def client(connect: Connect, version: str) -> Client:
    return await connect(version)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is too long at once."""
    monkeypatch.setattr(replies, "PROMOTE_AFTER", 0.01)


def talking(client: Client, tool: str = "peeks", **named: Any) -> Visit:
    """Call a tool that says one thing, waits for the test, and says another."""
    params = {"name": tool, "arguments": {"after": "second"}, **LOGGED}
    return client.begin("tools/call", params, **named)


async def begun(client: Client) -> Visit:
    """Call the tool; return when its first message has come."""
    visit = talking(client)
    assert await visit.message() is not None
    return visit


async def answered(client: Client, stage: Stage) -> Visit:
    visit = talking(client)
    stage.released.set()
    assert said(await visit.messages()) == ["first", "second", TEXT]
    return visit


def resumed(client: Client, last: str) -> Visit:
    return client.visit("GET", headers={"last-event-id": last})


def said(messages: list[JsonObject]) -> list[Any]:
    """Return what was logged, and the content of an answer."""
    return [
        each["params"]["data"] if "method" in each else each["result"]["content"]
        for each in messages
    ]


async def logged() -> list[JsonObject]:
    rows = Event.objects.order_by("seq")
    payloads = await reader.run(list, rows.values_list("payload", flat=True))
    return [json.loads(each) for each in payloads]


async def ended(process: Process) -> None:
    """Wait until the calls are over, and all that they said is committed."""
    await until(lambda: not (process.running or len(process.log)))


async def stream() -> Stream:
    return await reader.run(Stream.objects.get)


@pytest.mark.parametrize("version", RESUMABLE)
async def test_a_stream_has_ids_and_rows(
    client: Client, process: Process, stage: Stage, version: str
) -> None:
    visit = talking(client)
    first = await message_of(visit)
    row = await stream()
    assert (row.state, row.head_seq, row.owner) == ("open", 1, process._row.id)
    assert row.tool == "peeks"
    stage.released.set()
    messages = [first, *await visit.messages()]
    assert said(messages) == ["first", "second", TEXT]
    assert messages == await logged()
    name, primed = row.public_id, REVISIONS[version].priming
    assert visit.ids == [f"{name}.{n}" for n in range(1 - primed, 4)]
    row = await stream()
    assert (row.state, row.head_seq) == ("completed", 3)
    assert json.loads(row.requests) == messages[-1]["id"]
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
async def test_the_stateless_era_leaves_no_rows(client: Client, stage: Stage) -> None:
    visit = await answered(client, stage)
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


async def test_a_tool_whose_name_no_row_could_have(connect: Connect) -> None:
    """PostgreSQL takes no NUL in a text."""
    client = await connect(NEWEST, headers={"accept": "text/event-stream"})
    found = await client.request("tools/call", {"name": "no\0such"})
    assert found.error["code"] == -32602


async def test_who_takes_no_json_gets_a_stream_with_ids(connect: Connect) -> None:
    client = await connect(NEWEST, headers={"accept": "text/event-stream"})
    visit = client.begin("ping", {})
    (answer,) = await visit.messages()
    assert answer["result"] == {}
    name = (await stream()).public_id
    assert visit.ids == [f"{name}.0", f"{name}.1"]


async def test_silence_opens_a_stream_that_can_be_resumed(
    client: Client, impatient: None, stage: Stage
) -> None:
    visit = await begun(client)
    await visit.leave()
    stage.released.set()
    again = resumed(client, visit.ids[0])
    assert said(await again.messages()) == ["first", "second", TEXT]


@pytest.mark.parametrize("version", RESUMABLE)
async def test_a_client_comes_back_for_the_rest(client: Client, stage: Stage) -> None:
    visit = await begun(client)
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


async def test_two_read_one_stream(client: Client, stage: Stage) -> None:
    visit = await begun(client)
    others = [resumed(client, visit.ids[0]) for _ in range(2)]
    for each in others:
        await each.opened()
    stage.released.set()
    assert said(await visit.messages()) == ["second", TEXT]
    for each in others:
        assert said(await each.messages()) == ["first", "second", TEXT]


async def test_a_call_goes_on_without_its_client(
    client: Client, process: Process, stage: Stage
) -> None:
    visit = await begun(client)
    await visit.leave()
    stage.released.set()
    await ended(process)
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


async def test_a_batch_of_which_one_had_no_place_is_kept(
    connect: Connect, process: Process, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect("2025-03-26")
    monkeypatch.setattr(process.threads, "ceiling", 0)
    params = {"name": "returns_sync", "arguments": {"which": "none"}}
    visit = client.post(
        [
            client.message("tools/call", params, id=1),
            client.message("tools/call", {"name": "peeks"}, id=2),
        ]
    )
    first = await visit.message()
    stage.released.set()
    messages = [first, *await visit.messages()]
    assert {each["id"] for each in messages if each and "id" in each} == {1, 2}
    await all_logged(process.log)
    # They can be had again.
    again = resumed(client, f"{(await stream()).public_id}.0")
    assert await again.messages() == messages


async def cancelled(client: Client, visit: Visit, process: Process) -> None:
    """Cancel the only call, and see that it ends without an answer."""
    request_id = json.loads((await stream()).requests)
    await client.notify("notifications/cancelled", {"requestId": request_id})
    assert await visit.messages() == []
    await all_logged(process.log)
    assert (await stream()).state == "aborted"


@pytest.mark.parametrize("leaves", [False, True])
async def test_a_cancelled_call_ends_without_an_answer(
    client: Client, process: Process, stage: Stage, leaves: bool
) -> None:
    visit = await begun(client)
    if leaves:
        await visit.leave()
        visit = resumed(client, visit.ids[-1])
        await visit.opened()
    await cancelled(client, visit, process)


async def test_a_session_that_is_closed_takes_its_streams_along(
    client: Client, process: Process, stage: Stage
) -> None:
    visit = await begun(client)
    again = resumed(client, visit.ids[-1])
    await again.opened()
    assert (await client.visit("DELETE").begun()).status == 204
    assert await visit.messages() == []
    assert await again.messages() == []
    assert len(process.log) == 0
    found = await counted()
    assert (found["Session"], found["Stream"], found["Event"]) == (0, 0, 0)


# -- clients that are sent away -----------------------------------------------------

POLLED: Final = [name for name, each in REVISIONS.items() if each.priming]
SENDING_AWAY: Final = ("sends_away", "peeks_and_sends_away")


def sent_away(client: Client, tool: str, **arguments: Any) -> Visit:
    return client.begin("tools/call", {"name": tool, "arguments": arguments, **LOGGED})


@pytest.mark.parametrize("tool", SENDING_AWAY)
@pytest.mark.parametrize("first", ["first", ""])
async def test_a_client_is_sent_away_and_comes_back(
    client: Client, process: Process, stage: Stage, tool: str, first: str
) -> None:
    visit = sent_away(client, tool, first=first)
    told = ["first"] if first else []
    assert said(await visit.messages()) == told
    assert visit.raw.endswith(b"retry: 1500\n\n")
    assert visit.raw.count(b"retry:") == 1
    name = (await stream()).public_id
    assert visit.ids == [f"{name}.{number}" for number in range(1 + len(told))]
    assert len(process.running) == 1
    again = await resumed(client, visit.ids[-1]).opened()
    stage.released.set()
    assert said(await again.messages()) == ["second", TEXT]
    assert said(await logged()) == [*told, "second", TEXT]
    assert (await stream()).state == "completed"
    assert len(process.log) == 0


async def test_a_young_call_does_not_look_after_a_connection_that_is_closed(
    client: Client, process: Process, stage: Stage
) -> None:
    visit = sent_away(client, "sends_away")
    assert said(await visit.messages()) == ["first"]
    while process.running._young:
        await reader.run(lambda: None)
    # Nobody waits for a client here: what is left of a test is a failure.
    waiting = {each.get_coro().__qualname__ for each in asyncio.all_tasks()}  # type: ignore[union-attr]
    assert not any("receive" in each for each in waiting)
    process.running.beat()
    stage.released.set()


@pytest.mark.parametrize("tool", SENDING_AWAY)
async def test_who_is_answered_at_once_need_not_come_back(
    client: Client, stage: Stage, tool: str
) -> None:
    visit = sent_away(client, tool, at_once=True)
    assert said(await visit.messages()) == ["first", TEXT]
    assert b"retry:" not in visit.raw


@pytest.mark.parametrize("version", sorted(set(REVISIONS) - set(POLLED)))
@pytest.mark.parametrize("tool", SENDING_AWAY)
async def test_who_cannot_come_back_stays(
    client: Client, stage: Stage, tool: str
) -> None:
    visit = sent_away(client, tool)
    assert await visit.message() is not None
    stage.released.set()
    assert said(await visit.messages()) == ["second", TEXT]
    assert b"retry:" not in visit.raw


@pytest.mark.parametrize("version", ["2025-11-25", *STATELESS])
async def test_who_takes_json_alone_stays(
    connect: Connect, stage: Stage, version: str
) -> None:
    client = await connect(version, headers={"accept": "application/json"})
    visit = sent_away(client, "sends_away")
    await stage.begun()
    stage.released.set()
    assert said(await visit.messages()) == [TEXT]


async def test_a_client_that_left_by_itself_is_not_sent_away(
    client: Client, process: Process, stage: Stage
) -> None:
    visit = sent_away(client, "sends_away", late=True)
    assert await visit.message() is not None
    await visit.leave()
    stage.released.set()
    again = resumed(client, visit.ids[-1])
    assert said(await again.messages()) == ["second", TEXT]
    assert b"retry:" not in again.raw


async def test_a_batch_is_not_sent_away(connect: Connect, stage: Stage) -> None:
    client = await connect("2025-03-26")
    params = {"name": "sends_away"}
    visit = client.post([client.message("tools/call", params), client.message("ping")])
    assert await visit.message() is not None
    stage.released.set()
    answers = await visit.messages()
    assert len([each for each in answers if "id" in each]) == 2
    assert b"retry:" not in visit.raw


async def test_what_cannot_be_logged_ends(
    client: Client, process: Process, stage: Stage
) -> None:
    rows: Any = Session.objects.all()
    await log_writer.run(rows._raw_delete, rows.db)
    visit = sent_away(client, "peeks_and_sends_away", first="")
    (answer,) = await visit.messages()
    assert "ended from outside" in answer["error"]["message"]
    assert b"retry:" not in visit.raw
    stage.released.set()
    await ended(process)


async def refused(client: Client, last: str) -> bytes:
    visit = await resumed(client, last).begun()
    assert visit.status == 400, last
    body = json.loads(await visit.body())
    assert body["error"]["code"] == -32600
    return visit.raw


async def test_wrong_ids_have_one_answer(connect: Connect, stage: Stage) -> None:
    client, other = await connect(NEWEST), await connect(NEWEST)
    visits = [await begun(client), await begun(other)]
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


async def test_a_session_that_is_gone_is_not_found_by_a_right_id(
    client: Client, stage: Stage
) -> None:
    visit = talking(client)
    stage.released.set()
    await visit.messages()
    await writer.run(Stream.objects.all().delete)
    await writer.run(lambda: Session.objects.all()._raw_delete("default"))
    assert (await resumed(client, visit.ids[0]).begun()).status == 404
    assert (await client.reply("question-1", {})).status == 404


async def test_a_message_that_is_missing_raises_an_alarm(
    client: Client, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    visit = await answered(client, stage)
    await writer.run(Event.objects.filter(seq=2).delete)
    again = resumed(client, visit.ids[0])
    assert said(await again.messages()) == ["first"]
    assert "lacks message 2" in caplog.text


async def test_a_process_that_stops_sends_its_readers_away(
    client: Client, process: Process, stage: Stage
) -> None:
    visit = await begun(client)
    again = resumed(client, visit.ids[-1])
    await again.opened()
    for listener in process.listeners:
        listener.end(retry_ms=2_000)
    assert await again.messages() == []
    assert b"retry: 2000" in again.raw
    stage.released.set()
    await visit.messages()


# -- what ends a call ---------------------------------------------------------------


@pytest.mark.parametrize("version", ["2024-11-05", NEWEST])
async def test_a_call_that_says_too_much_is_ended(
    connect: Connect,
    process: Process,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
) -> None:
    monkeypatch.setattr(request_log, "KEPT_EVENTS", 1)
    client = await connect(version)
    visit = await begun(client)
    assert (await stream()).head_seq == 1
    stage.released.set()
    (answer,) = await visit.messages()
    assert answer["error"]["code"] == -32603
    assert "This call sent more than 1 messages" in answer["error"]["message"]
    await all_logged(process.log)
    assert (await stream()).state == "aborted"
    assert not process.running


async def test_a_batch_that_says_too_much_is_ended(
    connect: Connect, process: Process, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "KEPT_EVENTS", 1)
    client = await connect("2025-03-26")
    arguments = {"after": "second"}
    params = {"name": "peeks", "arguments": arguments, **LOGGED}
    visit = client.post([client.message("tools/call", params, id=n) for n in (1, 2)])
    messages = await visit.messages()
    answers = [each for each in messages if "id" in each]
    assert {each["id"] for each in answers} == {1, 2}
    assert all(each["error"]["code"] == -32603 for each in answers)
    assert not process.running


@pytest.mark.parametrize("accept", ["application/json", None])
async def test_who_lost_its_stream_is_answered(
    connect: Connect, stage: Stage, accept: str | None
) -> None:
    client = await connect(NEWEST, headers={"accept": accept} if accept else {})
    visit = client.begin("tools/call", {"name": "waits"}, id="seven")
    await stage.begun()
    await log_writer.run(Stream.objects.all().delete)
    stage.released.set()
    (answer,) = await visit.messages()
    assert (answer["id"], answer["error"]["code"]) == ("seven", -32603)
    assert "ended from outside" in answer["error"]["message"]


@pytest.mark.parametrize("accept", ["application/json", None])
async def test_another_process_has_ended_the_call(
    connect: Connect, process: Process, stage: Stage, accept: str | None
) -> None:
    client = await connect(NEWEST, headers={"accept": accept} if accept else {})
    visit = client.begin("tools/call", {"name": "waits"}, id="seven")
    await stage.begun()
    owner = (await stream()).owner
    row = await Worker.objects.filter(pk=owner).afirst()
    dead = {owner: None if row is None else row.seen_ms}
    assert await log_writer.run(claims.claim_orphans, "another", dead) == 1
    stage.released.set()
    (answer,) = await visit.messages()
    assert answer["id"] == "seven"
    assert "The worker that ran this call is gone." in answer["error"]["message"]
    assert await logged() == [answer]


@pytest.mark.parametrize("faults", [1, 2])
@pytest.mark.parametrize("accept", ["application/json", None])
async def test_what_cannot_be_stored_is_answered(
    connect: Connect,
    process: Process,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    accept: str | None,
    faults: int,
) -> None:
    client = await connect(NEWEST, headers={"accept": accept} if accept else {})
    call = ("tools/call", {"name": "waits"})
    visit = client.begin(*call, id="seven")
    await stage.begun()
    Writes(monkeypatch).faults += [ValueError("a fault")] * faults
    stage.released.set()
    (answer,) = await visit.messages()
    assert "could not be stored" in answer["error"]["message"]
    assert "a fault" in caplog.text
    assert "a fault" not in str(answer)
    await all_logged(process.log)
    if faults == 1:
        assert await client.begin(*call, id="seven").messages() == [answer]


async def test_who_is_connected_is_told_what_cannot_be_stored(
    client: Client, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit = await begun(client)
    Writes(monkeypatch).faults += [ValueError("a fault")] * 2
    stage.released.set()
    (answer,) = await visit.messages()
    assert "could not be stored" in answer["error"]["message"]
    assert len(visit.ids) == 2


async def test_a_question_waits_for_a_client_that_comes_back(
    client: Client, stage: Stage
) -> None:
    visit = client.begin("tools/call", {"name": "talks_and_asks"})
    assert await visit.message() is not None
    await visit.leave()
    stage.released.set()
    again = resumed(client, visit.ids[-1])
    question = await message_of(again)
    assert question["method"] == "elicitation/create"
    result = {"action": "decline"}
    await client.post({"jsonrpc": "2.0", "id": question["id"], "result": result}).body()
    (answer,) = await again.messages()
    assert answer["result"]["content"][0]["text"] == "declined"


async def trimmed(client: Client, stage: Stage, tool: str, to: int) -> Visit:
    """Make a call of three messages of which only the last ones are kept."""
    visit = talking(client, tool, id="seven")
    stage.released.set()
    await visit.messages()
    await writer.run(Event.objects.filter(seq__lte=to).delete)
    await writer.run(Stream.objects.update, floor_seq=to)
    return visit


async def test_messages_that_have_expired(client: Client, stage: Stage) -> None:
    visit = await trimmed(client, stage, "peeks", 2)
    name = (await stream()).public_id
    for number in (0, 1):
        (answer,) = await resumed(client, f"{name}.{number}").messages()
        assert (answer["id"], answer["error"]["code"]) == ("seven", -32603)
        assert f"after number {number} of" in answer["error"]["message"]
    assert said(await resumed(client, f"{name}.2").messages()) == [TEXT]
    assert visit.ids[-1] == f"{name}.3"


async def test_a_request_that_comes_again_gets_what_is_kept(
    client: Client, stage: Stage
) -> None:
    visit = await trimmed(client, stage, "talks", 1)
    again = talking(client, "talks", id="seven")
    assert said(await again.messages()) == ["second", TEXT]
    assert again.ids == visit.ids[1:]


async def test_what_is_deleted_while_it_is_read_raises_no_alarm(
    client: Client,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    visit = await answered(client, stage)
    read = replay._events

    def late(place: Any) -> Any:
        Stream.objects.all().delete()
        return read(place)

    monkeypatch.setattr(replay, "_events", late)
    assert await resumed(client, visit.ids[0]).messages() == []
    assert "lacks message" not in caplog.text


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (OperationalError("The database is away."), "Streams could not be read: "),
        (ZeroDivisionError(), "ZeroDivisionError"),
    ],
)
async def test_no_fault_while_reading_ends_a_stream(
    client: Client,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: Exception,
    told: str,
) -> None:
    visit = await answered(client, stage)
    read, faults = replay._heads, [fault] * 2

    def failing(keys: Any) -> Any:
        if faults:
            raise faults.pop()
        return read(keys)

    monkeypatch.setattr(replay, "_heads", failing)
    monkeypatch.setattr(replay, "LOOK_S", 0.01)
    again = resumed(client, visit.ids[0])
    assert said(await again.messages()) == ["first", "second", TEXT]
    assert told in caplog.text
    began, over = [each for each in caplog.records if each.name == "mcp_app.streams"]
    assert "could not be read" in began.getMessage()
    assert over.getMessage().endswith("It works again.")
