"""Streams that stay open: GET in the stateful era, subscriptions/listen since then."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, Final

import pytest
from django.db import OperationalError, transaction

from mcp_app import changed, log, notify
from mcp_app.interface.context import Level
from mcp_app.invalidation import change_reader
from mcp_app.models import Tool
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.streams import listeners as logged_streams
from tests.asgi_client import PREFIX, Client, JsonObject, Visit, outcome
from tests.marks import STATEFUL_NEWEST_FIRST
from tests.published import published
from tests.serving import Connect, counted
from tests.streams.logging_rows import message_of
from tests.wire.middleware import WireCheck

NEWEST: Final = "2026-07-28"
URI: Final = "memo://fixed"
LISTS: Final = ("tools", "prompts", "resources")
EVERYTHING: Final[JsonObject] = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": [URI, "memo://number/7"],
}


NOTHING: Final[JsonObject] = {"notifications": {}}


@pytest.fixture
def version() -> str:
    return "2025-11-25"


@pytest.fixture
async def client(connect: Connect, version: str) -> Client:
    return await connect(version)


def list_changed(what: str) -> str:
    return f"notifications/{what}/list_changed"


UPDATED: Final = "notifications/resources/updated"


async def listening(
    client: Client, request_id: str | int = 5, **wanted: Any
) -> tuple[Visit, JsonObject]:
    """Open a listen stream; return it with what was acknowledged."""
    filtered = {"notifications": wanted or EVERYTHING}
    visit = client.begin("subscriptions/listen", filtered, id=request_id)
    acknowledged = await message_of(visit)
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    return visit, acknowledged["params"]


async def change(client: Client, *what: str) -> None:
    assert (await client.call("changes", what=what)).text == "changed"


# -- GET ------------------------------------------------------------------------


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_a_session_is_told_of_lists_and_of_what_it_watches(
    client: Client,
) -> None:
    stream = await client.standing()
    assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
    assert stream.headers["x-accel-buffering"] == "no"
    await stream.opened()
    for what in LISTS:
        await change(client, what)
        message = await stream.message()
        assert message == {"jsonrpc": "2.0", "method": list_changed(what)}
    await change(client, URI)
    await stream.quiet()
    assert (await client.request("resources/subscribe", {"uri": URI})).result == {}
    await change(client, URI)
    message = await message_of(stream)
    assert (message["method"], message["params"]) == (UPDATED, {"uri": URI})
    assert (await client.request("resources/unsubscribe", {"uri": URI})).result == {}
    await change(client, URI)
    await stream.quiet()
    await stream.leave()


async def test_only_the_newest_stream_is_told(client: Client) -> None:
    first, second, third = [await client.standing() for _ in range(3)]
    await change(client, "tools")
    assert await third.message() is not None
    await third.leave()
    await change(client, "prompts")
    message = await message_of(second)
    assert message["method"] == list_changed("prompts")
    await first.quiet()
    await first.leave()
    await second.leave()


async def test_sessions_do_not_hear_each_other(connect: Connect) -> None:
    client, other = await connect("2025-11-25"), await connect("2025-06-18")
    await client.request("resources/subscribe", {"uri": URI})
    streams = [await each.standing() for each in (client, other)]
    await change(other, URI)
    assert await streams[0].message() is not None
    await streams[1].quiet()
    for stream in streams:
        await stream.leave()


async def test_servers_have_lists_of_their_own(
    connect: Connect, process: Process
) -> None:
    client = await connect("2025-11-25")
    pages = await connect("2025-11-25", path="/mcp/pages")
    streams = [await client.standing(), await pages.standing()]
    await writer.run(notify, "tools", server="pages")
    await process.check_for_changes()
    assert await streams[1].message() is not None
    await streams[0].quiet()
    await writer.run(notify, "prompts")
    await process.check_for_changes()
    for stream in streams:
        message = await message_of(stream)
        assert message["method"] == list_changed("prompts")
        await stream.leave()


async def test_a_published_row_is_a_change(client: Client, process: Process) -> None:
    stream = await client.standing()
    row = Tool(name="brand_new", config='{"content": [{"type": "text", "text": "!"}]}')
    await writer.run(row.save)
    await process.check_for_changes()
    await writer.run(published, row)
    await process.check_for_changes()
    message = await stream.message()
    assert message == {"jsonrpc": "2.0", "method": list_changed("tools")}
    assert (await client.call("brand_new")).text == "!"
    await writer.run(row.delete)
    await process.check_for_changes()
    assert await stream.message() is not None
    assert (await client.call("brand_new")).error["code"] == -32602
    await stream.leave()


async def test_too_many_changes_are_told_as_everything(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, modern = await connect("2025-11-25"), await connect(NEWEST)
    await client.request("resources/subscribe", {"uri": URI})
    older, newer = [await (await client.standing()).opened() for _ in range(2)]
    listen, _ = await listening(modern)
    monkeypatch.setattr(change_reader, "MOST_ROWS", 2)
    # As many topics as rows: they may be folded before they are seen.
    await writer.run(_notify_together, LISTS)
    await process.check_for_changes()
    expected = {*map(list_changed, LISTS), UPDATED}
    for stream, count in ((newer, 4), (listen, 5)):
        told = [await stream.message() for _ in range(count)]
        assert {each["method"] for each in told if each is not None} == expected
    await older.quiet()
    for stream in (older, newer, listen):
        await stream.leave()


def _notify_together(lists: Sequence[str]) -> None:
    """Let a look of the process see all of them, or none."""
    with transaction.atomic():
        for what in lists:
            notify(what)


@pytest.mark.parametrize("ending", ["delete", "drain"])
async def test_how_a_standing_stream_ends(
    client: Client, process: Process, ending: str
) -> None:
    stream = await client.standing()
    await stream.opened()
    if ending == "delete":
        await outcome(client.visit("DELETE"))
    else:
        await process.drain()
    assert await stream.messages() == []
    retry = re.search(rb"retry: (\d+)\n", stream.raw)
    assert (retry is not None) == (ending == "drain")
    if retry is not None:
        assert 2000 <= int(retry[1]) <= 5000


# -- log messages from outside of calls --------------------------------------------


async def logged(process: Process, text: str, level: Level = "info") -> None:
    await writer.run(log, level, text, server="default")
    await process.check_for_changes()


async def heard(stream: Visit) -> JsonObject:
    message = await message_of(stream)
    assert message["method"] == "notifications/message"
    params: JsonObject = message["params"]
    return params


async def test_what_was_logged_while_a_client_was_away(
    client: Client, process: Process
) -> None:
    """Each message comes once, whether the client brings an id or not."""
    stream = await client.standing()
    for text in ("one", "two"):
        await logged(process, text)
        assert (await heard(stream))["data"] == text
    first, last = stream.ids[-2:]
    await stream.leave()
    await logged(process, "three")
    for came, expected in (
        (None, ["three"]),
        (None, []),
        (first, ["two", "three"]),
        (last, ["three"]),
    ):
        again = await client.standing(came)
        await again.opened()
        assert [(await heard(again))["data"] for _ in expected] == expected
        await again.quiet()
        await again.leave()
    name = first.partition(".")[0]
    refused = await client.standing(f"{name}.4.0")
    assert refused.status == 400


async def test_only_the_newest_stream_is_told_what_is_logged(
    client: Client, process: Process
) -> None:
    first, second = [await client.standing() for _ in range(2)]
    await logged(process, "one")
    assert (await heard(second))["data"] == "one"
    await second.leave()
    await logged(process, "two")
    assert (await heard(first))["data"] == "two"
    await first.quiet()
    await first.leave()


async def test_an_outage_is_waited_for(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logged_streams, "RETRY_S", 0.01)
    client = await connect("2025-11-25")
    stream = await client.standing()
    await stream.opened()
    numbered, faults = logged_streams._numbered, [1, 2]

    def failing(session: int, after: int) -> list[tuple[int, str]]:
        if faults:
            faults.pop()
            raise OperationalError("The database is away.")
        return numbered(session, after)

    monkeypatch.setattr(logged_streams, "_numbered", failing)
    await logged(process, "one")
    assert (await heard(stream))["data"] == "one"
    assert faults == []
    await stream.leave()


# -- subscriptions/listen -------------------------------------------------------


async def test_listen(connect: Connect) -> None:
    client = await connect(NEWEST)
    stream, acknowledged = await listening(client, "mine")
    assert stream.headers["content-type"] == "text/event-stream"
    meta = {f"{PREFIX}subscriptionId": "mine"}
    assert acknowledged == {"notifications": EVERYTHING, "_meta": meta}
    for what in LISTS:
        await change(client, what)
        message = await message_of(stream)
        assert message["method"] == list_changed(what)
        assert message["params"] == {"_meta": meta}
    for uri in (URI, "memo://number/7"):
        await change(client, uri)
        message = await message_of(stream)
        assert message["method"] == UPDATED
        assert message["params"] == {"uri": uri, "_meta": meta}
    await change(client, "memo://number/8")
    await stream.quiet()
    await stream.leave()


FILTERS: Final[list[tuple[JsonObject, JsonObject]]] = [
    ({}, {}),
    ({"toolsListChanged": False}, {}),
    ({"toolsListChanged": None}, {}),
    ({"promptsListChanged": True}, {"promptsListChanged": True}),
    ({"madeUp": True}, {}),
    ({"resourceSubscriptions": []}, {"resourceSubscriptions": []}),
    (
        {"resourceSubscriptions": [URI, "memo://nothing/at/all", URI, "vault://list"]},
        {"resourceSubscriptions": [URI]},
    ),
]


@pytest.mark.parametrize(("wanted", "honoured"), FILTERS)
async def test_what_is_honoured(
    connect: Connect, wanted: JsonObject, honoured: JsonObject
) -> None:
    client = await connect(NEWEST)
    filtered = {"notifications": wanted}
    stream = client.begin("subscriptions/listen", filtered)
    acknowledged = await message_of(stream)
    assert acknowledged["params"]["notifications"] == honoured
    for what in ("tools", "resources", URI, "vault://list"):
        if what not in honoured.get("resourceSubscriptions", ()):
            await change(client, what)
    await stream.quiet()
    await stream.leave()


async def test_who_may_listen_to_what(connect: Connect) -> None:
    wanted: JsonObject = {
        "resourceSubscriptions": ["vault://list", "hall://list", "vault://item/a"]
    }
    for rights, honoured in (
        ("", ["hall://list"]),
        ("shop.view_secret", ["vault://list", "hall://list", "vault://item/a"]),
    ):
        headers = {"x-user": "a", "x-permissions": rights}
        client = await connect(NEWEST, path="/mcp/private", headers=headers)
        stream, acknowledged = await listening(client, **wanted)
        told = acknowledged["notifications"]["resourceSubscriptions"]
        assert sorted(told) == sorted(honoured)
        await stream.leave()


WRONG: Final[list[JsonObject]] = [
    {},
    {"notifications": None},
    {"notifications": []},
    *({"notifications": {"toolsListChanged": each}} for each in (1, "yes")),
    *(
        {"notifications": {"resourceSubscriptions": each}}
        for each in (URI, [7], None, ["a:b"] * 1001)
    ),
]


@pytest.mark.parametrize("params", WRONG)
async def test_wrong_filters(connect: Connect, params: JsonObject) -> None:
    client = await connect(NEWEST)
    found = await client.request("subscriptions/listen", params, id="mine")
    assert (found.status, found.error["code"]) == (200, -32602)
    assert found.answer["id"] == "mine"


async def test_listen_wants_events(connect: Connect) -> None:
    client = await connect(NEWEST, headers={"accept": "application/json"})
    found = await client.request("subscriptions/listen", NOTHING, id=5)
    assert (found.status, found.error["code"], found.answer["id"]) == (406, -32600, 5)


async def test_a_listen_stream_ends_with_its_result(
    connect: Connect, process: Process
) -> None:
    client = await connect(NEWEST)
    stream, _ = await listening(client, 5)
    await process.drain()
    (answer,) = await stream.messages()
    assert answer["id"] == 5
    assert answer["result"]["resultType"] == "complete"
    assert answer["result"]["_meta"][f"{PREFIX}subscriptionId"] == 5
    found = await client.request("subscriptions/listen", {"notifications": {}})
    assert found.status == 503


async def test_two_listeners_with_one_id(connect: Connect) -> None:
    client = await connect(NEWEST)
    streams = [(await listening(client, 5))[0] for _ in range(2)]
    await writer.run(changed, URI)
    await change(client, "tools")
    for stream in streams:
        said = [await stream.message(), await stream.message()]
        methods = {each["method"] for each in said if each is not None}
        assert methods == {UPDATED, list_changed("tools")}
        await stream.leave()


async def test_a_thread_says_that_something_changed(connect: Connect) -> None:
    client = await connect(NEWEST)
    stream, _ = await listening(client)
    assert (await client.call("changes_sync", what=URI)).text == "changed"
    message = await message_of(stream)
    assert message["params"]["uri"] == URI
    await stream.leave()


FEW: Final = {"LIMITS": {"streams_per_session": 2, "streams_per_principal": 3}}


@pytest.mark.parametrize("mcp", [FEW])
async def test_too_many_streams_of_a_session(connect: Connect) -> None:
    headers = {"x-user": "a"}
    clients = [
        await connect("2025-11-25", path="/mcp/private", headers=headers)
        for _ in range(2)
    ]
    streams = [await clients[0].standing() for _ in range(2)]
    found = await outcome(clients[0].visit("GET"))
    assert found.status == 429
    assert int(found.headers["retry-after"]) > 0
    streams.append(await clients[1].standing())
    assert (await outcome(clients[1].visit("GET"))).status == 429
    await writer.run(notify, "tools")
    await change_in_private(clients[0])
    # The refused ones are not taken for the newest.
    assert await streams[1].message() is not None
    for stream in streams:
        await stream.leave()
    stream = await clients[0].standing()
    await stream.leave()


async def change_in_private(client: Client) -> None:
    assert (await client.call("changes_in_private")).text == "changed"


@pytest.mark.parametrize("mcp", [{"LIMITS": {"streams_per_process": 1}}])
async def test_too_many_streams_of_a_process(connect: Connect) -> None:
    client = await connect(NEWEST)
    stream, _ = await listening(client)
    found = await client.request("subscriptions/listen", NOTHING, id=9)
    assert (found.status, found.answer["id"]) == (503, 9)
    assert int(found.headers["retry-after"]) > 0
    await stream.leave()
    stream, _ = await listening(client)
    await stream.leave()


@pytest.mark.parametrize("mcp", [{"LIMITS": "off"}])
async def test_counts_can_be_switched_off(client: Client) -> None:
    streams = [await client.standing() for _ in range(12)]
    for stream in streams:
        await stream.leave()


async def test_streams_leave_nothing(client: Client, process: Process) -> None:
    for _ in range(20):
        stream = await client.standing()
        await stream.leave()
    assert len(process.listeners) == 0
    assert (await counted())["Subscription"] == 0


async def test_a_server_that_stops_a_standing_stream(
    client: Client, process: Process
) -> None:
    stream = await client.standing()
    stream.task.cancel()
    await asyncio.wait([stream.task])
    assert stream.task.cancelled()
    assert len(process.listeners) == 0


async def test_bytes_after_the_request(application: WireCheck, client: Client) -> None:
    """More of a body that is over is not taken for a disconnect."""
    stream = await client.visit("GET", [b"", b"more"]).begun()
    await change(client, "tools")
    assert await stream.message() is not None
    await stream.leave()
