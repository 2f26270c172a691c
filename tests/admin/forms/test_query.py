"""Queries as staff compose them, without scripts and without JSON."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from mcp_app.catalog.open_models import open_model
from mcp_app.catalog.registry import mcp
from mcp_app.models import ResourceTemplate, Tool
from tests.admin.pages import (
    Queries,
    Staff,
    add,
    errors,
    fill_in,
    grant,
    page,
    page_of,
    save,
    shown_values,
    text_of,
)
from tests.drill.models import Customer, Order
from tests.kinds.query import shop
from tests.published import published

pytestmark = [pytest.mark.django_db]

ROW = "config-0"
PREVIEW = 5
"""Its limit of time, set and taken back, and the rows with their lists."""


@pytest.fixture(autouse=True)
def _opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp, "open_models", shop.shop())


def _tool(**config: Any) -> Tool:
    """Store a tool that looks up orders, if nothing else is said."""
    stored = json.dumps({"model": "drill.Order", **config})
    return Tool.objects.create(name="a", title="A", kind="query", config=stored)


def _fill(client: Client, row: Any, **typed: Any) -> Any:
    """Save the form of a row, and return its config."""
    save(client, row, **{f"{ROW}-{name}": value for name, value in typed.items()})
    return row.json("config")


def _filter(at: int, path: str, comparison: str, **more: Any) -> dict[str, Any]:
    typed = {"path": path, "comparison": comparison, **more}
    return {f"filters-{at}-{name}": value for name, value in typed.items()}


def test_rows_of_everybody(admin_client: Client, monkeypatch: Any) -> None:
    said = "This looks up the rows of everybody"
    tool = _tool(model="drill.Item")
    assert said not in text_of(admin_client, tool)
    monkeypatch.setattr(mcp, "open_models", shop.shop(Item="all"))
    assert said in text_of(admin_client, tool)


def test_orders_of_the_week_by_state(admin_client: Client) -> None:
    typed = {f"{ROW}-model": "drill.Order", "name": "lookup", "title": "Look up"}
    tool = add(admin_client, Tool, "query", **typed)
    assert tool.json("config") == {"model": "drill.Order"}
    _fill(admin_client, tool, answer="groups")
    week = _filter(0, "created", "last_days", given="fixed", value="7")
    told = {"measures_1": "count", "measures_2": "sum/total"}
    groups = {"by_1": "state", "measures_2_name": "money"}
    config = _fill(admin_client, tool, **groups, **told, **week)
    assert config == {
        "model": "drill.Order",
        "answer": "groups",
        "filters": [{"path": "created", "lookup": "last_days", "value": 7}],
        "group_by": ["state"],
        "measures": [
            {"aggregate": "count", "name": "count"},
            {"aggregate": "sum", "path": "total", "name": "money"},
        ],
    }
    assert shop.problems(config) == []


def test_is_it_in_stock(admin_client: Client) -> None:
    tool = _tool(model="drill.Stock")
    sku = _filter(0, "sku", "iexact", required="on", description="Which one.")
    asked = {"path": "sku", "lookup": "iexact", "parameter": "sku"}
    assert _fill(admin_client, tool, shown=["sku", "level"], **sku) == {
        "model": "drill.Stock",
        "answer": "rows",
        "filters": [{**asked, "description": "Which one.", "required": True}],
        "fields": ["sku", "level"],
    }


def test_a_customer_with_open_invoices(admin_client: Client) -> None:
    unpaid = {
        f"list_invoices_{name}": value
        for name, value in _filter(
            0, "paid", "exact", given="fixed", value="no"
        ).items()
    }
    typed = {
        "shown": ["name", "country.name"],
        "order_1": "-name",
        "limit": "5",
        "count": "on",
        "list_invoices": ["key", "order.number"],
        "list_invoices_order_1": "order.number",
        "list_invoices_limit": "3",
        **_filter(0, "email", "exact"),
        **unpaid,
    }
    invoices = {
        "path": "invoices",
        "fields": ["key", "order.number"],
        "filters": [{"path": "paid", "lookup": "exact", "value": False}],
        "order": ["order.number"],
        "limit": 3,
    }
    assert _fill(admin_client, _tool(model="drill.Customer"), **typed) == {
        "model": "drill.Customer",
        "answer": "rows",
        "filters": [{"path": "email", "lookup": "exact", "parameter": "email"}],
        "fields": ["name", "country.name"],
        "lists": [invoices],
        "order": ["-name"],
        "limit": 5,
        "count": True,
    }


def test_one_row_for_each_address(admin_client: Client) -> None:
    typed = {"name": "order", "title": "Order", "uri_template": "shop://o/{number}"}
    model = {f"{ROW}-model": "drill.Order"}
    row = add(admin_client, ResourceTemplate, "query", **typed, **model)
    number = _filter(0, "number", "exact")
    assert _fill(admin_client, row, shown=["number"], **number) == {
        "model": "drill.Order",
        "answer": "one",
        "filters": [{"path": "number", "lookup": "exact", "parameter": "number"}],
        "fields": ["number"],
    }


WHOLE: dict[str, Any] = {
    "limit": 30,
    "model": "drill.Order",
    "answer": "rows",
    "fields": ["total", "number", "customer.name"],
    "filters": [
        {"path": "state", "lookup": "in", "parameter": "s", "default": ["back"]},
        {"path": "total", "lookup": "gte", "value": 2.5},
        {"path": "note", "lookup": "isempty", "parameter": "blank", "default": False},
        {"path": "due", "lookup": "period", "value": "this_week"},
        {"path": ["note", "customer.name"], "lookup": "icontains", "parameter": "text"},
        {"path": "customer.name", "lookup": "in", "value": ["Smith, Ann", "Bo"]},
    ],
    "lists": [{"path": "items", "fields": ["stock.sku", "amount"], "order": ["-id"]}],
    "order": ["-created", "customer.name"],
}
GROUPED: dict[str, Any] = {
    "model": "drill.Order",
    "answer": "groups",
    "fields": ["number"],
    "group_by": ["state", {"path": "created", "unit": "month"}],
    "measures": [
        {"aggregate": "sum", "path": "total", "name": "money"},
        {"aggregate": "count", "name": "orders"},
        {"aggregate": "sum", "path": "total", "name": "sum_total"},
    ],
}


@pytest.mark.parametrize("config", [WHOLE, GROUPED, {"model": "drill.Order"}])
def test_what_nobody_touches_stays(admin_client: Client, config: Any) -> None:
    tool = _tool(**config)
    save(admin_client, tool, title="B")
    assert tool.title == "B"
    assert tool.json("config") == {"answer": "rows", **config}


def test_what_the_other_answer_had_comes_back(admin_client: Client) -> None:
    tool = _tool(**WHOLE)
    _fill(admin_client, tool, answer="groups")
    assert f"{ROW}-shown" not in shown_values(admin_client.get(page_of(tool)))
    assert _fill(admin_client, tool, answer="rows") == WHOLE


def test_a_filter_is_removed(admin_client: Client) -> None:
    removed = {"filters-0-DELETE": "on", "filters-3-value": "last_week"}
    config = _fill(admin_client, _tool(**WHOLE), **removed)
    period = {"path": "due", "lookup": "period", "value": "last_week"}
    kept = WHOLE["filters"]
    assert config["filters"] == [*kept[1:3], period, *kept[4:]]


def test_a_text_in_any_of_several_fields(admin_client: Client) -> None:
    tool = _tool()
    others = ["note", "customer.name", "customer.email"]
    several = _filter(0, "customer.name", "", others=others, parameter="text")
    config = _fill(admin_client, tool, shown=["number"], **several)
    asked = {"lookup": "istartswith", "parameter": "text"}
    paths = ["customer.name", "note", "customer.email"]
    assert config["filters"] == [{"path": paths, **asked}]
    assert shop.problems(config) == []
    assert "Name, note, email begins with" in text_of(admin_client, tool)
    config = _fill(admin_client, tool, **{"filters-0-others": []})
    assert config["filters"] == [{"path": "customer.name", **asked}]


def test_each_line_is_a_value(admin_client: Client) -> None:
    names = {"given": "fixed", "value": "Smith, Ann\r\n\r\n Bo "}
    asked = {
        **_filter(0, "customer.name", "in", **names),
        **_filter(1, "customer", "in", value="7\r\n12"),
    }
    config = _fill(admin_client, _tool(), shown=["number"], **asked)
    fixed, default = config["filters"]

    assert fixed["value"] == ["Smith, Ann", "Bo"]
    assert default["default"] == [7, 12]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (
            _filter(0, "number", "exact", others=["note"]),
            "These comparisons can search several fields: begins with, contains.",
        ),
        (
            _filter(0, "total", "istartswith", others=["note"]),
            "The field chosen above is",
        ),
        (_filter(0, "state", "exact", parameter="the state"), "Only letters without"),
        (_filter(0, "", "exact", value="a"), "Choose a field, or remove this filter."),
        (
            _filter(0, "state", "istartswith"),
            "This field can be compared by: is, is one of",
        ),
        (_filter(0, "total", "gte", value="much"), "Write a number."),
        (_filter(0, "due", "last_days", given="fixed", value="x"), "Write a number."),
        (_filter(0, "customer", "isempty", value="perhaps"), "Write yes or no."),
        (_filter(0, "state", "exact", given="fixed"), "Write the value."),
        (_filter(0, "total", "gte", parameter="cursor"), "our own parameter"),
        (_filter(0, "state", "exact", given="fixed", value="gone"), "does not fit"),
        (_filter(0, "due", "last_days", value="9999"), "does not fit"),
        ({"limit": "500"}, "less than or equal to 200"),
        ({"order_1": "note"}, "not one of the available choices"),
    ],
)
def test_what_is_wrong_is_told(
    admin_client: Client, typed: dict[str, Any], sentence: str
) -> None:
    tool = _tool()
    given = {f"{ROW}-{name}": value for name, value in typed.items()}
    sent = {f"{ROW}-shown": ["number"], **given}
    response = fill_in(admin_client, page_of(tool), **sent)
    assert errors(response).keys() == {"config"}
    assert sentence in response.content.decode()
    shown = shown_values(response)
    kept = {name: value for name, value in given.items() if "order_1" not in name}
    assert {name: shown[name] for name in kept} == kept
    tool.refresh_from_db()
    assert tool.json("config") == {"model": "drill.Order"}


def test_what_is_not_open_any_more_is_shown(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = _tool(**{**WHOLE, "lists": [], "filters": WHOLE["filters"][:4]})
    opened = shop.shop()
    opened["drill.Customer"] = open_model(Customer, fields=["email"], rows="all")  # type: ignore[index]
    monkeypatch.setattr(mcp, "open_models", opened)
    assert "customer.name (not open any more)" in text_of(admin_client, tool)
    response = fill_in(admin_client, page_of(tool), title="B")
    assert "“name” of drill.Customer cannot be shown" in errors(response)["config"]
    config = _fill(admin_client, tool, shown=["number"], order_2="")
    assert config["fields"] == ["number"]


def test_what_the_page_cannot_show_is_json(admin_client: Client) -> None:
    spaces = {"path": "note", "lookup": "in", "value": [" as it is"]}
    tool = _tool(**{**WHOLE, "filters": [spaces]})
    stored = tool.config
    assert "a value begins or ends with a space" in text_of(admin_client, tool)
    save(admin_client, tool, title="B")
    assert tool.config == stored


def test_what_it_gives_now(admin_client: Client) -> None:
    for number in range(7):
        shop.order(f"a{number}", total=Decimal(number))
    text = text_of(admin_client, _tool(fields=["number"]))
    for number in range(7):
        assert (f'<td data-label="number">a{number}</td>' in text) is (number < 5)
    assert "There is more." in text
    assert "tests.kinds.query.shop._not_hidden" in text


@pytest.mark.parametrize("may", [False, True])
def test_only_what_one_may_see_oneself(
    staff: Staff, monkeypatch: pytest.MonkeyPatch, may: bool
) -> None:
    opened = {"drill.Order": open_model(Order, fields=["number"], rows="all")}
    monkeypatch.setattr(mcp, "open_models", opened)
    shop.order("a1")
    rights = ["view_tool", "change_tool", *(["view_order"] if may else [])]
    text = text_of(staff(*rights), _tool(fields=["number"]))
    assert ('<td data-label="number">a1</td>' in text) is may
    assert ("You may not see this data yourself (drill.view_order)." in text) is not may


def test_who_can_see_it_says_what_a_lookup_needs(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = {"drill.Order": open_model(Order, fields=["number"], rows="all")}
    monkeypatch.setattr(mcp, "open_models", opened)
    User.objects.create_user("zoe")
    url = page_of(published(_tool(fields=["number"])), "who")
    labels = [step.label for step in admin_client.get(url).context["steps"]]
    assert "Permission drill.view_order" in labels
    refused = admin_client.get(url, {"show": "cannot"}).context["people"].shown
    assert [each.why for each in refused if each.name == "zoe"] == [
        "cannot: lacks drill.view_order"
    ]
    grant("view_order", to="zoe")
    names = {each.name for each in admin_client.get(url).context["people"].shown}
    assert "zoe" in names


def test_a_function_of_the_site_that_fails(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(request: object) -> Any:
        raise ZeroDivisionError("of the site")

    monkeypatch.setattr(mcp, "open_models", shop.shop(Order=fails))
    text = text_of(admin_client, _tool(fields=["number"]))
    assert "ZeroDivisionError(&#x27;of the site&#x27;)" in text


def test_where_nothing_is_opened_a_developer_is_told(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "open_models", {})
    assert "mcp.open_model(Order" in text_of(admin_client, page("tool", "add"))


def test_who_may_not_change_what_stands_behind_reads_it(staff: Staff) -> None:
    client = staff("view_tool", "change_tool")
    url = page_of(_tool(fields=["number"]))
    response = client.get(url)
    assert f"{ROW}-model" not in shown_values(response)
    assert "drill.Order" in response.content.decode()
    assert client.post(url, {"config-as": "json"}).status_code == 403


@pytest.mark.parametrize("rows", [0, 40])
def test_queries_of_the_page(
    admin_client: Client, django_assert_max_num_queries: Queries, rows: int
) -> None:
    """At any number of rows; the preview has queries of its own."""
    for number in range(rows):
        shop.order(f"o{number}")
        Tool.objects.create(name=f"t{number}", title="T", kind="query")
    tool = Tool.objects.create(name="a", title="A", kind="query", config="{}")
    url = page_of(tool)
    admin_client.get(url)
    with django_assert_max_num_queries(14):
        admin_client.get(url)
    tool.config = json.dumps(WHOLE)
    tool.save()
    with django_assert_max_num_queries(14 + PREVIEW):
        admin_client.get(url)
