"""Clients that mean harm: what each tried on a real server, once it had succeeded."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Final

import pytest

from mcp_app import asgi
from mcp_app.pools import database
from mcp_app.process import quotas
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import Unavailable
from mcp_app.server.handlers import definitions
from mcp_app.transports.http import replies
from mcp_app.transports.http.host_and_origin import HostAndOriginPolicy
from mcp_app.transports.http.request_handler import policy
from tests.asgi_client import (
    PREFIX,
    Client,
    JsonObject,
    Visit,
    outcome,
    routing_headers,
)
from tests.behaviours import Stage
from tests.marks import NEWEST_FIRST
from tests.serving import Connect
from tests.wire.middleware import WireCheck

NEWEST: Final = "2026-07-28"
ERAS: Final = ("2025-11-25", NEWEST)
SUM: Final = {"a": 1, "b": 2}
LOGGED: Final[JsonObject] = {"_meta": {f"{PREFIX}logLevel": "debug"}}


# -- half a body, and nothing more -----------------------------------------------


async def half_a_body(client: Client, process: Process) -> Visit:
    visit = client.visit("POST", b'{"jsonrpc"', complete=False)
    async with asyncio.timeout(60):
        while not process.uploads._reading:
            await asyncio.sleep(0.001)
    return visit


@pytest.mark.parametrize("version", ERAS)
async def test_half_a_body_keeps_no_process_from_stopping(
    connect: Connect, process: Process, version: str
) -> None:
    visit = await half_a_body(await connect(version), process)
    await process.drain()
    refused = await outcome(visit)
    assert (refused.status, refused.error["code"]) == (503, -32603)
    assert 2 <= int(refused.headers["retry-after"]) <= 5


async def test_t19_half_a_body_is_given_up(
    application: WireCheck, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "FIRST_SECONDS", 0.02)
    monkeypatch.setattr(quotas, "LOOK_EVERY", 0.01)
    visit = await half_a_body(Client(application), process)
    refused = await outcome(visit)
    assert (refused.status, refused.error["code"]) == (408, -32600)
    assert refused.headers["connection"] == "close"
    assert not process.uploads._cancelled


async def test_a_body_that_is_slow_but_comes(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "LOOK_EVERY", 0.005)
    client = await connect(NEWEST)
    visit = await half_a_body(client, process)
    await asyncio.sleep(0.02)
    await visit.leave()
    assert not process.uploads._reading
    assert (await client.call("drill_add", a=1, b=2)).text == "3"


async def test_a_cancelled_request(application: WireCheck, process: Process) -> None:
    visit = await half_a_body(Client(application), process)
    visit.task.cancel()
    await visit.done()
    assert visit.task.cancelled()
    assert not process.uploads._reading


ROOM: Final = 100_000
PIECE: Final = b" " * 30_000


async def in_pieces(client: Client, process: Process, count: int) -> Visit:
    before = process.uploads._total_size
    visit = client.visit("POST", [PIECE] * count, complete=False)
    async with asyncio.timeout(60):
        while process.uploads._total_size == before:
            await asyncio.sleep(0)
    return visit


@pytest.mark.parametrize("mcp", [{"LIMITS": {"bodies": ROOM}}])
async def test_t19_half_bodies_have_so_much_room_together(
    connect: Connect, process: Process
) -> None:
    client = await connect(NEWEST)
    halves = [await in_pieces(client, process, 1) for _ in range(3)]
    call = client.message("tools/call", {"name": "drill_add", "arguments": SUM})
    whole = json.dumps(call).encode().ljust(3 * len(PIECE))
    pieces = [whole[at : at + len(PIECE)] for at in range(0, len(whole), len(PIECE))]
    visit = client.visit("POST", pieces, headers=routing_headers(call))
    assert (await outcome(visit)).text == "3"
    # The two oldest made room.
    for half in halves[:2]:
        refused = await outcome(half)
        assert (refused.status, refused.error["code"]) == (408, -32600)
        assert "needed its room" in refused.error["message"]
    assert process.uploads._total_size == len(PIECE)
    await halves[2].leave()
    assert process.uploads._total_size == 0


@pytest.mark.parametrize("mcp", [{"LIMITS": {"bodies": ROOM}}])
async def test_t19_a_refused_request_is_read_only_while_there_is_room(
    application: WireCheck, process: Process
) -> None:
    stranger = Client(application, path="/mcp/private")
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping"}).encode()
    pieces, headers = [body[:9], body[9:]], {"content-length": str(len(body))}
    refused = await outcome(stranger.visit("POST", pieces, headers=headers))
    assert (refused.status, refused.answer.get("id")) == (401, 7)
    honest = await in_pieces(Client(application), process, 3)
    halves = ROOM - process.uploads._total_size - 5
    process.uploads._total_size += halves
    refused = await outcome(stranger.visit("POST", pieces, headers=headers))
    process.uploads._total_size -= halves
    assert (refused.status, refused.answer.get("id")) == (401, None)
    assert process.uploads._total_size == 3 * len(PIECE)
    await honest.leave()


async def test_t19_a_stop_waits_for_no_refused_request(
    application: WireCheck, process: Process
) -> None:
    stranger = Client(application, path="/mcp/private")
    headers = {"content-length": "40"}
    visit = stranger.visit("POST", b"{", headers=headers, complete=False)
    async with asyncio.timeout(60):
        while not process.uploads._sizes:
            await asyncio.sleep(0)
    process.uploads.give_up_all()
    refused = await outcome(visit)
    assert (refused.status, refused.answer.get("id")) == (401, None)
    assert not process.uploads._cancelled


# -- a reader that takes nothing ---------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "SEND_SECONDS", 0.02)


@pytest.mark.usefixtures("after_a_second")
async def test_t19_a_call_ends_with_its_reader(
    connect: Connect, stage: Stage, impatient: None
) -> None:
    client = await connect(NEWEST)
    params = {"name": "waits", "arguments": {}, **LOGGED}
    visit = client.begin("tools/call", params)
    visit.stalled.clear()
    await stage.begun()
    # The first heartbeat, which comes after a second, is what is not taken.
    async with asyncio.timeout(60):
        while stage.told != ["cancelled"]:
            await asyncio.sleep(0.005)
    await visit.done()


async def test_in_a_session_the_call_goes_on_without_its_reader(
    connect: Connect, stage: Stage, process: Process, impatient: None
) -> None:
    client = await connect("2025-11-25")
    call = ("tools/call", {"name": "talks", "arguments": {}})
    visit = client.begin(*call, id="seven")
    visit.stalled.clear()
    await stage.begun()
    # The server is done with the request, and can close the connection.
    await visit.done()
    (run,) = process.running
    assert run.end is None
    stage.released.set()
    again = client.begin(*call, id="seven")
    assert (await again.messages())[-1]["result"]["content"][0]["text"] == "talked"


MESSAGES: Final = 12


async def unread(client: Client, process: Process, size: int) -> Visit:
    """Begin a call whose messages, of so many bytes, nobody reads; wait for them."""
    before = process.queues._waiting
    arguments = {"n": MESSAGES, "delay_ms": 0, "payload_bytes": size}
    params = {"name": "drill_count", "arguments": arguments}
    visit = client.begin("tools/call", {**params, "_meta": {"progressToken": "t"}})
    visit.stalled.clear()
    async with asyncio.timeout(60):
        while process.queues._waiting == before or len(process.running):
            await asyncio.sleep(0.001)
    return visit


@pytest.mark.parametrize("mcp", [{"LIMITS": {"queues": 1_000_000}}])
async def test_t19_readers_that_take_nothing_have_so_much_room_together(
    connect: Connect, process: Process
) -> None:
    client = await connect(NEWEST)
    small = await unread(client, process, 10_000)
    full = await unread(client, process, 50_000)
    newest = await unread(client, process, 40_000)
    # The fullest went first, and left nothing.
    await full.done()
    assert process.queues._waiting < 55_000 * MESSAGES
    for visit in (small, newest):
        visit.stalled.set()
        assert (await visit.messages())[-1]["result"]["content"]
    assert process.queues._waiting == 0


# -- long names ------------------------------------------------------------------


async def test_long_paths_are_not_kept(
    application: WireCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = application._application
    assert isinstance(switch, asgi.Switch)
    for length in (100, 60_000):
        client = Client(application, path="/mcp/" + "x" * length)
        assert (await client.sent({})).status == 404
    assert [len(path) for _, path in switch._places] == [105]


async def test_long_headers_are_not_kept(application: WireCheck) -> None:
    for digits in (4, 60_000):
        changes = {"host": "localhost:" + "1" * digits}
        served = await Client(application, headers=changes).call("drill_add", a=1, b=2)
        assert served.text == "3"
    assert isinstance(policy, HostAndOriginPolicy)
    kept = [len(host or b"") for host, _ in policy._cors_by_headers]
    assert kept == [len("localhost:1111")]


# -- two eras in one body --------------------------------------------------------


async def test_a_stateless_message_in_a_batch(connect: Connect) -> None:
    client = await connect("2025-03-26")
    call = client.message("tools/call", {"name": "drill_add", "arguments": {}})
    call["params"]["_meta"] = Client(client.application, NEWEST).meta()
    refused = await outcome(client.visit("POST", json.dumps([call]).encode()))
    assert (refused.status, refused.error["code"]) == (400, -32600)
    assert "stateless" in refused.error["message"]


# -- ids that are kept, and said again ---------------------------------------------

LONG: Final = "x" * 1_025


@pytest.mark.parametrize("version", NEWEST_FIRST)
@pytest.mark.parametrize("named", ["id", "token"])
async def test_ids_of_megabytes_are_not_kept(
    connect: Connect, process: Process, version: str, named: str
) -> None:
    client = await connect(version)
    params = {"name": "drill_add", "arguments": {"a": 1, "b": 2}}
    for long, status in ((LONG, 400), (LONG[1:], 200)):
        if named == "id":
            visit = client.begin("tools/call", params, id=long)
        else:
            meta = {"_meta": {"progressToken": long}}
            visit = client.begin("tools/call", {**params, **meta})
        found = await outcome(visit)
        assert found.status == status
        if status == 400:
            assert found.error["code"] == -32600
            assert "1,024 characters" in found.error["message"]
            assert LONG.encode() not in visit.raw
    assert len(process.log) == 0


@pytest.mark.parametrize("named", ["id", "token"])
async def test_nor_are_those_of_a_batch(connect: Connect, named: str) -> None:
    client = await connect("2025-03-26")
    messages = [client.message("ping"), client.message("ping", id="last")]
    if named == "id":
        messages[1]["id"] = LONG
    else:
        messages[1]["params"] = {"_meta": {"progressToken": LONG}}
    refused = await outcome(client.post(messages))
    assert (refused.status, refused.error["code"]) == (400, -32600)
    assert "1,024 characters" in refused.error["message"]


# -- a database that others keep busy ----------------------------------------------


async def test_work_does_not_wait_for_all_that_waited_before_it(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    holds, released = threading.Event(), threading.Event()

    def hold() -> None:
        holds.set()
        released.wait(60)

    slow = asyncio.create_task(database.writer.run(hold))
    await asyncio.to_thread(holds.wait)
    with monkeypatch.context() as patched:
        patched.setattr(database, "QUEUE_SECONDS", 0.02)
        late = asyncio.create_task(database.writer.run(done.append, 1))
        await asyncio.sleep(0.05)
        released.set()
        with pytest.raises(Unavailable, match=r"^Too much waits for the") as refused:
            await late
    assert refused.value.http_status == 503
    assert refused.value.headers["Retry-After"] == "5"
    await slow
    await database.writer.run(done.append, 2)
    assert done == [2]


# -- rows without end ------------------------------------------------------------


async def test_a_session_watches_so_many_resources_only(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "MOST_WATCHED", 2)
    client = await connect("2025-11-25")

    async def subscribe(number: int) -> JsonObject:
        uri = f"test://template/{number}/data"
        return (await client.request("resources/subscribe", {"uri": uri})).answer

    assert (await subscribe(1))["result"] == (await subscribe(2))["result"] == {}
    refused = (await subscribe(3))["error"]
    assert refused["code"] == -32602
    assert "2 resources" in refused["message"]
    # One that it watches is none more.
    assert (await subscribe(2))["result"] == {}
    gone = {"uri": "test://template/1/data"}
    assert (await client.request("resources/unsubscribe", gone)).result == {}
    assert (await subscribe(3))["result"] == {}
