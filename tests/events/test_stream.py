"""events/stream over HTTP and stdio, and the tool for clients that know no events."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from json import dumps, loads
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from mcp_app.interface.principal import Principal
from mcp_app.interface.server import WAIT_FOR_EVENT
from mcp_app.invalidation.changes import notify
from mcp_app.models import Server
from mcp_app.process.runtime import Process
from mcp_app.protocol.negotiation import (
    CLIENT_CAPABILITIES,
    PROTOCOL_VERSION,
    SUBSCRIPTION_ID,
)
from mcp_app.server import event_waiting
from mcp_app.transports.open_streams import MAX_UNREAD_BYTES, PushStream
from mcp_app.transports.stdio.connection import Connection
from tests.asgi_client import JsonObject, Visit
from tests.events.conftest import (
    HEARS_EVENTS,
    EventClient,
    Hear,
    OrderPaid,
    StockLow,
    emit,
    is_for_manager,
)
from tests.published import start, stopped
from tests.scripting import STATELESS
from tests.serving import until

NAME = {"name": "order.paid"}


class Pushes:
    """What comes on a stream."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit

    async def next(self, method: str) -> JsonObject:
        """Return the params of the next notification, which is this one."""
        message = await self.visit.message()
        assert message is not None
        assert message.get("method") == f"notifications/events/{method}", message
        params: JsonObject = message["params"]
        assert params.pop("_meta")[SUBSCRIPTION_ID] == "s"
        return params

    async def result(self) -> JsonObject:
        message = await self.visit.message()
        assert message is not None
        return message["result"]  # type: ignore[no-any-return]


@asynccontextmanager
async def pushing(client: EventClient, **params: Any) -> AsyncIterator[Pushes]:
    visit = client.client.begin("events/stream", {**NAME, **params}, id="s")
    pushes = Pushes(await visit.begun())
    assert visit.headers["content-type"].startswith("text/event-stream")
    try:
        yield pushes
    finally:
        await visit.leave()


async def test_events_come_on_the_stream_as_they_happen(ana: EventClient) -> None:
    async with pushing(ana, arguments={"shop": "ulm"}) as stream:
        active = await stream.next("active")
        assert not active["truncated"]
        for number, shop in (("1", "ulm"), ("2", "bern"), ("3", "ulm")):
            await emit(OrderPaid(number, shop))
        first, third = await stream.next("event"), await stream.next("event")
        assert [each["data"]["number"] for each in (first, third)] == ["1", "3"]
    # Whoever comes back with the cursor of an event gets what came after it.
    async with pushing(ana, cursor=first["cursor"], arguments={"shop": "ulm"}) as again:
        assert await again.next("active") == {
            "cursor": first["cursor"],
            "truncated": False,
        }
        assert await again.next("event") == third
    polled = await ana.poll(cursor=active["cursor"])
    assert [each["eventId"] for each in polled["events"]][::2] == [
        first["eventId"],
        third["eventId"],
    ]


async def test_a_heartbeat_tells_how_far_it_is(
    ana: EventClient, process: Process
) -> None:
    async with pushing(ana) as stream:
        active = await stream.next("active")
        # Something of another type: the position of a quiet stream goes on, too.
        await emit({"subject": "x"}, name="ticket.opened")
        (listener,) = process.listeners
        async with asyncio.timeout(60):
            cursor = active["cursor"]
            while cursor == active["cursor"]:
                listener.beat()
                cursor = (await stream.next("heartbeat"))["cursor"]
        assert (await ana.poll(cursor=cursor))["cursor"] == cursor


async def test_a_stream_ends_with_the_right_to_it(hear: Hear, process: Process) -> None:
    ana = await hear(**{"x-permissions": "shop.see_secrets"})
    async with pushing(ana, name="order.secret") as stream:
        await stream.next("active")
        (listener,) = process.listeners
        listener.end()
        error = (await stream.next("terminated"))["error"]
        assert (error["code"], error["data"]) == (-32024, {"reason": "revoked"})
        assert (await stream.result())["resultType"] == "complete"
        assert await stream.visit.message() is None


async def test_a_process_that_stops_lets_clients_go_on_elsewhere(
    ana: EventClient, process: Process
) -> None:
    async with pushing(ana) as stream:
        await stream.next("active")
        (listener,) = process.listeners
        listener.end(retry_ms=1_000)
        assert SUBSCRIPTION_ID in (await stream.result())["_meta"]
        assert await stream.visit.message() is None


async def test_a_stopped_server_ends_no_subscription(
    ana: EventClient, process: Process
) -> None:
    row = await sync_to_async(Server.objects.get)(slug="private")
    async with pushing(ana) as stream:
        await stream.next("active")
        await sync_to_async(stopped)(row)
        await process.check_for_changes()
        assert "resultType" in await stream.result()
    await sync_to_async(start)(row)
    await process.check_for_changes()


@pytest.mark.parametrize("params", [{"arguments": {"town": "ulm"}}, {"cursor": 7}])
async def test_what_is_wrong_is_said_without_a_stream(
    ana: EventClient, params: JsonObject
) -> None:
    assert (await ana.refused("events/stream", **NAME, **params))["code"] == -32602


async def test_a_session_and_a_client_without_streams_have_none(hear: Hear) -> None:
    client = (await hear("2025-11-25")).client
    assert (await client.request("events/stream", NAME)).error["code"] == -32601
    client = (await hear()).client
    headers = {"accept": "application/json"}
    assert (await client.request("events/stream", NAME, headers=headers)).status == 406


async def test_a_client_hears_that_there_are_other_event_types(
    ana: EventClient, process: Process
) -> None:
    wanted = {"notifications": {"eventsListChanged": True, "toolsListChanged": False}}
    visit = await ana.client.begin("subscriptions/listen", wanted, id="s").begun()
    acknowledged = await visit.message()
    assert acknowledged is not None
    assert acknowledged["params"]["notifications"] == {"eventsListChanged": True}
    await sync_to_async(notify)("events", "private")
    changed = await visit.message()
    assert changed is not None
    assert changed["method"] == "notifications/events/list_changed"
    await visit.leave()


async def test_over_stdio_events_come_on_the_one_channel(
    shop_events: None, process: Process
) -> None:
    messages: asyncio.Queue[JsonObject] = asyncio.Queue()
    principal = Principal(kind="stdio", user_id="ana", permissions=frozenset())
    connection = Connection(
        process, "private", principal, lambda text: messages.put_nowait(loads(text))
    )

    async def send(method: str, params: JsonObject, **more: Any) -> None:
        meta = {PROTOCOL_VERSION: STATELESS, CLIENT_CAPABILITIES: HEARS_EVENTS}
        message = {"jsonrpc": "2.0", "method": method, **more}
        message["params"] = {**params, "_meta": meta} if more else params
        await connection.take_line(dumps(message).encode(), time.monotonic())

    async def next_params() -> JsonObject:
        async with asyncio.timeout(60):
            message = await messages.get()
        params: JsonObject = message["params"]
        assert params["_meta"][SUBSCRIPTION_ID] == "s"
        return params

    await send("events/stream", NAME, id="s")
    assert not (await next_params())["truncated"]
    await emit(OrderPaid("1"))
    assert (await next_params())["data"]["number"] == "1"
    await send("notifications/cancelled", {"requestId": "s"})
    async with asyncio.timeout(60):
        while list(process.listeners):
            await asyncio.sleep(0.01)
    assert messages.empty()


# -- the tool ----------------------------------------------------------------------


async def test_a_client_that_knows_no_events_waits_with_a_tool(
    ana: EventClient,
) -> None:
    async def call(**arguments: Any) -> JsonObject:
        outcome = await ana.client.call(WAIT_FOR_EVENT, **arguments)
        structured: JsonObject = outcome.result["structuredContent"]
        return structured

    types = (await call())["types"]
    assert [each["name"] for each in types] == [
        *("order.paid", "stock.low", "ticket.opened")
    ]
    assert types[0]["inputSchema"]["properties"].keys() == {"shop", "number"}
    began = await call(**NAME, wait=0)
    assert began["events"] == []
    waiting = asyncio.create_task(call(**NAME, arguments={"shop": "bern"}, wait=50))
    await asyncio.sleep(0.1)
    for number, shop in (("1", "ulm"), ("2", "bern")):
        await emit(OrderPaid(number, shop))
    (event,) = (await waiting)["events"]
    assert event["data"]["number"] == "2"
    missed = await call(**NAME, cursor=began["cursor"])
    assert [each["data"]["number"] for each in missed["events"]] == ["1", "2"]
    last = await call(**NAME, last=1)
    assert last["events"] == [missed["events"][1]]
    assert (await call(**NAME, cursor="gone", wait=0))["note"]
    for wrong in ({"name": "order.secret"}, {**NAME, "arguments": {"town": 1}}):
        outcome = await ana.client.call(WAIT_FOR_EVENT, **wrong)
        assert outcome.result["isError"]


async def test_who_waits_for_what_is_taken_away_meanwhile_is_told_nothing(
    ana: EventClient, process: Process
) -> None:
    waiting = asyncio.create_task(ana.client.call(WAIT_FOR_EVENT, **NAME, wait=50))
    await until(lambda: "order.paid" in process.events._waiters)
    catalogs = process.catalogs
    catalog = catalogs.by_slug["private"]
    without = catalog.with_changes({"events": {"order.paid": None}}, {})
    catalogs.by_slug = {**catalogs.by_slug, "private": without}
    await emit(OrderPaid("1"))
    outcome = await waiting
    catalogs.by_slug = {**catalogs.by_slug, "private": catalog}
    assert outcome.result["isError"]
    assert "Unknown event" in outcome.result["content"][0]["text"]


async def test_nobody_waits_at_a_process_that_stops(
    ana: EventClient, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_waiting, "LOOK_S", 0.01)
    waiting = asyncio.create_task(ana.client.call(WAIT_FOR_EVENT, **NAME, wait=50))
    await until(lambda: "order.paid" in process.events._waiters)
    process.stopping = True
    async with asyncio.timeout(25):
        result = (await waiting).result["structuredContent"]
    process.stopping = False
    # The client goes on at another one.
    await emit(OrderPaid("1"))
    more = await ana.client.call(WAIT_FOR_EVENT, **NAME, cursor=result["cursor"])
    events = more.result["structuredContent"]["events"]
    assert (result["events"], len(events)) == ([], 1)


async def test_a_stream_of_large_events_waits_for_its_reader(
    ana: EventClient, process: Process
) -> None:
    async with pushing(ana) as stream:
        await stream.next("active")
        (listener,) = process.listeners
        assert isinstance(listener, PushStream)
        stream.visit.stalled.clear()
        for number in range(40):
            await emit(OrderPaid(str(number), shop="x" * 60_000))
        await until(lambda: listener.is_full)
        await process.events.current_state("order.paid", 40)
        await asyncio.sleep(0.5)
        # What one event is beyond the limit may wait, too.
        output: Any = listener._stream
        assert output.waiting <= MAX_UNREAD_BYTES + 2**16
        stream.visit.stalled.set()
        numbers = [(await stream.next("event"))["data"]["number"] for _ in range(40)]
        assert numbers == [str(number) for number in range(40)]


async def test_a_slow_match_holds_up_its_own_type_alone(
    hear: Hear, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_app.process.event_streams.MAX_AT_ONCE", 2)
    monkeypatch.setattr("mcp_app.process.event_streams.MAX_OF_TYPE", 1)
    over = threading.Event()

    def hold(*_arguments: object) -> bool:
        return over.wait(60)

    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(pushing(await hear(), name=name))
            for name in ("stock.low", "stock.low", "order.paid")
        ]
        for each in opened:
            await each.next("active")
        (entry,) = (
            each
            for each in process.catalogs.by_slug["private"].events.values()
            if each.identity == "stock.low"
        )
        chooser = entry.runnable.run.__self__  # type: ignore[attr-defined]
        object.__setattr__(chooser, "match", hold)
        await emit(StockLow(product="nail", left=1))
        await until(lambda: len(process.event_streams._busy) > 0)
        await emit(OrderPaid("1"))
        async with asyncio.timeout(10):
            await opened[-1].next("event")
        over.set()
        for each in opened[:-1]:
            await each.next("event")
        object.__setattr__(chooser, "match", is_for_manager)


async def test_the_tool_is_there_for_who_sees_an_event_type(hear: Hear) -> None:
    async def names(**headers: str) -> set[str]:
        client = (await hear(**headers)).client
        found: set[str] = set()
        params: JsonObject = {}
        while True:
            page = (await client.request("tools/list", params)).result
            found |= {each["name"] for each in page["tools"]}
            if "nextCursor" not in page:
                return found
            params = {"cursor": page["nextCursor"]}

    assert WAIT_FOR_EVENT in await names()
    assert WAIT_FOR_EVENT not in await names(**{"x-tags": "other"})
