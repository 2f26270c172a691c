"""*Try it* of an event type: what somebody would have been told of what happened."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.utils.timezone import now

from mcp_app.catalog.registry import mcp
from mcp_app.invalidation.events import record_occurrence
from mcp_app.models import Counter, EventType, Occurrence, Server
from mcp_app.process.runtime import Process
from tests import behaviours
from tests.admin.pages import page_of
from tests.admin.trying.console import label_of, run, text_of
from tests.drill.models import Order
from tests.kinds.query import shop
from tests.published import end_stops, published, stopped, stops

CONFIG = {
    "model": "drill.Order",
    "on": ["changed"],
    "watched": ["state"],
    "filters": [
        {"path": "state", "lookup": "exact", "value": "sent"},
        {"path": "number", "lookup": "exact", "parameter": "number"},
    ],
    "fields": ["number", "total"],
}


def _made() -> EventType:
    config = json.dumps(CONFIG)
    row = EventType(name="order.sent", kind="change", config=config, tags="private")
    return published(row)


@pytest.fixture
async def sent(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[EventType]:
    """An event type *order is sent*, published."""
    opened = shop.watched_shop()
    for registry in (mcp, behaviours.registry):
        monkeypatch.setattr(registry, "open_models", opened)
    before = await sync_to_async(stops)()
    row = await sync_to_async(_made)()
    yield row
    await sync_to_async(end_stops)(before)
    await sync_to_async(row.delete)()
    for model in (Order, Occurrence):
        await model.objects.all().adelete()
    await Counter.objects.filter(name="occurrences").adelete()
    await process.gate.wait_for_check()


async def happens(
    number: str, *changed: str, state: str = "sent", **more: bool
) -> None:
    """Let an order be changed."""
    columns = {"number": number, "state": state, "total": 1, "created": now(), **more}
    order = await Order.objects.acreate(**columns)
    data = {"pk": order.pk, "on": "changed", "changed": changed or ["state"]}
    record = sync_to_async(record_occurrence)
    await record("+drill.Order", json.dumps(data).encode())


def rows_of(response: object) -> list[list[str]]:
    table = response.context["shown"].table  # type: ignore[attr-defined]
    return [[cell.text for cell in row[1:]] for row in table.rows]


async def test_what_happened_last_is_told_as_to_a_subscriber(
    client: AsyncClient, sent: EventType
) -> None:
    url = page_of(sent, "try")
    shown = await run(client, url)
    assert label_of(shown) == "Answered"
    assert "Nothing has happened yet." in text_of(shown)
    await happens("A1")
    await happens("A2", state="open")
    await happens("A3", hidden=True)
    await happens("A4", "note")
    await happens("A5")
    shown = await run(client, url)
    assert rows_of(shown) == [["A1", "1.00"], ["A5", "1.00"]]
    assert "Of the last 5 that happened, 2 would be told." in text_of(shown)
    shown = await run(client, url, number="A5")
    assert rows_of(shown) == [["A5", "1.00"]]
    # Nothing is undone afterwards, as nothing changes.
    assert "Dry run" not in text_of(shown)


async def test_a_working_copy_is_tried_before_it_is_published(
    client: AsyncClient, sent: EventType
) -> None:
    await happens("A1", state="open")
    config = {**CONFIG, "filters": []}
    await EventType.objects.filter(pk=sent.pk).aupdate(config=json.dumps(config))
    row = await EventType.objects.aget(pk=sent.pk)
    await row.asave()
    assert rows_of(await run(client, page_of(sent, "try"))) == [["A1", "1.00"]]


async def test_what_is_stopped_says_so(
    client: AsyncClient, process: Process, sent: EventType
) -> None:
    await sync_to_async(stopped)(sent)
    shown = await run(client, page_of(sent, "try"), which="published")
    assert "This event type is switched off by the people" in text_of(shown)


async def test_lists_of_a_server_show_it(
    client: AsyncClient, process: Process, sent: EventType
) -> None:
    server = await Server.objects.aget(slug="private")
    shown = text_of(await client.get(page_of(server, "seen")))
    assert "Event types" in shown
    assert page_of(sent, "try") in shown
