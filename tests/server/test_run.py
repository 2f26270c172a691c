"""The ends of a run, and what a request says of its caller and its client."""

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
from mcp_app.server.request import Request, client_of
from mcp_app.server.run import End, Run
from mcp_app.server.throttle import NotificationThrottle
from tests.asgi_client import CLIENT, PREFIX, JsonObject

META: Final[JsonObject] = {
    f"{PREFIX}clientInfo": CLIENT,
    f"{PREFIX}clientCapabilities": {"roots": {}},
}


def needs(*permissions: str) -> AccessRequirements:
    return AccessRequirements(permissions=permissions)


@pytest.fixture
async def listing(process: Process) -> Request:
    await process.gate.wait_until_fresh(asyncio.get_running_loop().time())
    return Request(
        adapters=process.adapters,
        catalog=process.catalogs.serving("default"),
        revision=LATEST,
        principal=Principal.ANONYMOUS,
        rights=Rights(frozenset({needs("shop.view_order")})),
        id=1,
        method="resources/subscribe",
        params={},
        meta=META,
    )


@pytest.fixture
def run(listing: Request) -> Run:
    return Run(listing)


async def test_the_first_end_counts(run: Run) -> None:
    told: list[str] = []
    run.add_end_callback(lambda: told.append("first"))
    run.stop(End.TIMED_OUT)
    run.stop(End.CANCELLED)
    assert run.end is End.TIMED_OUT
    run.add_end_callback(lambda: told.append("late"))
    assert told == ["first", "late"]


async def test_the_end_cancels_the_task(run: Run) -> None:
    run.task = asyncio.create_task(asyncio.sleep(60))
    run.stop(End.CLIENT_GONE)
    await asyncio.wait([run.task])
    assert run.task.cancelled()


async def test_a_method_that_needs_a_session(listing: Request) -> None:
    with pytest.raises(InvalidRequest, match="resources/subscribe"):
        _ = listing.own_session


async def test_rights(listing: Request) -> None:
    def sees(demands: AccessRequirements = NO_REQUIREMENTS) -> bool:
        return listing.sees(ToolDefinition(name="t", demands=demands))

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
    listing: Request, scope: Scope, definition: Definition, sees: bool
) -> None:
    asked = listing.with_changes(principal=replace(Principal.ANONYMOUS, scope=scope))
    assert asked.sees(definition) is sees
    needing = replace(definition, demands=needs("shop.view_order"))
    assert not asked.with_changes(rights=NOTHING).sees(needing)


async def test_the_host(listing: Request) -> None:
    assert listing.host == ""
    headers = Headers([(b"host", b"mcp.example:8000")])
    assert listing.with_changes(headers=headers).host == "mcp.example:8000"
    assert listing.with_changes(headers=Headers([])).host == ""


async def test_nobody_is_there_to_be_told(run: Run) -> None:
    run.reply.send(b"{}")
    run.reply.reconnect(1_000)
    assert not run.reply.streams


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
