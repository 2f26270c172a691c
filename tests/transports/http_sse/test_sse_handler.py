"""HTTP+SSE of 2024-11-05, in one process."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from math import inf
from typing import Any, Final

import pytest
from django.test import override_settings

from mcp_app import log
from mcp_app.models import Session, Stream
from mcp_app.pools.database import log_writer, reader, writer
from mcp_app.process import lifecycle
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.revisions import STATEFUL
from mcp_app.server.request import Request
from mcp_app.streams import request_log, sse_reader
from mcp_app.streams.log_writer import Batch, write
from mcp_app.streams.open_session import OpenSession, SessionNotFound
from mcp_app.streams.request_log import OwnedStream, RequestLog
from mcp_app.transports.asgi_types import path_below_root
from mcp_app.transports.http import call_handler
from mcp_app.transports.http.request_handler import MAY_NOT
from mcp_app.transports.http_sse.sse_handler import MessagesHandler
from tests.asgi_client import Client, JsonObject, Outcome, Visit, outcome
from tests.behaviours import Stage
from tests.marks import STATEFUL_NEWEST_FIRST
from tests.old_client import OldClient
from tests.serving import Connect, counted
from tests.streams.logging_rows import further, opening, until
from tests.streams.writes import Writes
from tests.wire.middleware import WireCheck

pytestmark = pytest.mark.databases

NEWEST: Final = "2025-11-25"
STATELESS: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
URI: Final = "memo://fixed"

Opened = Callable[..., Awaitable[OldClient]]


@pytest.fixture
def opened(application: WireCheck) -> Opened:
    """Open a session of HTTP+SSE."""

    async def open_one(version: str = NEWEST, **options: Any) -> OldClient:
        return await OldClient(application, version, **options).open()

    return open_one


@pytest.fixture
def version() -> str:
    return NEWEST


@pytest.fixture
async def client(opened: Opened, version: str) -> AsyncIterator[OldClient]:
    """A session, which ends with the test."""
    made = await opened(version)
    yield made
    await made.leave()


async def nothing_left() -> None:
    """Wait until the database has nothing of a session any more."""
    async with asyncio.timeout(60):
        while (found := await counted())["Session"] or found["Stream"]:
            await asyncio.sleep(0.01)


async def rows() -> list[Stream]:
    return await reader.run(list, Stream.objects.order_by("pk"))


@pytest.mark.parametrize("version", STATEFUL)
async def test_a_session(application: WireCheck, version: str) -> None:
    client = await OldClient(application, version).connect()
    assert client.stream.headers["content-type"] == "text/event-stream"
    assert client.stream.headers["x-accel-buffering"] == "no"
    assert client.stream.raw.startswith(b"event: endpoint\ndata: /mcp/messages?")
    result = await client.initialize()
    assert result["protocolVersion"] == version
    await client.notify("notifications/initialized")
    assert (await client.request("ping")).result == {}
    assert (await client.call("drill_add", a=20, b=22)).text == "42"
    assert (await client.call("drill_ledger", key="a", seconds=0)).text == "1"
    assert (await client.request("tools/list")).result["tools"]
    assert b"event: message\ndata: {" in client.stream.raw
    assert client.stream.ids == []
    await client.leave()


@pytest.mark.parametrize("wanted", ["2026-07-28", "2030-01-01", "1.0"])
async def test_what_nobody_speaks_is_the_newest(opened: Opened, wanted: str) -> None:
    client = await opened(wanted)
    (row,) = await reader.run(list, Session.objects.all())
    assert (row.revision, row.client_name) == (NEWEST, "drill-client 1.0")
    assert row.initialized
    await client.leave()


@pytest.mark.parametrize(
    ("root", "forced", "path", "messages"),
    [
        ("", None, "/mcp/sse/", "/mcp/messages"),
        ("", None, "/mcp/pages/sse", "/mcp/pages/messages"),
        ("/app", None, "/mcp/sse", "/app/mcp/messages"),
        ("/app/", None, "/app/mcp/pages/sse/", "/app/mcp/pages/messages"),
        ("/app", "/site", "/mcp/sse", "/site/mcp/messages"),
        ("//evil.example", None, "/mcp/sse", "/evil.example/mcp/messages"),
    ],
)
async def test_the_address_has_the_sites_prefix(
    application: WireCheck, root: str, forced: str | None, path: str, messages: str
) -> None:
    with override_settings(FORCE_SCRIPT_NAME=forced):
        client = OldClient(application, path=path)
        visit = client.visit("GET", path, accept="text/event-stream")
        visit.scope["root_path"] = root
        await visit.opened()
    assert visit.endpoint.partition("?")[0] == messages
    await visit.leave()


@pytest.mark.parametrize("path", ["/mcp/sse", "/mcp/pages/sse/"])
async def test_a_client_that_probes(application: WireCheck, path: str) -> None:
    """It POSTs `initialize` first, and takes up the stream where that is refused."""
    new = Client(application, "2025-11-25", path=path)
    probed = await outcome(new.post(new.initialize()))
    assert probed.status == 405
    assert probed.headers["allow"] == "GET, OPTIONS"
    client = await OldClient(application, path=path).open()
    assert (await client.request("tools/list")).result["tools"]
    await client.leave()


@pytest.mark.parametrize("path", ["/mcp/messages", "/mcp/pages/messages"])
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_other_methods(application: WireCheck, path: str, method: str) -> None:
    visit = OldClient(application).visit(method, path)
    assert (await outcome(visit)).status == 405
    assert visit.headers["allow"] == "POST, OPTIONS"
    visit = OldClient(application).visit("DELETE", "/mcp/sse")
    assert (await outcome(visit)).status == 405


@pytest.mark.parametrize(
    ("path", "allow"), [("/mcp/sse", "GET"), ("/mcp/messages", "POST")]
)
async def test_options(application: WireCheck, path: str, allow: str) -> None:
    visit = OldClient(application).visit("OPTIONS", path)
    await visit.body()
    assert (visit.status, visit.headers["allow"]) == (204, f"{allow}, OPTIONS")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"accept": "application/json"}, 406),
        ({"origin": "https://evil.example"}, 403),
        ({"host": "evil.example"}, 421),
    ],
)
async def test_a_stream_that_is_refused(
    application: WireCheck, headers: dict[str, str], status: int
) -> None:
    before = await counted()
    visit = OldClient(application).visit("GET", "/mcp/sse", b"", **headers)
    assert (await outcome(visit)).status == status
    assert await counted() == before


async def test_who_may_not_come_in(application: WireCheck) -> None:
    client = OldClient(application)
    for path in ("/mcp/private/sse", "/mcp/private/messages?session_id=a"):
        for method in ("GET", "POST"):
            found = await outcome(client.visit(method, path))
            assert (found.status, bool(found.headers["www-authenticate"])) == (
                401,
                True,
            )
    for slug, status in (("unheard-of", 404), ("off", 503), ("sse", 404)):
        found = await outcome(client.visit("GET", f"/mcp/{slug}/sse"))
        assert found.status == status


async def refused(client: OldClient, message: object, **headers: str) -> Outcome:
    """POST what must be refused; nothing comes of it on the stream."""
    found = await client.sent(message, **headers)
    assert found.status >= 400
    assert found.headers["content-type"] == "application/json"
    await client.stream.quiet()
    return found


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {}, 400, -32700),
        (b"[]", {}, 400, -32600),
        (b'{"jsonrpc": "2.0"}', {}, 400, -32600),
        (b"1", {}, 400, -32600),
        (b"{}", {"content-type": "text/plain"}, 415, -32600),
        (b"{}", {"content-encoding": "gzip"}, 415, -32600),
        (b"{}", {"content-length": "999999999"}, 413, -32600),
        (b"{}", {"origin": "https://evil.example"}, 403, -32600),
    ],
)
async def test_what_is_no_message(
    client: OldClient, body: bytes, headers: dict[str, str], status: int, code: int
) -> None:
    named = {"content-type": "application/json", **headers}
    found = await outcome(client.visit("POST", client.messages, body, **named))
    assert (found.status, found.error["code"]) == (status, code)
    await client.stream.quiet()


SUPPORTED: Final = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]


async def test_the_stateless_era_is_refused(client: OldClient) -> None:
    """SDKs of the stateless era begin with it, and take a 4xx for the end."""
    found = await client.request("tools/list", {"_meta": STATELESS})
    assert found.error["code"] == -32022
    assert found.error["data"] == {"requested": "2026-07-28", "supported": SUPPORTED}
    notified = {"jsonrpc": "2.0", "method": "notifications/x"}
    found = await refused(client, {**notified, "params": {"_meta": STATELESS}})
    assert (found.status, found.error["code"]) == (400, -32022)


@pytest.mark.parametrize(
    ("named", "code"), [("2026-07-28", -32022), ("2025-06-18", -32600), (NEWEST, 0)]
)
async def test_a_version_header(client: OldClient, named: str, code: int) -> None:
    """Clients that know newer transports send it here, too."""
    message = client.message("ping")
    found = await client.sent(message, **{"mcp-protocol-version": named})
    assert (found.status, found.raw) == (202, b"")
    answered = await client.answered(message["id"])
    assert answered.error["code"] == code if code else answered.result == {}


@pytest.mark.parametrize("mcp", [{"LIMITS": {"running_calls": 1}}])
async def test_too_many_running_calls(opened: Opened, stage: Stage) -> None:
    client = await opened(path="/mcp/private/sse", headers={"x-user": "ada"})
    running = await client.begin_call("waits_in_private")
    await stage.begun()
    found = await client.call("open_to_all")
    assert found.error["code"] == -32603
    assert "1" in found.error["message"]
    stage.released.set()
    assert (await client.answered(running)).text == "waited"
    await client.leave()


async def test_a_right_that_was_taken(
    opened: Opened, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before its body is read, and its session is known all the same."""
    client = await opened(path="/mcp/private/sse", headers={"x-user": "ada"})

    async def refuse(_: object) -> None:
        raise RequestRefused(403, MAY_NOT)

    monkeypatch.setattr(MessagesHandler, "post", refuse)
    found = await client.request("ping")
    assert found.error == {"code": -32600, "message": MAY_NOT}
    await client.leave()


async def test_batches(opened: Opened, stage: Stage) -> None:
    """Each request has an answer of its own, also one that must not run twice."""
    client = await opened("2025-03-26")
    requests = [
        client.message("ping"),
        client.message("tools/call", {"name": "waits", "arguments": {"say": "last"}}),
        client.message(
            "tools/call", {"name": "drill_add", "arguments": {"a": 1, "b": 2}}
        ),
        client.message("tools/list", {"_meta": []}),
    ]
    note = {"jsonrpc": "2.0", "method": "notifications/unheard-of"}
    found = await client.sent([*requests, note])
    assert (found.status, found.raw) == (202, b"")
    assert (await client.answered(requests[0]["id"])).result == {}
    assert (await client.answered(requests[2]["id"])).text == "3"
    assert (await client.answered(requests[3]["id"])).error["code"] == -32602
    stage.released.set()
    assert (await client.answered(requests[1]["id"])).text == "last"
    assert (await client.sent([note])).status == 202
    await client.leave()


# -- whose session it is ---------------------------------------------------------------


def posted(application: WireCheck, path: str, **headers: str) -> Visit:
    client = OldClient(application)
    client.messages = path
    return client.post(client.message("tools/list"), **headers)


async def test_sessions_of_others_are_unknown(
    application: WireCheck, outside: WireCheck
) -> None:
    mine = {"x-user": "ada"}
    client = await OldClient(application, path="/mcp/private/sse", headers=mine).open()
    assert (await client.request("tools/list")).result["tools"]
    path, _, query = client.messages.partition("?")
    unknown = await outcome(posted(outside, f"{path}?session_id=unknown", **mine))
    assert unknown.status == 404
    for address, headers in (
        (client.messages, {"x-user": "eve"}),
        (f"/mcp/messages?{query}", mine),
        (f"/mcp/pages/messages?{query}", {}),
    ):
        found = await outcome(posted(outside, address, **headers))
        assert found.status == 404
        assert found.error["message"] == unknown.error["message"]
    await client.stream.quiet()
    await client.leave()


async def test_sessions_of_the_two_transports(
    application: WireCheck, outside: WireCheck, connect: Connect, opened: Opened
) -> None:
    """Each is unknown where the other one is served."""
    old, new = await opened(), await connect(NEWEST)
    found = await outcome(posted(outside, f"/mcp/messages?session_id={new.session}"))
    assert found.status == 404
    stranger = Client(outside, NEWEST)
    stranger.session = old.messages.partition("=")[2]
    assert (await stranger.request("tools/list")).status == 404
    assert (await old.request("ping")).result == {}
    # It is known here by now, and still no session of the other transport.
    assert (await stranger.request("tools/list")).status == 404
    await old.leave()


@pytest.mark.parametrize(
    "query", ["", "?", "?session_id=", "?session_id=%00", "?session_id=a&session_id=b"]
)
async def test_a_session_must_be_named(outside: WireCheck, query: str) -> None:
    found = await outcome(posted(outside, f"/mcp/messages{query}"))
    assert (found.status, found.error["code"]) == (400, -32600)


async def test_the_id_is_in_no_log(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    """Servers log the query of their scope: they find none."""
    caplog.set_level(logging.DEBUG)
    client = await opened()
    visit = client.post(client.message("ping"))
    await visit.body()
    assert visit.scope["query_string"] == b""
    await client.call("fails", kind="exception")
    session_id = client.messages.partition("=")[2]
    await client.leave()
    await nothing_left()
    assert session_id not in caplog.text


@pytest.mark.parametrize("mcp", [{"LIMITS": {"streams_per_process": 4}}])
async def test_many_sessions(application: WireCheck, opened: Opened) -> None:
    """Ids of requests are a client's own; of too many streams one is refused."""
    clients = [await opened(), await opened()]
    for number, client in enumerate(clients):
        await client.begin("tools/call", call("drill_add", a=number, b=0), id=7)
    for number, client in enumerate(clients):
        assert (await client.answered(7)).text == str(number)
    visit = OldClient(application).visit("GET", "/mcp/sse")
    assert (await outcome(visit)).status == 503
    assert (await counted())["Session"] == 2
    for client in clients:
        await client.leave()


def call(tool: str, **arguments: Any) -> JsonObject:
    return {"name": tool, "arguments": arguments}


# -- what is said on the way ----------------------------------------------------------


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_progress_and_log_messages_come_before_the_answer(
    client: OldClient,
) -> None:
    assert (await client.request("logging/setLevel", {"level": "info"})).result == {}
    params = {**call("reports", steps=[1, 2, 3]), "_meta": {"progressToken": "p"}}
    assert (await client.request("tools/call", params)).text == "done"
    said = [each["params"]["progress"] for each in client.said]
    assert said == [1, 2, 3]
    client.said.clear()
    assert (await client.call("logs")).text == "logged"
    assert {each["params"]["level"] for each in client.said} >= {"info", "error"}
    assert "debug" not in {each["params"]["level"] for each in client.said}


async def test_changes(application: WireCheck) -> None:
    client = await OldClient(application, NEWEST).connect()
    other = await OldClient(application, NEWEST).open()
    await other.call("changes", what=["tools"])
    assert await other.told("notifications/tools/list_changed")
    # Who is not initialized is told of nothing.
    await client.stream.quiet()
    await client.initialize()
    await other.call("changes", what=["prompts"])
    assert await client.told("notifications/prompts/list_changed")
    assert (await client.request("resources/subscribe", {"uri": URI})).result == {}
    await other.call("changes", what=[URI])
    updated = await client.told("notifications/resources/updated")
    assert updated["params"] == {"uri": URI}
    assert not [each for each in other.said if "updated" in each["method"]]
    await client.leave()
    await other.leave()


async def test_what_is_logged_outside_of_calls(client: OldClient) -> None:
    await client.request("logging/setLevel", {"level": "info"})
    await writer.run(partial(log, "error", {"text": "from outside"}, server="default"))
    message = await client.told("notifications/message")
    assert message["params"]["data"] == {"text": "from outside"}
    assert client.stream.ids == []


ORDER: Final = {"action": "accept", "content": {"item": "tea", "count": 2}}
DECLINED: Final = {"action": "decline"}
ROOTS: Final = {"roots": [{"uri": "file:///a", "name": "a"}]}
TEXT: Final = {"type": "text", "text": "said"}
SAMPLE: Final = {"role": "assistant", "model": "m", "content": TEXT}


@pytest.mark.parametrize(
    ("tool", "version", "method", "answer", "text"),
    [
        ("orders", "2025-06-18", "elicitation/create", ORDER, "2 tea"),
        ("orders_sync", NEWEST, "elicitation/create", DECLINED, "declined"),
        ("roots", "2024-11-05", "roots/list", ROOTS, None),
        ("samples", "2024-11-05", "sampling/createMessage", SAMPLE, None),
    ],
)
async def test_questions(
    client: OldClient, tool: str, method: str, answer: Any, text: str | None
) -> None:
    request_id = await client.begin_call(tool)
    found = await client.answered(request_id, lambda _, __: answer)
    assert [each["method"] for each in found.questions] == [method]
    assert "isError" not in found.result or not found.result["isError"]
    assert text is None or found.text == text


async def test_a_stream_has_heartbeats(
    application: WireCheck, opened: Opened, process: Process
) -> None:
    silent, client = await OldClient(application).connect(), await opened()
    for listener in process.listeners:
        listener.beat()
    await client.stream.comment()
    await silent.stream.comment()
    await client.leave()
    await silent.leave()


# -- the end -----------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["waits", "peeks"])
async def test_a_cancelled_call_has_no_answer(
    client: OldClient, stage: Stage, process: Process, tool: str
) -> None:
    request_id = await client.begin_call(tool)
    await stage.begun()
    found = await client.notify("notifications/cancelled", {"requestId": request_id})
    assert found.status == 202
    assert (await client.request("ping")).result == {}
    await until(lambda: not process.running)
    assert json.dumps(request_id) not in client._answers


@pytest.mark.parametrize("tool", ["waits", "peeks"])
async def test_the_stream_is_the_session(
    opened: Opened, outside: WireCheck, stage: Stage, process: Process, tool: str
) -> None:
    client = await opened()
    other = await opened()
    await client.begin_call(tool)
    await stage.begun()
    await client.leave()
    await until(lambda: not process.running)
    assert (await outcome(posted(outside, client.messages))).status == 404
    assert (await other.request("ping")).result == {}
    await other.leave()
    await nothing_left()


async def test_a_session_that_is_closed_by_others(
    opened: Opened, stage: Stage, process: Process
) -> None:
    """In the admin, for instance."""
    client = await opened()
    await client.begin_call("waits")
    await stage.begun()
    await writer.run(Session.objects.all().delete)
    await client.ended()
    await until(lambda: not process.running)
    assert stage.told == ["cancelled"]


async def test_a_session_that_ends_before_it_listens(
    application: WireCheck,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A client that leaves at once is no fault of which the log should speak."""
    gone = asyncio.Event()

    async def standing(*_: object) -> None:
        gone.set()
        raise SessionNotFound

    monkeypatch.setattr(process.stream_opener, "standing", standing)
    client = await OldClient(application).connect()
    await client.initialize()
    async with asyncio.timeout(60):
        await gone.wait()
    await client.leave()
    await nothing_left()
    assert caplog.messages == []


async def test_many_answers_begin_one_stream(
    application: WireCheck, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer tries to open it, until it is open."""
    standing = process.stream_opener.standing
    streams: list[object] = []
    released = asyncio.Event()

    async def held(stream: Any, *arguments: Any) -> None:
        streams.append(stream)
        await released.wait()
        await standing(stream, *arguments)

    monkeypatch.setattr(process.stream_opener, "standing", held)
    client = await OldClient(application, NEWEST).connect()
    await client.initialize()
    for _ in range(3):
        await client.request("ping")
    released.set()
    await client.call("changes", what=["tools"])
    assert await client.told("notifications/tools/list_changed")
    assert len(streams) == 1
    await client.leave()


async def test_a_session_that_went_unseen(
    client: OldClient, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A POST may come before its process knows that the session is gone."""
    rows: Any = Session.objects.all()
    monkeypatch.setattr(process.gate, "fresh", lambda _: True)
    await writer.run(Stream.objects.all().delete)
    await writer.run(lambda: rows._raw_delete(rows.db))
    for tool in ("drill_add", "drill_ledger"):
        message = client.message("tools/call", call(tool, a=1, b=2, key="a", seconds=0))
        assert (await client.sent(message)).status == 404


@pytest.mark.parametrize("tool", ["waits", "peeks"])
async def test_nothing_begins_when_the_stream_has_ended(
    opened: Opened,
    outside: WireCheck,
    stage: Stage,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
) -> None:
    """Nobody would cancel it."""
    client = await opened("2025-03-26")
    find = process.sse_sessions.find

    async def ending(*arguments: Any) -> OpenSession:
        session = await find(*arguments)
        process.sessions.close_here(session)
        return session

    message = client.message("tools/call", call(tool))
    for body in (message, [message]):
        with monkeypatch.context() as patched:
            patched.setattr(process.sse_sessions, "find", ending)
            # That of a batch has no id, for which this revision has no error.
            client.application = outside
            assert (await client.sent(body)).status == 404
    await client.ended()
    assert not stage.entered.is_set()
    await nothing_left()


async def test_no_call_runs_whose_stream_ended_while_its_row_was_written(
    opened: Opened, stage: Stage, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = call_handler.begin

    async def ending(
        log: RequestLog, request: Request, session: OpenSession
    ) -> OwnedStream | None:
        stream = await begun(log, request, session)
        process.sessions.close_here(session)
        return stream

    monkeypatch.setattr(call_handler, "begin", ending)
    client = await opened()
    message = client.message("tools/call", call("waits"))
    assert (await client.sent(message)).status == 404
    await client.ended()
    assert not stage.entered.is_set()
    await nothing_left()


async def test_a_process_that_stops_answers_first(
    opened: Opened, stage: Stage, process: Process
) -> None:
    client = await opened()
    idle = await opened()
    request_id = await client.begin_call("waits")
    await stage.begun()
    stopping = asyncio.create_task(process.drain())
    await idle.ended()
    assert b"retry: " in idle.stream.raw
    assert (await client.request("ping")).error["code"] == -32603
    stage.released.set()
    assert (await client.answered(request_id)).text == "waited"
    await client.ended()
    await stopping
    await nothing_left()


async def test_a_process_that_stops_waits_for_what_began_elsewhere(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    """Though it has not looked since: once it is gone, others close the session."""
    for name in ("LAST_WORDS", "LAST_BYTES"):
        monkeypatch.setattr(lifecycle, name, 0.0)
    client = await opened()
    (row,) = await reader.run(list, Session.objects.all())
    begun = Batch([opening(row)], process._row.id)
    (key,) = await log_writer.run(write, begun)
    assert isinstance(key, int)
    looks, stopping = process.sse_reader.looks, asyncio.create_task(process.drain())
    await until(lambda: process.sse_reader.looks >= looks + 4)
    assert not stopping.done()
    closed = await reader.run(partial(further, key, state="closed"))
    await log_writer.run(write, Batch([closed], process._row.id))
    await client.ended()
    await stopping


async def test_what_was_read_is_deleted_away(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the rows of calls that must not run twice, which have no messages."""
    monkeypatch.setattr(sse_reader, "DELETE_EVERY_S", 0.0)
    client = await opened()
    for _ in range(3):
        assert (await client.request("ping")).result == {}
    assert (await client.call("drill_ledger", key="a", seconds=0)).text == "1"
    async with asyncio.timeout(60):
        # Nothing is said meanwhile: each answer would be one more to throw away.
        while (await counted())["Event"]:
            await asyncio.sleep(0.01)
    left = [each for each in await rows() if each.tool]
    assert [(each.tool, each.state) for each in left] == [("drill_ledger", "closed")]
    assert [(each.head_seq, each.floor_seq, each.size) for each in left] == [(1, 1, 0)]
    await client.leave()


async def test_a_call_that_comes_again_runs_once(client: OldClient) -> None:
    """Its answer came on the stream, or will."""
    message = client.message("tools/call", call("drill_ledger", key="a", seconds=0))
    assert (await client.sent(message)).status == 202
    assert (await client.answered(message["id"])).text == "1"
    assert (await client.sent(message)).status == 202
    assert (await client.call("drill_ledger", key="a", seconds=0)).text == "2"
    await client.stream.quiet()
    changed = {**message, "params": call("drill_ledger", key="b", seconds=0)}
    client._answers.clear()
    assert (await client.sent(changed)).status == 202
    found = await client.answered(message["id"])
    assert found.error["code"] == -32600
    assert "drill_ledger" in found.error["message"]


@pytest.mark.parametrize("tool", ["drill_add", "drill_ledger"])
async def test_an_outage(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, process: Process, tool: str
) -> None:
    """What has no row by then is refused, and leaves nothing behind."""
    writes = Writes(monkeypatch)
    monkeypatch.setattr(call_handler, "PATIENCE_S", 0.05)
    client = await opened()
    writes.outages = inf
    message = client.message("tools/call", call(tool, a=1, b=2, key="a", seconds=0))
    assert (await client.sent(message)).status == 503
    writes.outages = 0
    monkeypatch.setattr(call_handler, "PATIENCE_S", 60)
    assert (await client.request("ping")).result == {}
    await until(lambda: not process.log.is_committing)
    assert not [each for each in await rows() if each.tool == tool]
    await client.leave()


async def test_a_call_that_says_too_much_is_ended(
    opened: Opened, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "KEPT_EVENTS", 2)
    client = await opened()
    params = {**call("reports", steps=[1, 2, 3]), "_meta": {"progressToken": "p"}}
    found = await client.request("tools/call", params)
    assert found.error["code"] == -32603
    assert "This call sent more than 2 messages" in found.error["message"]
    assert len(client.said) == 2
    assert not process.running
    await client.leave()


async def test_a_slow_reader_is_waited_for(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, process: Process
) -> None:
    """What a client does not take stays in the database, and is not kept in memory."""
    monkeypatch.setattr("mcp_app.transports.http_sse.stream.MAX_WAITING_BYTES", 10_000)
    monkeypatch.setattr("mcp_app.streams.sse_reader.MOST_BYTES", 10_000)
    client = await opened()
    client.stream.stalled.clear()
    large = [await client.begin_call("large", size=9_000) for _ in range(8)]
    await until(lambda: not (process.running or process.log.is_committing))
    looks = process.sse_reader.looks
    async with asyncio.timeout(60):
        while process.sse_reader.looks < looks + 2:
            process.sse_reader.poll_soon()
            await asyncio.sleep(0.001)
    assert process.sse_reader.has_work_until(looks + 2)
    client.stream.stalled.set()
    for each in large:
        assert (await client.answered(each)).text == "x" * 9_000
    await client.leave()


@pytest.mark.parametrize(
    ("root", "path", "rest"),
    [
        ("", "/mcp", "/mcp"),
        ("", "mcp", "mcp"),
        ("/site", "/site/mcp", "/mcp"),
        ("/site/", "/site/mcp", "/mcp"),
        ("/site", "/site/", "/"),
        # Once only, and only a whole part.
        ("/site", "/site/site/mcp", "/site/mcp"),
        ("/site", "/sitemap/mcp", "/sitemap/mcp"),
        ("/site", "/site", "/site"),
        ("/site", "/mcp", "/mcp"),
        ("/", "/mcp", "/mcp"),
    ],
)
def test_a_path_below_its_root(root: str, path: str, rest: str) -> None:
    assert path_below_root(root, path) == rest
