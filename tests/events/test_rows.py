"""Event types that staff made of rows, as who subscribes hears of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db.models.signals import post_save, pre_save
from pytest_django import Settings

from mcp_app.catalog.open_models import connect_row_events
from mcp_app.interface.principal import AccessRequest
from mcp_app.invalidation import row_events
from mcp_app.invalidation.changes import WatchedQuerySet
from mcp_app.models import EventType
from tests.drill.models import Order
from tests.events.conftest import Hear, registry
from tests.invalidation.test_changes import elsewhere  # noqa: F401 - a fixture
from tests.kinds.query import shop
from tests.published import published
from tests.scripting import TAG

TOPIC = "+drill.Order"


def own_orders(request: AccessRequest) -> Any:
    return Order.objects.filter(note=request.principal.user_id)


def event_type(name: str, fields: list[str], **config: Any) -> EventType:
    whole = {"model": "drill.Order", "on": ["created", "changed"], "fields": fields}
    text = json.dumps({**whole, **config})
    return published(EventType(name=name, kind="change", config=text, tags=TAG))


@pytest.fixture
def staff_events(shop_events: None) -> Iterator[None]:
    registry.open_model(
        Order,
        fields=["number", "state", "total"],
        filters=["state", "margin"],
        permissions={"total": "shop.see_totals"},
        permission="",
        rows=own_orders,
        events=["created", "changed"],
        watch=["state"],
    )
    connect_row_events(registry.open_models, lambda: "")
    asked = {"path": "state", "lookup": "exact", "parameter": "state"}
    rich = {"path": "margin", "lookup": "gte", "value": 10}
    rows = [
        event_type("order.any", ["number"], filters=[asked]),
        event_type("order.moves", ["state"], on=["changed"], watched=["state"]),
        event_type("order.rich", ["number"], filters=[rich]),
        event_type("order.total", ["total"]),
    ]
    yield
    for row in rows:
        row.delete()
    Order.objects.all().delete()
    registry.open_models.clear()
    del row_events.connected[TOPIC]
    for signal in (pre_save, post_save):
        signal.disconnect(sender=Order, dispatch_uid=TOPIC)


NAMES = ("order.any", "order.moves", "order.rich")


pytestmark = pytest.mark.usefixtures("staff_events")


async def test_each_hears_of_their_own_rows(hear: Hear) -> None:
    ana, ben = await hear(), await hear(user="ben")
    begin = {name: (await ana.poll(name))["cursor"] for name in NAMES}

    async def heard(client: Any, name: str, **arguments: str) -> list[Any]:
        answer = await client.told(name, begin[name], arguments=arguments)
        assert not answer["truncated"]
        return [each["data"] for each in answer["events"]]

    def happen() -> None:
        rows = [
            shop.order("1", note="ana", margin=20),
            shop.order("2", note="ana"),
            shop.order("3", note="ben"),
            shop.order("4", note="nobody", margin=20),
        ]
        Order.objects.create(number="5", total=1, created=shop.moment(0)).delete()
        rows[1].state = "sent"
        rows[1].save()
        rows[2].save()

    await sync_to_async(happen)()
    assert await heard(ben, "order.any") == [{"number": "3"}, {"number": "3"}]
    assert await heard(ana, "order.any") == [{"number": n} for n in "122"]
    assert await heard(ana, "order.any", state="sent") == [{"number": "2"}] * 2
    assert await heard(ana, "order.moves") == [{"state": "sent"}]
    # What can be asked by alone is never told.
    assert await heard(ana, "order.rich") == [{"number": "1"}]


async def test_a_field_that_is_not_for_all_hides_what_tells_it(hear: Hear) -> None:
    ana, ben = await hear(), await hear(**{"x-permissions": "shop.see_totals"})
    unknown = await ana.refused(name="order.nothing")
    hidden = await ana.refused(name="order.total")
    assert json.dumps(unknown).replace("nothing", "total") == json.dumps(hidden)
    assert (await ben.poll("order.total"))["events"] == []


async def test_too_many_rows_are_a_gap(
    hear: Hear, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = await hear()
    await sync_to_async(lambda: [shop.order(n, note="ana") for n in "12"])()
    cursor = (await ana.poll("order.moves"))["cursor"]
    monkeypatch.setattr(row_events, "MAX_KEYS", 1)
    cursor = (await ana.poll("order.moves"))["cursor"]
    await sync_to_async(WatchedQuerySet(Order).update)(weight=1)
    await sync_to_async(WatchedQuerySet(Order).update)(state="back")
    while not (answer := await ana.poll("order.moves", cursor))["truncated"]:
        pass
    assert answer["events"] == []
    later = await ana.poll("order.moves", answer["cursor"])
    assert (later["events"], later["truncated"]) == ([], False)


class LateReplica:
    """Reads orders where there are none."""

    def db_for_read(self, model: type[Any], **_hints: Any) -> str | None:
        return "elsewhere" if model is Order else None

    def db_for_write(self, model: type[Any], **_hints: Any) -> str | None:
        return "default" if model is Order else None


async def test_a_row_is_read_where_it_was_written(
    hear: Hear,
    settings: Settings,
    elsewhere: str,  # noqa: F811
) -> None:
    ana = await hear()
    cursor = (await ana.poll("order.any"))["cursor"]
    settings.DATABASE_ROUTERS = [LateReplica()]
    await sync_to_async(shop.order)("1", note="ana")
    (event,) = (await ana.told("order.any", cursor))["events"]
    assert event["data"] == {"number": "1"}
