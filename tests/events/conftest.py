"""Event types of a shop, and clients that hear of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NotRequired, TypeAlias, TypedDict

import pytest
from asgiref.sync import sync_to_async
from pydantic import BaseModel
from pytest_django import Settings

from mcp_app import AccessRequest
from mcp_app.catalog.registry import Registry
from mcp_app.egress.client import close_connections
from mcp_app.models import Counter, EventSubscription, Occurrence
from mcp_app.process.runtime import Process
from mcp_app.protocol.events import EXTENSION
from tests.asgi_client import Client, JsonObject
from tests.events.receivers import Receiver, receiver_in
from tests.scripting import STATELESS, TAG, scripted_registry
from tests.serving import PATIENCE_S, Connect

ANA: Final = {"x-user": "ana"}
HEARS_EVENTS: Final[JsonObject] = {"extensions": {EXTENSION: {}}}


@dataclass
class OrderPaid:
    """An order was paid."""

    number: str
    shop: str = "ulm"
    total: float = 0.0


class TicketOpened(TypedDict):
    """A ticket came in."""

    subject: str
    urgent: NotRequired[bool]


class StockLow(BaseModel):
    """A product is nearly sold out."""

    product: str
    left: int


def is_for_manager(event: StockLow, request: AccessRequest) -> bool:
    if event.product == "broken":
        raise RuntimeError("No such product.")
    most: Any = (request.arguments or {}).get("at_most", 5)
    return event.left <= int(most)


AT_MOST: Final = {
    "type": "object",
    "properties": {"at_most": {"type": "integer"}},
    "additionalProperties": False,
}


def event_registry() -> Registry:
    """Return a registry with event types of each kind of class, and scripted tools."""
    registry = scripted_registry()
    registry.event("order.paid", filters=["shop", "number"], tags=[TAG])(OrderPaid)
    registry.event("ticket.opened", own=True, tags=[TAG])(TicketOpened)
    registry.event("stock.low", match=is_for_manager, input_schema=AT_MOST, tags=[TAG])(
        StockLow
    )
    registry.event("order.secret", permission="shop.see_secrets", tags=[TAG])(
        dataclass(type("Secret", (), {"__annotations__": {"number": str}}))
    )
    return registry


registry: Final = event_registry()


class EventClient:
    """Somebody who polls."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def poll(
        self, name: str = "order.paid", cursor: str | None = None, **more: Any
    ) -> JsonObject:
        params = {"name": name, "cursor": cursor, **more}
        return (await self.client.request("events/poll", params)).result

    async def told(
        self, name: str = "order.paid", cursor: str | None = None, **more: Any
    ) -> JsonObject:
        """Poll until there is something: a process may be a moment late."""
        async with asyncio.timeout(PATIENCE_S):
            while not (answer := await self.poll(name, cursor, **more))["events"]:
                await asyncio.sleep(0.02)
        return answer

    async def refused(self, method: str = "events/poll", **params: Any) -> JsonObject:
        return (await self.client.request(method, params)).error


Hear: TypeAlias = Callable[..., Any]


@pytest.fixture
def shop_events(
    scripted: None, served_rows: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Serve the event types; what happened is forgotten after the test."""
    monkeypatch.setattr("tests.behaviours.registry", registry)
    yield
    Occurrence.objects.all().delete()
    EventSubscription.objects.all().delete()
    Counter.objects.filter(name="occurrences").delete()


@pytest.fixture
def hear(shop_events: None, connect: Connect) -> Hear:
    """Return a client that hears of events, by default ana's."""

    async def connected(
        version: str = STATELESS, user: str = "ana", **headers: str
    ) -> EventClient:
        client = await connect(
            version,
            path="/mcp/private",
            headers={"x-user": user, **headers},
            capabilities=HEARS_EVENTS if version == STATELESS else None,
        )
        return EventClient(client)

    return connected


@pytest.fixture
async def ana(hear: Hear) -> EventClient:
    found: EventClient = await hear()
    return found


@pytest.fixture
async def receiver(
    shop_events: None, process: Process, settings: Settings, tmp_path: Path
) -> AsyncIterator[Receiver]:
    """A receiver on loopback that subscriptions may name."""
    async with receiver_in(tmp_path) as opened:
        settings.MCP = {**settings.MCP, "EVENTS": opened.settings()}
        yield opened
    await close_connections()


async def capabilities_of(client: Client) -> JsonObject:
    """Return what the server says that ana can use."""
    new = Client(client.application, client.version, path=client.path, headers=ANA)
    stateless = client.revision.stateless
    hello = new.message("server/discover") if stateless else new.initialize()
    capabilities: JsonObject = (await new.sent(hello)).result["capabilities"]
    return capabilities


async def emit(event: object, **more: Any) -> str:
    identifier: str = await sync_to_async(registry.emit)(event, **more)
    return identifier


@contextmanager
def stopped_type(process: Process, name: str = "order.paid") -> Iterator[None]:
    """Let a process know that an event type is stopped."""
    catalogs, slug = process.catalogs, "private"
    catalog = catalogs.by_slug[slug]
    stopped = {"events": {name: catalog.events[name]}}
    changed = catalog.with_changes({"events": {name: None}}, stopped)
    catalogs.by_slug = {**catalogs.by_slug, slug: changed}
    try:
        yield
    finally:
        catalogs.by_slug = {**catalogs.by_slug, slug: catalog}
