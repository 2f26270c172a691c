"""Event types as staff make them, without scripts and without JSON."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from mcp_app.catalog.registry import mcp
from mcp_app.models import EventSubscription, EventType, Server
from tests.admin.pages import (
    Staff,
    errors,
    fill_in,
    form_page,
    page,
    page_of,
    save,
    saved,
    text_of,
    words_of,
)
from tests.kinds.query import shop
from tests.published import published

pytestmark = pytest.mark.django_db

ROW = "config-0"
ORDERS = f"{form_page('eventtype', 'change')}&model=drill.Order"
PAID = {
    f"{ROW}-watched": ["state"],
    f"{ROW}-filters-add": "state",
    f"{ROW}-columns": ["number", "total"],
    "title": "Order becomes paid",
}
SENT_ALONE = {
    f"{ROW}-filters-0-{name}": value
    for name, value in (("lookup", "exact"), ("source", "fixed"), ("value", "sent"))
}


@pytest.fixture(autouse=True)
def _opened(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"rows": "all", "permission": "mcp_app.view_task"}
    opened = shop.watched_shop(events=["created", "changed", "deleted"], **options)
    monkeypatch.setattr(mcp, "open_models", opened)


def _paid(client: Client) -> EventType:
    assert saved(fill_in(client, ORDERS, **PAID))
    row = EventType.objects.get()
    save(client, row, **SENT_ALONE, description="")
    return row


def test_order_becomes_paid_is_made_and_published(admin_client: Client) -> None:
    kinds = words_of(admin_client, page("eventtype", "add"))
    # Only what happens to orders is written down.
    assert "model=drill.Order" in kinds
    assert "model=drill.Item" not in kinds
    row = _paid(admin_client)
    assert row.json("config") == {
        "model": "drill.Order",
        "on": ["changed"],
        "watched": ["state"],
        "filters": [{"path": "state", "lookup": "exact", "value": "sent"}],
        "fields": ["number", "total"],
    }
    assert (row.name, row.kind) == ("order-becomes-paid", "change")
    assert "It is told when a row is changed: its state." in row.description
    assert "whoever may view orders" in words_of(admin_client, row)
    shown = words_of(admin_client, page_of(row, "publish"))
    assert "Only if one of these changed" in shown
    sent = {"looked_at": row.content_hash, "number": 0}
    admin_client.post(page_of(row, "publish"), sent)
    row.refresh_from_db()
    assert row.published is not None
    assert row.published.read()["config"] == row.json("config")


def test_what_is_drafted_says_what_happens(admin_client: Client) -> None:
    assert saved(fill_in(admin_client, ORDERS, **{f"{ROW}-on": ["created", "deleted"]}))
    row = EventType.objects.get()
    assert row.title == "Order is added or is deleted"
    assert row.json("config")["on"] == ["created", "deleted"]
    assert 'name="icons"' not in text_of(admin_client, row)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({f"{ROW}-on": ["created"]}, "Only what is changed can be watched"),
        (
            {f"{ROW}-on": ["changed", "deleted"]},
            "A row that is deleted fits no",
        ),
    ],
)
def test_what_cannot_be_told_is_said_at_the_form(
    admin_client: Client, typed: Any, sentence: str
) -> None:
    row = _paid(admin_client)
    assert sentence in errors(fill_in(admin_client, page_of(row), **typed))["config"]


def test_a_subscriber_is_asked(admin_client: Client) -> None:
    typed = {**PAID, f"{ROW}-filters-add": "number"}
    assert saved(fill_in(admin_client, ORDERS, **typed))
    row = EventType.objects.get()
    asked = {"required": "on", "lookup": "exact"}
    save(
        admin_client, row, **{f"{ROW}-filters-0-{n}": each for n, each in asked.items()}
    )
    found = words_of(admin_client, page_of(row, "publish"))
    assert "Describe what clients must say: number." in found


def test_publishing_says_what_breaks(admin_client: Client) -> None:
    row = published(_paid(admin_client))
    subscription: Any = {"server": "a", "topic": "+drill.Order", "event_type": row.name}
    for number, arguments in enumerate(('{"old":1}', "{}")):
        EventSubscription.objects.create(
            **{**subscription, "public_id": f"s{number}", "arguments": arguments},
            **dict.fromkeys(("position", "expires_ms", "due_ms", "created_ms"), 0),
        )
    save(admin_client, row, **{f"{ROW}-columns": ["number"]})
    found = words_of(admin_client, page_of(row, "publish"))
    assert "what reads “total”, 1 subscription, which ends." in found
    assert "total: text, not required" in found


def test_who_may_not_change_what_is_told_makes_none(staff: Staff) -> None:
    client = staff("add_eventtype", "view_eventtype")
    assert fill_in(client, ORDERS, **PAID).status_code == 403
    assert not EventType.objects.exists()
    # A right on event types is none on tools.
    assert client.get(page("tool")).status_code == 403


def test_a_server_that_chose_before_stays_as_it_was(admin_client: Client) -> None:
    server = Server.objects.create(slug="shop", selection="chosen")
    assert "events" not in server.working_content()["chosen"]
    row = _paid(admin_client)
    save(admin_client, server, events=[str(row.pk)])
    assert server.working_content()["chosen"]["events"] == [row.pk]
