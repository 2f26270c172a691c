"""The ends of an exchange, and the client as it describes itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from mcp_app.conf import Limits
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.principal import NOTHING, Principal, Rights, Scope
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import InvalidRequest
from mcp_app.protocol.headers import Headers
from mcp_app.protocol.revisions import LATEST
from mcp_app.server.exchange import End, Exchange, NoWayBack, client_of
from mcp_app.server.throttle import NotificationThrottle
from tests.asgi_client import CLIENT, PREFIX, JsonObject

META: Final[JsonObject] = {
    f"{PREFIX}clientInfo": CLIENT,
    f"{PREFIX}clientCapabilities": {"roots": {}},
}


def needs(*permissions: str) -> AccessRequirements:
    return AccessRequirements(permissions=permissions)


@pytest.fixture
async def exchange(process: Process) -> Exchange:
    await process.gate.wait_until_fresh(asyncio.get_running_loop().time())
    return Exchange(
        adapters=process.adapters,
        catalog=process.catalogs.serving("default"),
        revision=LATEST,
        principal=Principal.ANONYMOUS,
        rights=Rights(frozenset({needs("shop.view_order")})),
        request_id=1,
        method="resources/subscribe",
        params={},
        meta=META,
        outgoing=NoWayBack(),
    )


async def test_the_first_end_counts(exchange: Exchange) -> None:
    told: list[str] = []
    exchange.add_end_callback(lambda: told.append("first"))
    exchange.stop(End.TIMED_OUT)
    exchange.stop(End.CANCELLED)
    assert exchange.end is End.TIMED_OUT
    exchange.add_end_callback(lambda: told.append("late"))
    assert told == ["first", "late"]


async def test_the_end_cancels_the_task(exchange: Exchange) -> None:
    exchange.task = asyncio.create_task(asyncio.sleep(60))
    exchange.stop(End.CLIENT_GONE)
    await asyncio.wait([exchange.task])
    assert exchange.task.cancelled()


async def test_a_method_that_needs_a_session(exchange: Exchange) -> None:
    with pytest.raises(InvalidRequest, match="resources/subscribe"):
        _ = exchange.own_session


async def test_rights(exchange: Exchange) -> None:
    def sees(demands: AccessRequirements = NO_REQUIREMENTS) -> bool:
        return exchange.sees(ToolDefinition(name="t", demands=demands))

    assert sees()
    assert sees(needs("shop.view_order"))
    assert not sees(needs("shop.add_order"))
    assert not sees(needs("shop.view_order", "shop.add_order"))


READS = ToolHints(read_only=True)


@pytest.mark.parametrize(
    ("scope", "definition", "sees"),
    [
        (Scope(), ToolDefinition(name="t"), True),
        (Scope(read_only=True), ToolDefinition(name="t"), False),
        (Scope(read_only=True), ToolDefinition(name="t", hints=READS), True),
        (Scope(read_only=True), PromptDefinition(name="p"), True),
        (Scope(tags=frozenset("ab")), ToolDefinition(name="t"), False),
        (Scope(tags=frozenset("ab")), PromptDefinition(name="p", tags=frozenset("bc")),
         True),
        (Scope(tags=frozenset("a"), read_only=True),
         ToolDefinition(name="t", tags=frozenset("a")), False),
    ],
)  # fmt: skip
async def test_what_a_credential_reaches(
    exchange: Exchange, scope: Scope, definition: Definition, sees: bool
) -> None:
    exchange.principal = replace(Principal.ANONYMOUS, scope=scope)
    assert exchange.sees(definition) is sees
    exchange.rights = NOTHING
    needing = replace(definition, demands=needs("shop.view_order"))
    assert not exchange.sees(needing)


async def test_the_host(exchange: Exchange) -> None:
    assert exchange.host == ""
    exchange.headers = Headers([(b"host", b"mcp.example:8000")])
    assert exchange.host == "mcp.example:8000"
    exchange.headers = Headers([])
    assert exchange.host == ""


async def test_the_client_is_read_once(exchange: Exchange) -> None:
    assert exchange.client is exchange.client
    assert exchange.client.name == CLIENT["name"]


async def test_nobody_is_there_to_be_told(exchange: Exchange) -> None:
    exchange.outgoing.send(b"{}")
    exchange.outgoing.reconnect(1_000)
    assert not exchange.outgoing.streams


CLIENTS: Final[list[tuple[JsonObject, tuple[Any, ...]]]] = [
    ({}, ("", "", "", {})),
    (META, ("drill-client", "1.0", "", {"roots": {}})),
    ({f"{PREFIX}clientInfo": {"title": "T"}}, ("", "", "T", {})),
    ({f"{PREFIX}clientInfo": [], f"{PREFIX}clientCapabilities": 7}, ("", "", "", {})),
]


@pytest.mark.parametrize(("meta", "described"), CLIENTS)
def test_clients(meta: JsonObject, described: tuple[Any, ...]) -> None:
    found = client_of(meta)
    assert (found.name, found.version, found.title, found.capabilities) == described


# -- notification throttle -------------------------------------------------------------


BURST: Final = 3
RATE: Final = 10.0
"""So slow that no machine lets one more through while a burst is offered."""


def limits(rates: bool = True) -> Limits:
    return Limits(rates=rates, progress_burst=BURST, progress_rate=RATE)


def collecting() -> tuple[list[int], Callable[[bytes], None]]:
    sent: list[int] = []
    return sent, lambda message: sent.append(int(message))


def offer(
    throttle: NotificationThrottle,
    count: int,
    send: Callable[[bytes], None],
    merge: bool,
) -> None:
    for number in range(count):
        throttle.offer_message(b"%d" % number, send, merge)


async def test_the_rest_is_merged_into_its_last() -> None:
    sent, send = collecting()
    throttle = NotificationThrottle(limits())
    offer(throttle, 20, send, True)
    assert sent == [0, 1, 2]
    await asyncio.sleep(2 / RATE)
    assert sent == [0, 1, 2, 19]


async def test_the_rest_is_dropped_where_nothing_can_be_merged() -> None:
    sent, send = collecting()
    throttle = NotificationThrottle(limits())
    offer(throttle, 20, send, False)
    await asyncio.sleep(2 / RATE)
    assert sent == [0, 1, 2]
    throttle.send_delayed(send)
    assert sent == [0, 1, 2]


async def test_flush_tells_what_was_held_back() -> None:
    sent, send = collecting()
    throttle = NotificationThrottle(limits())
    offer(throttle, 20, send, True)
    throttle.send_delayed(send)
    throttle.send_delayed(send)
    await asyncio.sleep(2 / RATE)
    assert sent == [0, 1, 2, 19]


async def test_what_is_older_is_never_told_after_what_is_newer() -> None:
    sent, send = collecting()
    throttle = NotificationThrottle(limits())
    offer(throttle, 5, send, True)
    await asyncio.sleep(3 / RATE)
    throttle.offer_message(b"7", send, True)
    await asyncio.sleep(3 / RATE)
    assert sent == [0, 1, 2, 4, 7]


async def test_the_rate_fills_up_to_a_burst() -> None:
    sent, send = collecting()
    throttle = NotificationThrottle(limits())
    offer(throttle, BURST, send, True)
    await asyncio.sleep(10 / RATE)
    offer(throttle, 10, send, False)
    assert sent == [0, 1, 2, 0, 1, 2]
