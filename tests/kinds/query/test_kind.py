"""Queries as clients call them, and as who makes one is told what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

import pytest
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from mcp_app.catalog.registry import Registry
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.principal import AccessRequest
from mcp_app.kinds.query.kind import QueryKind
from mcp_app.models import PublishedRow, ResourceTemplate, Tool
from mcp_app.protocol.json_types import JsonObject
from tests.drill.functions.shop import FIELDS
from tests.drill.models import Country, Customer, Invoice, Item, Order, Stock
from tests.kinds.query import shop
from tests.published import published
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect

asked: list[AccessRequest] = []


class Own:
    """What the orders of a test are, if that is told."""

    rows: Callable[[], Any] | None = None


own = Own()


def orders_of(request: AccessRequest) -> Any:
    asked.append(request)
    if own.rows is not None:
        return own.rows()
    return Order.objects.filter(hidden=False)


def shop_registry(closed: str = "") -> Registry:
    """Return a registry that opens the shop; customers need a permission.

    A model, or a field such as "Customer.name", may be closed.
    """
    registry = Registry()
    for model, fields in FIELDS.items():
        if model.__name__ == closed:
            continue
        registry.open_model(
            model,
            fields=[each for each in fields if f"{model.__name__}.{each}" != closed],
            rows=orders_of if model is Order else "all",
            permission="shop.customers" if model is Customer else "",
        )
    registry.tool("in_thread", tags=["private"])(lambda: "done")
    return registry


KIND: Final = QueryKind(shop_registry())
ORDERS: Final[dict[str, Any]] = {
    "model": "drill.Order",
    "fields": ["number", "state"],
    "filters": [{"path": "state", "lookup": "exact", "parameter": "state"}],
    "order": ["number"],
    "limit": 2,
    "count": True,
}
BY_STATE: Final[dict[str, Any]] = {
    "model": "drill.Order",
    "answer": "groups",
    "group_by": ["state"],
    "filters": [{"path": "created", "lookup": "last_days", "value": 7}],
    "measures": [
        {"aggregate": "count", "name": "orders"},
        {"aggregate": "sum", "path": "total", "name": "total"},
    ],
}
CUSTOMER: Final[dict[str, Any]] = {
    "model": "drill.Customer",
    "fields": ["name"],
    "filters": [{"path": "email", "lookup": "exact", "parameter": "email"}],
    "lists": [
        {
            "path": "invoices",
            "fields": ["order.number"],
            "filters": [{"path": "paid", "lookup": "exact", "value": False}],
        }
    ],
}
ONE: Final[dict[str, Any]] = {
    "model": "drill.Order",
    "answer": "one",
    "fields": ["number", "state"],
    "filters": [{"path": "number", "lookup": "exact", "parameter": "number"}],
}
TEMPLATE: Final = "shop://orders/{number}"


@pytest.fixture
def closed() -> str:
    """Return what code does not open: nothing."""
    return ""


@pytest.fixture
def served_shop(
    closed: str,
    served_rows: None,
    django_db_blocker: DjangoDbBlocker,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Orders, and what staff made of them, on the server “private”."""
    monkeypatch.setattr("tests.behaviours.registry", shop_registry(closed))
    if closed:
        # What an earlier process has loaded is of another registry.
        monkeypatch.setattr("tests.serving._warmth", {})
    with django_db_blocker.unblock():
        try:
            _write_shop()
            rows = _published_rows()
            yield
        finally:
            asked.clear()
            for row in rows:
                row.delete()
            for model in (Item, Invoice, Order, Customer, Country, Stock):
                model._default_manager.all().delete()


def _write_shop() -> None:
    for index, state in enumerate(["open", "open", "open", "sent", "sent"]):
        shop.order(f"a{index}", state=state, created=timezone.now())
    shop.order("old", created=timezone.now() - timedelta(days=8))
    shop.order("hidden", hidden=True)
    ann = Customer.objects.create(name="ann", email="ann@example.org")
    for number, paid in (("a0", True), ("a1", False)):
        order = Order.objects.get(number=number)
        Invoice.objects.create(order=order, customer=ann, paid=paid)


def _published_rows() -> list[PublishedRow]:
    made: JsonObject = {"kind": "query", "tags": "private"}
    configs = {"orders": ORDERS, "by_state": BY_STATE, "customer": CUSTOMER}
    tools = [
        Tool(name=name, config=json.dumps(config), **made)
        for name, config in configs.items()
    ]
    state = {"path": "state", "lookup": "exact", "parameter": "state"}
    addresses = {TEMPLATE: ONE, "shop://states/{state}": {**ONE, "filters": [state]}}
    templates = [
        ResourceTemplate(
            name=f"order{at}",
            uri_template=uri,
            config=json.dumps(config),
            public=True,
            **made,
        )
        for at, (uri, config) in enumerate(addresses.items())
    ]
    return [*map(published, tools), *map(published, templates)]


@pytest.fixture
def ask(served_shop: None, connect: Connect) -> Any:
    """Make a request at the server “private”."""

    async def ask(
        method: str, may: str = "", version: str = STATELESS, **params: Any
    ) -> Any:
        headers = {"x-user": "1", "x-permissions": may}
        client = await connect(version, path="/mcp/private", headers=headers)
        return await client.request(method, params)

    return ask


async def called(ask: Any, name: str, may: str = "", **arguments: Any) -> Any:
    outcome = await ask("tools/call", may, name=name, arguments=arguments)
    result = outcome.result
    if result.get("isError"):
        return result["content"][0]["text"]
    assert result["_meta"]["untrusted"] is True
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result["structuredContent"]


async def tools(ask: Any, may: str = "") -> JsonObject:
    """Return the tools of all pages, by their names."""
    tools: list[Any] = []
    more: JsonObject = {}
    while True:
        page = (await ask("tools/list", may, **more)).result
        tools += page["tools"]
        if "nextCursor" not in page:
            return {each["name"]: each for each in tools}
        more = {"cursor": page["nextCursor"]}


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
@pytest.mark.databases
async def test_orders_of_the_week_by_state(ask: Any, version: str) -> None:
    params = {"name": "by_state", "arguments": {}}
    outcome = await ask("tools/call", version=version, **params)
    assert outcome.result["structuredContent"] == {
        "groups": [
            {"state": "open", "orders": 3, "total": "30.00"},
            {"state": "sent", "orders": 2, "total": "20.00"},
        ]
    }


@pytest.fixture
def one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_app.kinds.query.reading.MAX_ROWS", 1)


async def test_more_groups_than_fit(one_group: None, ask: Any) -> None:
    answer = await called(ask, "by_state")
    assert len(answer["groups"]) == 1
    assert answer["note"] == "These are the first 1 groups; there are more."


@pytest.mark.databases
async def test_pages_are_fetched_with_cursors(ask: Any) -> None:
    first = await called(ask, "orders", state="open")
    assert first["rows"] == [
        {"number": "a0", "state": "open"},
        {"number": "a1", "state": "open"},
    ]
    assert first["total"] == 4
    assert first["note"] == (
        "2 of 4. Call again with the same arguments and cursor = next."
    )
    second = await called(ask, "orders", state="open", cursor=first["next"])
    assert [each["number"] for each in second["rows"]] == ["a2", "old"]
    assert second.keys() == {"rows", "total"}
    wrong = "This tool gave no such cursor for these arguments. Call without it."
    assert await called(ask, "orders", state="sent", cursor=first["next"]) == wrong
    assert await called(ask, "orders", cursor=first["next"]) == wrong
    assert await called(ask, "orders", cursor="nonsense") == wrong


async def test_what_is_asked_for_wrongly_is_named(ask: Any) -> None:
    outcome = await ask("tools/call", name="orders", arguments={"state": "opne"})
    assert "state" in json.dumps(outcome.answer)
    outcome = await ask("tools/call", name="orders", arguments={"number": "a"})
    assert "number" in json.dumps(outcome.answer)
    outcome = await ask("resources/read", uri="shop://orders/%00")
    assert outcome.error["code"] == -32602


async def test_a_rule_learns_who_asks_for_what(ask: Any) -> None:
    await called(ask, "orders", state="sent")
    [request] = asked
    assert request.principal.user_name == "1"
    assert (request.server, request.name) == ("private", "orders")
    assert request.arguments == {"state": "sent"}


async def test_who_may_not_see_a_model_does_not_see_its_tools(ask: Any) -> None:
    for may, names in (("", set()), ("shop.customers", {"customer"})):
        assert {*await tools(ask, may)} == {"orders", "by_state", "in_thread", *names}
    hidden, unknown = [
        (await ask("tools/call", name=name, arguments={"email": "a"})).raw
        for name in ("customer", "nothing1")
    ]
    assert hidden == unknown.replace(b"nothing1", b"customer")
    # With the right, the next call is answered.
    given = await called(ask, "customer", "shop.customers", email="ann@example.org")
    assert given["rows"]


@pytest.mark.databases
async def test_a_customer_with_what_is_open(ask: Any) -> None:
    may = "shop.customers"
    found = await called(ask, "customer", may, email="ann@example.org")
    below = {"rows": [{"order": {"number": "a1"}}], "total": 1}
    assert found == {"rows": [{"name": "ann", "invoices": below}]}
    assert await called(ask, "customer", may, email="bob@example.org") == {"rows": []}


async def test_clients_are_told_what_can_be_asked(ask: Any) -> None:
    orders = (await tools(ask))["orders"]
    assert [*orders["inputSchema"]["properties"]] == ["state", "cursor"]
    assert orders["outputSchema"]["required"] == ["rows"]
    assert orders["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }


@pytest.mark.databases
async def test_one_row_for_each_address(ask: Any) -> None:
    outcome = await ask("resources/read", uri="shop://orders/a3")
    [content] = outcome.result["contents"]
    assert json.loads(content["text"]) == {"number": "a3", "state": "sent"}
    # Staff said that all may share it, but rows depend on who asks.
    assert outcome.result["cacheScope"] == "private"
    for number in ("hidden", "nothing"):
        outcome = await ask("resources/read", uri=f"shop://orders/{number}")
        assert outcome.error["code"] == -32602
        assert outcome.error["message"] == "Resource not found"


async def test_several_rows_of_one_address_are_an_error(
    ask: Any, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = await ask("resources/read", uri="shop://states/open")
    assert outcome.error["code"] == -32603
    assert "more than one row of drill.Order has this state." in caplog.text
    outcome = await ask("resources/read", uri="shop://states/back")
    assert outcome.error["code"] == -32602


@pytest.mark.parametrize("mcp", [{"LIMITS": {"query_rows": 1}}])
async def test_an_operator_bounds_pages(ask: Any) -> None:
    assert len((await called(ask, "orders"))["rows"]) == 1


# -- who makes one --------------------------------------------------------------------


def tool(**changes: Any) -> ToolDefinition:
    return ToolDefinition(name="orders", **changes)


def template(uri: str = TEMPLATE, **changes: Any) -> ResourceTemplateDefinition:
    return ResourceTemplateDefinition(uri_template=uri, name="order", **changes)


def _told(definition: Definition, config: Any) -> list[str]:
    return [each.message for each in KIND.config_problems(definition, config)]


def test_what_depends_on_who_asks_is_not_shared() -> None:
    sku = {"path": "sku", "lookup": "exact", "parameter": "number"}
    stock = {**ONE, "model": "drill.Stock", "fields": ["sku"], "filters": [sku]}
    for config, public in ((ONE, False), (stock, True)):
        assert KIND.complete_safely(template(public=True), config).public is public


@pytest.mark.parametrize(
    ("definition", "config", "sentences"),
    [
        (tool(), {}, ["Choose what to look up."]),
        (tool(), {"model": 3}, ["$.model: "]),
        (tool(), ONE, ["One row is what templates answer. Choose rows or groups."]),
        (
            tool(input_schema={"type": "object", "properties": {"a": {}}}),
            ORDERS,
            ["The parameters of a query are those of its filters. Leave them out."],
        ),
        (
            template("shop://orders/{key}"),
            ONE,
            [
                "No filter has the variable {key} as its parameter.",
                "The address has no variable {number}, which a filter asks for.",
            ],
        ),
        (template(), ORDERS | {"filters": ONE["filters"]}, ['"answer" must be "one"']),
        (
            template(),
            {**ONE, "filters": [{**ONE["filters"][0], "lookup": "istartswith"}]},
            ["The variable {number} can be asked by “exact” or “iexact” alone."],
        ),
        (PromptDefinition(name="a"), ORDERS, ["is not for this kind of"]),
    ],
)
def test_what_is_wrong_is_told(
    definition: Definition, config: Any, sentences: list[str]
) -> None:
    told = _told(definition, config)
    assert len(told) == len(sentences)
    for found, sentence in zip(told, sentences, strict=True):
        assert sentence in found


def test_without_open_models_nobody_chooses_it() -> None:
    missing = QueryKind(Registry()).missing()
    assert missing is not None
    assert "mcp.open_model(" in missing.line
    assert KIND.missing() is None
