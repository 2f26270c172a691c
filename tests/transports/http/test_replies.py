"""JSON or a stream, and what happens when a client leaves or cancels."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from mcp_app.invalidation.workers import FRESHNESS
from mcp_app.process.current import process
from mcp_app.process.quotas import Queues
from mcp_app.process.runtime import Process
from mcp_app.transports.asgi_types import Message
from mcp_app.transports.http import replies
from mcp_app.transports.http.replies import SSE_HEADERS, EventStream
from tests.asgi_client import Client, JsonObject, Visit, outcome
from tests.behaviours import Stage
from tests.marks import NEWEST_FIRST, STATEFUL_NEWEST_FIRST
from tests.serving import Connect
from tests.streams.logging_rows import message_of, until

NEWEST: Final = "2026-07-28"
ERAS: Final = ("2025-11-25", NEWEST)
JSON_ONLY: Final = {"accept": "application/json"}
STREAM_HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
    "content-encoding": "identity",
}
# Longer than `told` waits: what ends such a call is not its own time limit.
PATIENT: Final = ({"LIMITS": {"tool_timeout": 600}},)
LOGGED: Final[JsonObject] = {"_meta": {"io.modelcontextprotocol/logLevel": "debug"}}


@pytest.fixture
def version() -> str:
    return "2025-11-25"


@pytest.fixture
async def client(connect: Connect, version: str) -> Client:
    return await connect(version)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is too long at once."""
    monkeypatch.setattr(replies, "PROMOTE_AFTER", 0.01)


def talking(client: Client, tool: str = "talks", **arguments: Any) -> Visit:
    return client.begin("tools/call", {"name": tool, "arguments": arguments, **LOGGED})


async def told(stage: Stage, *words: str) -> None:
    """Wait until the tool has noted these words."""
    await until(lambda: stage.told == list(words))


# -- JSON that turns into a stream ----------------------------------------------


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_the_first_notification_opens_a_stream(
    client: Client, stage: Stage
) -> None:
    visit = await talking(client, after="second").begun()
    assert (visit.status, visit.headers) == (200, STREAM_HEADERS)
    first = await message_of(visit)
    assert first["params"]["data"] == "first"
    assert not visit.ended
    stage.released.set()
    second, answer = await visit.messages()
    assert second["params"]["data"] == "second"
    assert answer["result"]["content"] == [{"type": "text", "text": "talked"}]


@pytest.mark.parametrize("version", ERAS)
async def test_json_alone_gets_no_notifications(
    connect: Connect, stage: Stage, impatient: None, version: str
) -> None:
    client = await connect(version, headers=JSON_ONLY)
    dropped = process().build_report().dropped
    visit = talking(client, after="second")
    await stage.begun()
    await asyncio.sleep(0.03)
    assert visit.status == 0
    stage.released.set()
    found = await outcome(visit)
    assert found.headers["content-type"] == "application/json"
    assert found.text == "talked"
    # Operators see how many.
    assert process().build_report().dropped == dropped + 2


@pytest.mark.parametrize("tool", ["visits", "visits_sync"])
async def test_json_alone_cannot_carry_a_question_but_names_the_url(
    connect: Connect, tool: str
) -> None:
    """client/elicitation of 2025-11-25, "URL Elicitation Required Error"."""
    client = await connect("2025-11-25", headers=JSON_ONLY)
    found = await client.call(tool)
    assert (found.status, found.error["code"]) == (200, -32042)
    (elicitation,) = found.error["data"]["elicitations"]
    assert elicitation.pop("elicitationId")
    assert elicitation == {
        "mode": "url",
        "message": "Pay there.",
        "url": "https://example.org/pay",
    }


@pytest.mark.parametrize("tool", ["visits", "visits_sync"])
async def test_json_alone_carries_the_question_that_ends_a_request(
    connect: Connect, tool: str
) -> None:
    client = await connect(NEWEST, headers=JSON_ONLY)
    found = await client.call(tool)
    assert found.result["resultType"] == "input_required"
    (asked,) = found.result["inputRequests"].values()
    assert asked["params"]["url"] == "https://example.org/pay"


@pytest.mark.usefixtures("after_a_second")
async def test_silence_becomes_a_stream_with_heartbeats(
    connect: Connect, process: Process, stage: Stage
) -> None:
    clients = [await connect(version) for version in ERAS]
    plain = await connect(NEWEST, headers=JSON_ONLY)
    visits = [talking(client, "waits") for client in clients]
    json_visit = talking(plain, "waits")
    began = asyncio.get_running_loop().time()
    for visit in visits:
        await visit.comment()
        assert visit.headers == STREAM_HEADERS
    assert asyncio.get_running_loop().time() - began >= 0.9
    process.running.beat()
    for visit in visits:
        await visit.comment()
    assert json_visit.status == 0
    stage.released.set()
    for visit in [*visits, json_visit]:
        assert (await outcome(visit)).text == "waited"
    assert json_visit.headers["content-type"] == "application/json"


@pytest.mark.parametrize("mcp", [{"LIMITS": {"heartbeat": 0.5}}])
async def test_the_process_beats(client: Client, stage: Stage) -> None:
    standing = await client.standing()
    visit = await talking(client).begun()
    before = (standing.comments, visit.comments)
    await asyncio.gather(standing.comment(), visit.comment())
    assert (standing.comments, visit.comments) > before
    stage.released.set()
    await visit.body()
    await standing.leave()


async def test_beats_are_tens_of_seconds_apart(
    client: Client, process: Process
) -> None:
    standing = await client.standing()
    before = standing.comments
    process._ticker._beaten = process.loop.time() - 10
    await asyncio.sleep(2 * FRESHNESS)
    await standing.quiet()
    assert standing.comments == before
    process._ticker._beaten = process.loop.time() - 60
    await standing.comment()
    await standing.leave()


async def test_a_promoted_error_comes_as_an_event(
    connect: Connect, stage: Stage, impatient: None
) -> None:
    client = await connect(NEWEST)
    visit = await talking(client, "waits_and_refuses").begun()
    stage.released.set()
    found = await outcome(visit)
    assert found.status == 200
    assert found.headers["content-type"] == "text/event-stream"
    assert found.error["code"] == -32021


async def test_a_quick_error_comes_with_its_status(
    connect: Connect, stage: Stage
) -> None:
    stage.released.set()
    for headers in (None, {"accept": "text/event-stream"}):
        client = await connect(NEWEST, headers=headers)
        found = await outcome(talking(client, "waits_and_refuses"))
        assert found.status == 400
        assert found.headers["content-type"] == "application/json"
        assert found.error["code"] == -32021


async def test_a_batch_of_calls_that_last(
    connect: Connect, process: Process, stage: Stage, impatient: None
) -> None:
    client = await connect("2025-03-26")
    waiting = [
        client.message("tools/call", {"name": "waits"}, id=request_id)
        for request_id in (1, 2)
    ]
    visit = await client.post(waiting).begun()
    await visit.comment()
    process.running.beat()
    await visit.comment()
    stage.released.set()
    found = await outcome(visit)
    assert {each["id"] for each in found.messages} == {1, 2}


# -- a client that leaves -------------------------------------------------------


@pytest.mark.parametrize("mcp", PATIENT)
@pytest.mark.parametrize("promoted", [False, True])
async def test_leaving_cancels_a_stateless_call(
    connect: Connect,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    process: Process,
    promoted: bool,
) -> None:
    if promoted:
        monkeypatch.setattr(replies, "PROMOTE_AFTER", 0.0)
    client = await connect(NEWEST)
    visit = talking(client, "waits")
    await stage.begun()
    if promoted:
        await visit.begun()
    await visit.leave()
    await told(stage, "cancelled")
    assert not process.running


@pytest.mark.parametrize("mcp", PATIENT)
async def test_leaving_cancels_a_stateless_thread(
    connect: Connect, stage: Stage
) -> None:
    client = await connect(NEWEST)
    visit = talking(client, "waits_sync")
    await asyncio.to_thread(stage.entered_thread.wait, 60)
    await visit.leave()
    await told(stage, "cancelled")
    assert visit.raw == b""


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
@pytest.mark.parametrize("promoted", [False, True])
async def test_leaving_does_not_cancel_a_call_of_a_session(
    connect: Connect,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    promoted: bool,
) -> None:
    if promoted:
        monkeypatch.setattr(replies, "PROMOTE_AFTER", 0.0)
    client = await connect(version)
    visit = talking(client, "waits")
    await stage.begun()
    if promoted:
        await visit.begun()
    await visit.leave()
    assert stage.told == []
    # The request runs: its id is taken, and it can be cancelled.
    request_id = json.loads(json.dumps(client.message("ping")))["id"] - 1
    found = await client.request("ping", id=request_id)
    assert found.status == 400
    stage.released.set()
    await told(stage, "done")


@pytest.mark.parametrize("version", ERAS)
async def test_a_client_that_leaves_before_the_answer_is_sent(
    client: Client, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Its server may say so with an error: nothing of it is logged as a failure."""
    visit = talking(client, "drill_add", a=1, b=2)
    visit._gone.set()
    await visit.done()
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


async def test_a_server_that_stops_the_request(connect: Connect, stage: Stage) -> None:
    """Some servers cancel the application when the client leaves."""
    for version in ERAS:
        client = await connect(version)
        stage.entered.clear()
        visit = talking(client, "waits")
        await stage.begun()
        visit.task.cancel()
        await asyncio.wait([visit.task])
        assert visit.task.cancelled()
    stage.released.set()
    await told(stage, "lost", "done")


# -- notifications/cancelled ----------------------------------------------------


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
@pytest.mark.parametrize("tool", ["waits", "talks", "stubborn", "stubborn_talker"])
async def test_a_cancelled_call_has_no_answer(
    client: Client, stage: Stage, tool: str
) -> None:
    params = {"name": tool, "arguments": {}}
    visit = client.begin("tools/call", params, id=7)
    await stage.begun()
    cancelled = {"requestId": 7, "reason": "Enough."}
    assert (await client.notify("notifications/cancelled", cancelled)).status == 202
    found = await outcome(visit)
    assert (found.status, found.headers["content-type"]) == (200, "text/event-stream")
    assert all("method" in each for each in found.messages)
    assert (await client.request("ping", id=7)).status == 200


async def test_nothing_is_said_after_the_end(client: Client, stage: Stage) -> None:
    visit = client.begin("tools/call", {"name": "stubborn_talker"}, id=7)
    await stage.begun()
    await client.notify("notifications/cancelled", {"requestId": 7})
    assert (await outcome(visit)).raw == b""
    assert stage.told == ["caught"]


async def test_a_cancelled_thread_has_no_answer(client: Client, stage: Stage) -> None:
    visit = client.begin("tools/call", {"name": "waits_sync"}, id="seven")
    await asyncio.to_thread(stage.entered_thread.wait, 60)
    await client.notify("notifications/cancelled", {"requestId": "seven"})
    assert (await outcome(visit)).raw == b""
    await told(stage, "cancelled")


async def test_a_stubborn_stateless_call_has_no_answer(
    connect: Connect, stage: Stage
) -> None:
    client = await connect(NEWEST)
    visit = talking(client, "stubborn")
    await stage.begun()
    await asyncio.sleep(0.02)
    await visit.leave()
    await told(stage, "caught")
    assert (visit.status, visit.raw) == (0, b"")


@pytest.mark.parametrize("mcp", [{"LIMITS": {"drain": 0.02}}])
@pytest.mark.parametrize("version", ERAS)
async def test_a_stop_answers_what_it_ends(
    client: Client, process: Process, stage: Stage
) -> None:
    visit = talking(client, "waits")
    await stage.begun()
    await process.drain()
    found = await outcome(visit)
    # Not 503: a proxy would let it run again elsewhere.
    assert (found.status, found.error["code"]) == (200, -32603)
    assert stage.told == ["cancelled"]


async def test_a_stop_lets_calls_finish(
    client: Client, process: Process, stage: Stage
) -> None:
    visit = talking(client, "waits")
    await stage.begun()
    await until(lambda: process.running._lasting)
    draining = asyncio.create_task(process.drain())
    await asyncio.sleep(0)
    assert (await client.request("ping")).status == 503
    stage.released.set()
    found = await outcome(visit)
    assert (found.text, found.headers["connection"]) == ("waited", "close")
    await draining


# -- event stream ----------------------------------------------------------------------


ROOM: Final = 2**30
MESSAGE: Final = b"event: message\ndata: {}\n\n"
BEAT: Final = b":\n\n"


class Reader:
    def __init__(self) -> None:
        self.parts: list[Message] = []
        self.ready = asyncio.Event()
        self.ready.set()
        self.error: Exception | None = None

    async def send(self, message: Message) -> None:
        await self.ready.wait()
        if self.error is not None:
            raise self.error
        self.parts.append(message)

    @property
    def bodies(self) -> list[bytes]:
        return [part["body"] for part in self.parts if "body" in part]


def streaming(reader: Reader, queues: Queues | None = None) -> EventStream:
    return EventStream(reader.send, [], queues or Queues(ROOM))


@pytest.fixture
async def reader() -> AsyncIterator[Reader]:
    yield Reader()
    for _ in range(5):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_whole_of_a_stream(reader: Reader) -> None:
    stream = streaming(reader)
    stream.queue_message(b"{}")
    await settled()
    stream.queue_heartbeat()
    await settled()
    stream.end_output(retry_ms=2000)
    stream.end_output()
    stream.queue_message(b"{}")
    stream.queue_heartbeat()
    await stream.closed
    start, *_ = reader.parts
    assert (start["type"], start["status"]) == ("http.response.start", 200)
    assert start["headers"] == SSE_HEADERS
    assert reader.bodies == [MESSAGE, BEAT, b"retry: 2000\n\n", b""]
    assert [part.get("more_body", False) for part in reader.parts[1:]] == [
        True,
        True,
        True,
        False,
    ]


async def test_what_waits_goes_together(reader: Reader) -> None:
    stream = streaming(reader)
    stream.queue_message(b"{}")
    stream.queue_message(b"{}")
    # Whoever gets a message needs no heartbeat.
    stream.queue_heartbeat()
    await settled()
    assert reader.bodies == [MESSAGE + MESSAGE]
    stream.abandon_output()


@pytest.mark.parametrize("began", [False, True])
async def test_a_reader_that_is_gone(reader: Reader, began: bool) -> None:
    stream = streaming(reader)
    reader.ready.clear()
    if began:
        stream.queue_message(b"{}")
        await settled()
    stream.abandon_output()
    stream.abandon_output()
    stream.queue_message(b"{}")
    stream.end_output()
    await settled()
    assert stream.closed.cancelled()
    assert reader.parts == []


async def test_t19_a_reader_for_whom_too_much_waits(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for the end of the stream is told, so that nothing stays open."""
    monkeypatch.setattr(replies, "MAX_QUEUED_BYTES", 100)
    queues = Queues(ROOM)
    stream = streaming(reader, queues)
    reader.ready.clear()
    stream.queue_message(b"x" * 1000)
    await settled()
    # One large message is no reason: only what waits behind it is counted.
    assert not stream.closed.done()
    stream.queue_message(b"x")
    assert stream.closed.done()
    stream.queue_message(b"{}")
    await settled()
    assert reader.parts == []
    # Nothing of it is left.
    assert (stream.waiting, queues._waiting, len(stream._queue)) == (0, 0, 0)


async def test_a_reader_that_keeps_up_with_much(reader: Reader) -> None:
    """What a tool writes at once waits until the reader has had its chance."""
    stream = streaming(reader)
    for _ in range(10):
        stream.queue_message(b"x" * 2_000_000)
    stream.end_output()
    await asyncio.wait_for(stream.closed, 60)
    assert sum(map(len, reader.bodies)) > 20_000_000
    assert stream.waiting == 0


async def test_t19_a_server_gets_a_little_at_a_time(reader: Reader) -> None:
    """It keeps what it has taken until the client reads, or has gone."""
    stream = streaming(reader)
    sent = [b"%d" % number * size for number, size in enumerate((9, 10**6, 9, 50_000))]
    for each in sent:
        stream.queue_message(each)
    stream.end_output()
    await asyncio.wait_for(stream.closed, 60)
    assert b"".join(reader.bodies) == b"".join(
        b"event: message\ndata: " + each + b"\n\n" for each in sent
    )
    assert max(map(len, reader.bodies)) == replies.PIECE


async def test_t19_the_fullest_of_all_queues_is_ended_first(reader: Reader) -> None:
    queues, slow = Queues(10_000), Reader()
    slow.ready.clear()
    full, small = streaming(slow, queues), streaming(slow, queues)
    full.queue_message(b"x" * 6_000)
    small.queue_message(b"x" * 3_000)
    quick = streaming(reader, queues)
    await settled()
    for _ in range(3):
        quick.queue_message(b"x" * 900)
        await settled()
    # All that was sent to the quick one counts no more.
    assert not full.closed.done()
    small.queue_message(b"x" * 1_500)
    assert full.closed.done()
    assert not small.closed.done()
    assert not quick.closed.done()
    for each in (small, quick):
        each.abandon_output()
    assert queues._waiting == 0


async def test_a_reader_that_takes_too_long(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "SEND_SECONDS", 0.01)
    stream = streaming(reader)
    stream.queue_message(b"{}")
    await settled()
    reader.ready.clear()
    stream.queue_message(b"{}")
    await asyncio.wait_for(stream.closed, 60)
    stream.queue_message(b"{}")
    assert reader.bodies == [MESSAGE]
    assert stream.waiting == 0


@pytest.mark.parametrize("error", [OSError("gone"), RuntimeError("after the end")])
async def test_a_server_that_says_so(reader: Reader, error: Exception) -> None:
    reader.error = error
    stream = streaming(reader)
    stream.queue_message(b"{}")
    await asyncio.wait_for(stream.closed, 60)
    assert reader.parts == []
