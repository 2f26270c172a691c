from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings
from django.core import checks
from django.test import override_settings

from mcp_app.catalog.registry import Registry
from mcp_app.checks import definitions
from mcp_app.checks.definitions import (
    check_access,
    check_open_models,
    check_permissions,
    check_public_servers,
    check_rules,
)
from mcp_app.interface.principal import AccessRequest
from mcp_app.models import Server
from tests.drill.models import Country, Customer, Item, Ledger, Order, Stock


@pytest.mark.parametrize(
    ("permission", "found"),
    [
        ("", []),
        ("mcp_app.view_tool", []),
        ("mcp_app.view_nothing", ["mcp_app.W003"]),
        ("shop.view_order", ["mcp_app.W003"]),
    ],
)
def test_permissions_that_code_asks_for(
    permission: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry()

    @registry.tool(permission=permission)
    def guarded() -> str:
        return "done"

    monkeypatch.setattr(definitions, "mcp", registry)
    warnings = check_permissions(None)
    assert [each.id for each in warnings] == found
    assert all("'guarded'" in each.msg and permission in each.msg for each in warnings)


def test_what_code_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    monkeypatch.setattr(definitions, "mcp", registry)
    registry.open_model(Ledger, fields=["key"], rows="all")
    assert check_permissions(None) == check_open_models(None) == []
    registry.open_model(
        Stock,
        fields=["sku"],
        filters=["price"],
        rows="all",
        permission="drill.see_stock",
        permissions={"price": "drill.see_price"},
    )
    assert [each.msg for each in check_permissions(None)] == [
        f"'drill.Stock' requires the permission 'drill.see_{name}', which no model has,"
        " so only superusers will see it."
        for name in ("stock", "price")
    ]
    [warning] = check_open_models(None)
    assert warning.id == "mcp_app.W023"
    assert "'price' is in filters and not in fields" in warning.msg


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {Item: ["amount", "order"], Order: ["number"]},
            "Item.objects.filter(order__in=",
        ),
        (
            {Item: ["amount"], Order: ["number", "items"]},
            "Item.objects.filter(order__in=",
        ),
        (
            {Customer: ["name", "orders"], Order: ["number"]},
            "Customer.objects.filter(orders__in=",
        ),
        (
            {Country: ["name", "supplies"], Order: ["number"]},
            "Country.objects.filter(supplies__in=",
        ),
        ({Stock: ["sku", "items"], Item: ["amount", "stock"], Order: ["number"]}, ""),
        ({Customer: ["name"], Order: ["number", "customer"]}, ""),
    ],
)
def test_rows_of_everybody_beside_a_limited_model(
    monkeypatch: pytest.MonkeyPatch, fields: dict[Any, list[str]], line: str
) -> None:
    def orders_of(request: AccessRequest) -> Any:
        return Order.objects.none()

    registry = Registry()
    monkeypatch.setattr(definitions, "mcp", registry)
    for model, names in fields.items():
        rows: Any = orders_of if model is Order else "all"
        registry.open_model(model, fields=names, rows=rows, permission="")
    warnings = check_open_models(None)
    assert [each.id for each in warnings] == (["mcp_app.W025"] if line else [])
    for each in warnings:
        assert "gets the rows of everybody" in each.msg
        assert f"{line}orders_of(request)).distinct()" in (each.hint or "")


def test_rules_that_let_nobody_in(
    monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    registry = Registry()
    registry.rule("known")(lambda asked: True)
    registry.tool("fine", rule="known")(lambda: "done")
    monkeypatch.setattr(definitions, "mcp", registry)
    assert check_rules(None) == []
    registry.tool("guarded", rule="weekdays")(lambda: "done")
    registry.resource(
        "ledger://{key}", model=Ledger, object_permission="drill.view_ledger"
    )(lambda key: key)
    unknown, objects = check_rules(None)
    assert (unknown.id, objects.id) == ("mcp_app.W020", "mcp_app.W021")
    assert "'guarded' requires the rule 'weekdays'" in unknown.msg
    settings.AUTHENTICATION_BACKENDS = ["tests.auth.backends.ByWorker"]
    assert check_rules(None) == [unknown]


def test_a_server_that_names_what_the_settings_lack() -> None:
    # The test has no access to a database: a statement would raise.
    assert check_access(None) == []
    assert check_access(None, databases=["other"]) == []


@pytest.mark.django_db
def test_the_servers_that_are_closed() -> None:
    assert check_access(None, databases=["default"]) == []
    Server.objects.create(slug="open", access="public")
    Server.objects.create(slug="shop", access="partners token keys")
    [found] = check_access(None, databases=["default"])
    assert (found.id, found.level) == ("mcp_app.W019", checks.WARNING)
    assert found.msg == (
        'The server “shop” lets nobody in, because MCP["AUTHENTICATION"] has no'
        " “partners”, “keys”."
    )
    names = dict.fromkeys(("partners", "keys", "token"), "builtins.len")
    with override_settings(MCP={"AUTHENTICATION": names}):
        assert check_access(None, databases=["default"]) == []
    with override_settings(MCP=[]):
        assert check_access(None, databases=["default"]) == []


@pytest.mark.django_db
def test_a_server_that_cannot_search(monkeypatch: pytest.MonkeyPatch) -> None:
    Server.objects.create(slug="shop", listing="search")
    Server.objects.create(slug="other")
    assert check_access(None, databases=["default"]) == []
    monkeypatch.setattr(definitions, "has_full_text", lambda: False)
    [found] = check_access(None, databases=["default"])
    assert (found.id, found.level) == ("mcp_app.E013", checks.ERROR)
    assert found.msg.startswith("Clients of the server “shop” search for tools")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("access", "trusted", "ids"),
    [
        ("public", 0, ["mcp_app.W028"]),
        ("public", 1, []),
        ("public", ["127.0.0.1"], []),
        ("token", 0, []),
    ],
)
def test_a_server_for_everybody_whose_callers_may_have_no_address(
    settings: Any, access: str, trusted: object, ids: list[str]
) -> None:
    Server.objects.all().delete()
    Server.objects.create(slug="open", access=access)
    settings.MCP = {**settings.MCP, "TRUSTED_PROXIES": trusted}
    assert [each.id for each in check_public_servers(None, ["default"])] == ids
    assert check_public_servers(None, ["other"]) == []
