"""Queries whose code is closed, fails or takes long, as clients see it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models.expressions import RawSQL

from mcp_app.pools.database import writer
from mcp_app.server import invocation
from tests.drill.models import Customer, Order, Stock
from tests.kinds.query import shop
from tests.kinds.query.test_kind import (
    ask,
    asked,
    called,
    closed,
    own,
    served_shop,
    tools,
)

__all__ = ["ask", "closed", "served_shop"]


@pytest.mark.parametrize(
    ("closed", "sentence"),
    [
        ("Customer", "No code opens the model “drill.Customer” (any more)."),
        ("Customer.name", "“name” of drill.Customer cannot be shown"),
        ("Customer.email", "“email” of drill.Customer cannot be asked by"),
    ],
)
async def test_what_code_closes_takes_its_tools_along(
    ask: Any, caplog: pytest.LogCaptureFixture, sentence: str
) -> None:
    assert {*await tools(ask, "shop.customers")} == {"orders", "by_state", "in_thread"}
    params = {"name": "customer", "arguments": {"email": "a"}}
    outcome = await ask("tools/call", "shop.customers", **params)
    assert outcome.error["code"] == -32602
    assert f"is not served: {sentence}" in caplog.text


def _fails() -> Any:
    raise ZeroDivisionError("of the site")


@pytest.mark.parametrize(
    ("rows", "logged"),
    [
        (_fails, "ZeroDivisionError: of the site"),
        (lambda: [Order()], "orders_of returned list, which is no queryset."),
        (lambda: Order.objects.all()[:3], "orders_of returned a slice."),
        (Customer.objects.all, "orders_of returned rows of drill.Customer"),
    ],
)
async def test_rows_that_are_none(
    ask: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    rows: Any,
    logged: str,
) -> None:
    """The client gets the number of the error, and the log has the error."""
    monkeypatch.setattr(own, "rows", rows)
    said = await called(ask, "orders")
    assert "error" in said
    assert "returned" not in said
    assert "ZeroDivision" not in said
    assert logged in caplog.text


def _locked() -> Any:
    raise OperationalError("database is locked")


@pytest.mark.parametrize("name", ["orders", "by_state"])
async def test_a_database_that_is_busy_is_told(
    ask: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As where it cannot be reached: whoever asks again later is answered."""
    monkeypatch.setattr(own, "rows", _locked)
    outcome = await ask("tools/call", name=name, arguments={})
    assert (outcome.status, outcome.error["message"]) == (
        503,
        "The database is busy or cannot be reached. Try again later.",
    )


@pytest.mark.parametrize("mcp", [{"LIMITS": {"query_time": 0.0001}}])
async def test_what_takes_too_long_is_told(ask: Any) -> None:
    """And what could be asked for, so that there is less."""
    assert await called(ask, "orders") == (
        "This took longer than 0.0001 seconds. Ask for less: give state."
    )
    assert await called(ask, "orders", state="open") == (
        "This took longer than 0.0001 seconds. Ask for less."
    )


ALL_WITH_ALL = RawSQL(
    "(SELECT COUNT(*) FROM drill_stock a, drill_stock b, drill_stock c, drill_stock d)",
    (),
)
"""Of 400 rows that takes any of the databases minutes."""


def _write_stock() -> None:
    rows = (Stock(sku=f"s{each}", price=1) for each in range(400))
    Stock.objects.bulk_create(rows)


@pytest.mark.parametrize("mcp", [{"THREADS": 2, "LIMITS": {"query_time": 2}}])
@pytest.mark.databases
async def test_joins_without_end(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database ends them; meanwhile others are answered, and somebody writes."""
    monkeypatch.setattr(invocation, "GATE_S", 0.01)
    await writer.run(_write_stock)
    begun = threading.Event()

    def endless() -> Any:
        begun.set()
        return Order.objects.annotate(all=ALL_WITH_ALL).filter(all__gt=0)

    monkeypatch.setattr(own, "rows", endless)
    slow = asyncio.create_task(called(ask, "orders", state="open"))
    await asyncio.to_thread(begun.wait, 60)
    # Half of two threads.
    assert (await ask("tools/call", name="orders", arguments={})).status == 503
    other = await ask("tools/call", name="in_thread", arguments={})
    assert other.result["content"][0]["text"] == "done"
    await writer.run(lambda: shop.order("meanwhile"))
    assert not slow.done()
    assert await slow == "This took longer than 2 seconds. Ask for less."
    monkeypatch.setattr(own, "rows", None)
    # The thread, its connection and its place are free again.
    assert (await called(ask, "orders", state="open"))["total"] == 5
    asked.clear()
