"""The admin's tools, held against its pages: a browser is the judge."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, User
from django.db.models import PROTECT, Model
from django.urls import reverse
from pytest_django import Settings
from webtest import Form

from mcp_app.catalog.registry import Registry
from mcp_app.interface.log_secrets import BLOT
from mcp_app.models import AccessToken, Server
from mcp_app.test import Client
from mcp_app.test.results import Result
from mcp_app.toolsets.admin_forms import plain_value
from tests.drill.models import Country, Customer, Invoice, Item, Ledger, Order, Stock
from tests.toolsets.browser import BERLIN, browser_of, rows_after, rows_of_site
from tests.toolsets.office import MODELS, office
from tests.toolsets.people import client_of, person

ORDER = "drill.order"
LONG = "x" * 100_000


def label(model: type[Model] | Model) -> str:
    return model._meta.label_lower


def page_of(row: Model, view: str = "change") -> str:
    options = row._meta
    name = f"office:{options.app_label}_{options.model_name}_{view}"
    return reverse(name, args=[row.pk])


def order(number: str) -> Order:
    return Order.objects.get(number=number)


def texts(cells: Any) -> list[str]:
    return [" ".join(each.text.split()) for each in cells]


def with_keys(value: Any, keys: dict[str, int]) -> Any:
    """Return a value, or a list of them, with keys in the place of names."""
    if isinstance(value, list):
        return [with_keys(each, keys) for each in value]
    return str(keys[value]) if value in keys else value


# -- the same as the pages -------------------------------------------------------------


def test_a_form_with_nothing_named_does_what_a_browser_does(
    tools: Client, boss: User, settings: Settings
) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, BERLIN]
    browser, changed = browser_of(boss), 0
    for model in MODELS:
        for row in model._default_manager.order_by("pk")[:3]:
            call = {"model": label(model), "key": str(row.pk)}
            results: list[Result] = []

            def use_tool(call: Any = call, results: Any = results) -> None:
                results.append(tools.try_call("admin_change", **call))

            by_tool, form = rows_after(use_tool), f"{model._meta.model_name}_form"
            page = browser.get(page_of(row))
            if results[0].text == "You may not do this.":
                assert 'name="_save"' not in page.text
                continue
            by_browser = rows_after(partial(page.forms[form].submit, "_save"))
            assert by_tool == by_browser, (row, results)
            changed += not results[0].is_error
    assert changed >= 6


FIELDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "number": ("B-1", {"number": "B-1"}),
    "state": ("back", {"state": "back"}),
    "total": ("1234.50", {"total": "1234.50"}),
    "weight": (1234.75, {"weight": "1234,75"}),
    "created": (
        "2026-05-01T08:00:00Z",
        {"created_0": "01.05.2026", "created_1": "13:00:00"},
    ),
    "due": ("2027-02-03", {"due_year": "2027", "due_month": "2", "due_day": "3"}),
    "note": ("a\nb", {"note": "a\nb"}),
    "margin": (7, {"margin": "7"}),
    "customer": ("Rui", {"customer": "Rui"}),
    "suppliers": (["PT"], {"suppliers": ["PT"]}),
    "hidden": (True, {"hidden": "on"}),
    "remark": ("", {"remark": ""}),
}


def test_fields_are_set_as_in_a_browser(
    tools: Client, boss: User, settings: Settings
) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, BERLIN]
    row, before = order("A-2"), rows_of_site()
    page = browser_of(boss).get(page_of(row))
    keys = {"Rui": Customer.objects.get(name="Rui").pk}
    keys["PT"] = Country.objects.get(code="PT").pk
    for field, (value, typed) in FIELDS.items():
        form = Form(page, page.forms["order_form"].text)
        for name, each in typed.items():
            form[name].force_value(with_keys(each, keys))
            form[name].checked = True
        values = {field: with_keys(value, keys)}
        call = {"model": ORDER, "key": str(row.pk), "values": values}
        by_tool = rows_after(partial(tools.call, "admin_change", **call))
        assert by_tool == rows_after(partial(form.submit, "_save")), field
        assert by_tool != before


def test_lists_are_those_of_the_pages(tools: Client, boss: User) -> None:
    browser = browser_of(boss)
    lists: dict[str, dict[str, Any]] = {
        "": {},
        "p=2": {"page": 2},
        "q=rui": {"search": "rui"},
        "state__exact=sent": {"filters": {"state": "Sent"}},
        "size=large&state__exact=open": {
            "filters": {"size": "Large orders", "state": "Waits to be sent"}
        },
        "customer__name=Rui": {"filters": {"customer__name": "Rui"}},
        "o=-3": {"sort": "-price"},
        "o=1&q=a&p=2": {"sort": "number", "search": "a", "page": 2},
    }
    for query, call in lists.items():
        page = browser.get(f"{reverse('office:drill_order_changelist')}?{query}").html
        answer = tools.call("admin_list", model=ORDER, **call).data
        for column in ("number", "price", "customer"):
            cells = texts(page.select(f".field-{column}"))
            assert cells == [each[column] for each in answer["rows"]], (query, column)
        keys = [each["value"] for each in page.select("input.action-select")]
        assert keys == [each["key"] for each in answer["rows"]]
        assert str(answer["total"]) in page.select_one(".paginator").text
    assert answer["filters"]["size"] == ["All", "Large orders", "Small <orders>"]
    names = ["state", "size", "customer__name", "suppliers__name"]
    assert [*answer["filters"]] == names
    assert answer["actions"]["send"] == "Send the orders"
    assert "delete_selected" not in answer["actions"]
    every = tools.call("admin_list", model="drill.customer").data["rows"]
    assert [{**each, "key": 0} for each in every] == [
        {"key": 0, "str": "Rui", "email": "Rui@example.com", "country": None},
        {"key": 0, "str": "Ana", "email": "Ana@example.com", "country": None},
    ]


def test_a_row_is_shown_with_all_that_its_page_has(tools: Client) -> None:
    row = order("A-2")
    tools.call("admin_change", model=ORDER, key=row.pk, values={"note": "new"})
    answer = tools.call("admin_get", model=ORDER, key=row.pk, history=True).data
    assert answer["text"] == "A-2"
    assert answer["values"]["customer"] == {"key": row.customer_id, "text": "Ana"}
    assert len(answer["values"]["suppliers"]) == 2
    assert answer["values"]["created"] == "2026-03-04T05:06:07+00:00"
    assert answer["values"]["price"] == "80.00 €"
    assert plain_value(Decimal("0E-7")) == "0.0000000"
    assert "secret_code" not in answer["values"]
    assert answer["values"]["facts"] == {"api_key": BLOT, "n": 1}
    [item] = answer["inlines"]["items"]
    assert (item["key"], item["key_"]) == (row.items.get().pk, "made today")
    assert (item["amount"], item["stock"]["text"]) == (3, "S-1")
    [entry] = answer["history"]
    assert (entry["user"], entry["change"]) == ("boss", "Changed Note.")


def test_a_form_says_what_can_be_entered(tools: Client) -> None:
    form = tools.call("admin_form", model=ORDER, key=order("A-6").pk).data
    hidden = {"number", "price", "secret_code", "facts"}
    assert hidden.isdisjoint(form["values"]["properties"])
    state = form["values"]["properties"]["state"]
    assert state["enum"] == ["open", "sent", "back"]
    assert state["description"].startswith("State. open: Waits to be sent; ")
    # What has a value can be left out.
    assert form["values"]["required"] == ["suppliers"]
    assert form["inlines"]["items"]["may"] == ["add", "change", "delete"]
    assert form["inlines"]["items"]["most"] == 3
    Customer.objects.create(name="Gone Ana")
    for field, words, expected in [
        ("customer", "AN", ["Ana"]),
        ("suppliers", "", ["FR", "PT"]),
        ("items.stock", "s-2", ["S-2"]),
    ]:
        options = {"field": field, "search": words}
        choices = tools.call("admin_form", model=ORDER, **options).data["choices"]
        assert [each["text"] for each in choices] == expected
    result = tools.try_call("admin_form", model=ORDER, field="number")
    assert result.text.startswith("There is no relation “number”; there is: customer, ")


# -- changing --------------------------------------------------------------------------


@pytest.mark.databases
def test_a_row_is_added_with_rows_that_belong_to_it(tools: Client) -> None:
    stock = Stock.objects.get(sku="S-2").pk
    values = {
        **{"number": "C-1", "total": "5.00", "created": "2026-01-01T10:00:00+01:00"},
        **{"customer": Customer.objects.get(name="Rui").pk, "state": "open"},
        "suppliers": [Country.objects.get(code="FR").pk],
    }
    items = [{"stock": stock, "amount": 2}, {"stock": stock}, {"stock": stock}]
    answer = tools.call(
        "admin_add", model=ORDER, values=values, inlines={"items": items}
    )
    row = order("C-1")
    assert answer.data["key"] == str(row.pk)
    assert "was added successfully" in answer.data["messages"][0]
    assert row.created.isoformat() == "2026-01-01T09:00:00+00:00"
    assert [each.amount for each in row.items.order_by("pk")] == [2, 1, 1]
    assert row.margin == 1
    assert LogEntry.objects.get().object_id == str(row.pk)
    user = {"username": "new", "password1": "x", "password2": "x"}
    refused = tools.try_call("admin_add", model="auth.user", values=user).text
    assert refused == "\n".join(
        f"password{number}: it cannot be changed here." for number in (1, 2)
    )
    added = tools.call("admin_add", model="drill.stock", values={"price": 3}).data
    assert Stock.objects.get(pk=added["key"]).level == 7


def test_rows_that_belong_to_a_row_change_and_go(tools: Client) -> None:
    row = order("A-2")
    kept = row.items.get()
    gone = Item.objects.create(order=row, stock=kept.stock)
    items = [{"key": kept.pk, "amount": 9}, {"key": str(gone.pk), "delete": True}]
    tools.call("admin_change", model=ORDER, key=row.pk, inlines={"items": items})
    assert [each.amount for each in row.items.all()] == [9]
    assert "Deleted item" in LogEntry.objects.get().get_change_message()


REFUSED: dict[str, dict[str, Any]] = {
    "weird: no such field. There is hidden, number, state,": {"values": {"weird": 1}},
    "price: it cannot be changed here.": {"values": {"price": "1"}},
    "secret_code: it cannot be changed here.": {"values": {"secret_code": "1"}},
    "number: No number begins with X.": {"values": {"number": "X-1"}},
    "number: Order with this Number already exists.": {"values": {"number": "A-1"}},
    "number: This field is required.": {"values": {"number": None}},
    "number: it must be one value, and no list.": {"values": {"number": ["a"]}},
    "number: it must be one value, and no object.": {"values": {"number": {"a": 1}}},
    "number: Null characters are not allowed.": {"values": {"number": "a\0"}},
    "hidden: it must be true or false.": {"values": {"hidden": "false"}},
    "suppliers: it must be a list of values.": {"values": {"suppliers": "1"}},
    "suppliers: Select a valid choice. 99 is not": {"values": {"suppliers": [99]}},
    "customer: Select a valid choice. That choice": {"values": {"customer": 99}},
    "created: it must be like 2026-01-31T12:00:00Z.": {"values": {"created": "3. Mai"}},
    "due: it must be like 2026-01-31.": {"values": {"due": "3. Mai 2026x"}},
    "total: Ensure that there are no more than 12 digits": {
        "values": {"total": "1e400"}
    },
    "margin: Enter a whole number.": {"values": {"margin": 1.5}},
    "The site takes no request as large": {"values": {"note": "x" * 3_000_000}},
    "lines: there are no such rows here. There is items.": {"inlines": {"lines": [{}]}},
    "items, key 99: no such row here.": {"inlines": {"items": [{"key": 99}]}},
    "items[1].weird: no such field.": {"inlines": {"items": [{"weird": 1}]}},
    "items[1]: all values are those of an empty row": {"inlines": {"items": [{}]}},
    "items[2]: all values are those of an empty row": {
        "inlines": {"items": [{"amount": 4}, {"key_": "made today"}]}
    },
    "items[1].stock: This field is required.": {"inlines": {"items": [{"amount": 4}]}},
    "items: there may be 3 rows.": {"inlines": {"items": [{"amount": 4}] * 3}},
}


def test_what_does_not_fit_is_a_sentence(tools: Client) -> None:
    row, before = order("A-2"), rows_of_site()
    good = {"values": {"note": "good"}, "inlines": {}}
    for sentence, bad in REFUSED.items():
        call = {name: {**good[name], **bad.get(name, {})} for name in good}
        result = tools.try_call("admin_change", model=ORDER, key=row.pk, **call)
        assert result.is_error, sentence
        assert sentence in result.text
    assert rows_of_site() == before


def test_a_value_that_the_form_offers_no_more_is_told(tools: Client) -> None:
    Order.objects.filter(number="A-2").update(state="lost")
    change = partial(tools.try_call, "admin_change", model=ORDER, key=order("A-2").pk)
    told = change(values={"note": "new"}).text
    assert "state: This value was there before, and the form does not" in told
    assert not change(values={"note": "new", "state": "back"}).is_error


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("admin_list", {"model": LONG}),
        ("admin_list", {"model": ORDER, "filters": {LONG: "a"}}),
        ("admin_list", {"model": ORDER, "sort": LONG}),
        ("admin_form", {"model": ORDER, "field": LONG}),
        ("admin_get", {"model": ORDER, "key": LONG}),
        ("admin_act", {"model": ORDER, "action": LONG, "keys": ["1"]}),
        ("admin_add", {"model": ORDER, "values": {LONG: 1}}),
        ("admin_add", {"model": ORDER, "values": {}, "inlines": {LONG: []}}),
    ],
)
def test_a_long_name_is_cut(
    tools: Client, name: str, arguments: dict[str, Any]
) -> None:
    told = tools.try_call(name, **arguments)
    assert told.is_error
    assert len(told.text) < 2_000


@pytest.mark.databases
def test_an_unknown_row_and_one_out_of_reach_are_the_same(tools: Client) -> None:
    hidden = str(order("A-7").pk)
    for key in ("99", "x", "", "1/history", "9" * 400, "a\0", hidden):
        text = f"There is no order with the key {key}.".replace("\0", "")
        for name in ("admin_get", "admin_form", "admin_change", "admin_delete"):
            assert tools.try_call(name, model=ORDER, key=key).text == text
        result = tools.try_call("admin_act", model=ORDER, action="send", keys=[key])
        expected = f"Nothing was done. The list has no row {key}."
        assert result.text == expected.replace("\0", "")


def test_what_looks_like_a_tag_stays_in_messages(tools: Client) -> None:
    call = {"model": ORDER, "key": order("A-2").pk, "values": {"number": "<b>&amp;"}}
    [message] = tools.call("admin_change", **call).data["messages"]
    assert message == "The order “<b>&amp;” was changed successfully."


@pytest.mark.databases
def test_a_page_that_raises_stores_nothing(tools: Client) -> None:
    row, before = order("A-2"), rows_of_site()
    with pytest.raises(RuntimeError, match="The note exploded"):
        tools.call("admin_change", model=ORDER, key=row.pk, values={"note": "explode"})
    assert rows_of_site() == before


@pytest.mark.databases
def test_a_row_is_deleted_in_two_steps(tools: Client, registry: Registry) -> None:
    row, other = order("A-2"), order("A-1")
    call = {"model": ORDER, "key": str(row.pk)}
    first = tools.call("admin_delete", **call).data
    assert first["total"] == len(first["deletes"]) == 5
    assert f"Item: {row.items.get()}" in first["deletes"]
    confirm = first["confirm"]
    # Another row, another person, and another state.
    tools.call("admin_delete", model=ORDER, key=str(other.pk), confirm=confirm)
    second_boss = client_of(person("second", is_superuser=True), registry)
    assert "confirm" in second_boss.call("admin_delete", **call, confirm=confirm).data
    extra = Item.objects.create(order=row, stock=Stock.objects.get(sku="S-2"))
    again = tools.call("admin_delete", **call, confirm=confirm).data
    assert again["total"] == 6
    assert Order.objects.count() == 8
    extra.delete()
    done = tools.call("admin_delete", **call, confirm=confirm).data
    assert "was deleted successfully" in done["messages"][0]
    assert not Order.objects.filter(number="A-2").exists()
    assert LogEntry.objects.get().is_deletion()
    gone = tools.try_call("admin_delete", **call, confirm=confirm)
    assert gone.text == f"There is no order with the key {row.pk}."


def test_a_deletion_tells_no_secret_of_what_goes_along(shop: None) -> None:
    registry = Registry()
    registry.admin_tools(change=[User], models=[User])
    user = person("gone")
    user.groups.add(Group.objects.create(name="some"))
    tools = client_of(person("root", is_superuser=True), registry)
    first = tools.call("admin_delete", model="auth.user", key=str(user.pk)).data
    assert first["deletes"] == ["User: gone", "User-group relationship"]


def test_a_deletion_tells_all_that_goes_along(tools: Client) -> None:
    """Also what comes after something that others belong to."""
    user, server = person("gone"), Server.objects.create(slug="other")
    for name in ("one", "two"):
        AccessToken.objects.make(user=user, name=name, servers=[server])
    first = tools.call("admin_delete", model="auth.user", key=user.pk).data
    assert first["total"] == 5
    assert first["deletes"].count("Access token") == 2


def test_what_is_in_the_way_of_a_deletion_is_told(
    shop: None, registry: Registry
) -> None:
    tools = client_of(person("half", "view_order", "delete_order"), registry)
    result = tools.try_call("admin_delete", model=ORDER, key=order("A-2").pk)
    assert result.text == "You may not delete: invoice."


@pytest.mark.parametrize("reach", [[], [Invoice]])
def test_rows_out_of_reach_are_told_by_their_kind(
    shop: None, monkeypatch: pytest.MonkeyPatch, reach: list[type[Model]]
) -> None:
    """In the way of a deletion, along with one, within an inline, and in a history."""
    relation: Any = Invoice._meta.get_field("order")
    row = order("A-2")
    invoice, item, customer = row.invoice, row.items.get(), row.customer
    assert customer is not None
    added = {"name": "invoice", "object": str(invoice)}
    changed = {"name": "item", "object": str(item), "fields": ["Amount"]}
    message: Any = [{"added": {}}, {"added": added}, {"changed": changed}]
    boss = person("boss", is_superuser=True)
    LogEntry.objects.log_actions(
        boss.pk, Order.objects.filter(pk=row.pk), CHANGE, message
    )
    registry = Registry()
    registry.admin_tools(site=office, change=[Customer, Order], models=reach)
    tools = client_of(boss, registry)
    gone = {"orders": [{"key": row.pk, "delete": True}]}
    key = str(row.pk)
    entry = tools.call("admin_get", model=ORDER, key=key, history=True).data["history"]
    along = tools.call("admin_delete", model=ORDER, key=key).data["deletes"]
    monkeypatch.setattr(relation.remote_field, "on_delete", PROTECT)
    needed = tools.try_call("admin_delete", model=ORDER, key=key).text
    call = {"model": label(customer), "key": customer.pk, "inlines": gone}
    refused = tools.try_call("admin_change", **call).text
    text, change = (f"Invoice: {invoice}", invoice) if reach else ("Invoice", "…")
    changes = f"Added. Added invoice “{change}”. Changed Amount for item “{item}”."
    assert entry[0]["change"] == changes
    assert [each for each in along if "country" not in each] == [
        "Order: A-2",
        f"Item: {item}",
        text,
    ]
    assert "Order-country relationship" in along
    assert needed == f"It is needed by: {text}."
    assert "orders: Other rows need A-2." in refused.split("\n")


@pytest.mark.databases
def test_actions_run_on_rows_of_the_list(tools: Client) -> None:
    keys = [order("A-1").pk, str(order("A-2").pk)]
    call = {"model": ORDER, "keys": keys}
    assert tools.call("admin_act", action="send", **call).data == {
        "messages": ["2 sent."]
    }
    assert order("A-2").state == "sent"
    assert tools.call("admin_act", action="export", **call).text == "A-1\nA-2"
    assert tools.try_call("admin_act", action="fail", **call).text == "Nobody is there."
    before = rows_of_site()
    assert tools.call("admin_act", action="go_on", **call).data == {
        "see": "/wizard/",
        "messages": ["The site goes on at /wizard/, in a browser."],
    }
    for action, sentence in {
        "ask": "This asks something on a page of its own. Use the admin for it.",
        "delete_selected": "There is no action “delete_selected”; there is: send, ",
    }.items():
        result = tools.try_call("admin_act", action=action, **call)
        assert result.text.startswith(sentence)
    hidden = {**call, "keys": [*keys, order("A-7").pk]}
    result = tools.try_call("admin_act", action="send", **hidden)
    assert result.text.startswith("Nothing was done. The list has no row ")
    assert rows_of_site() == before
    assert tools.try_call("admin_act", action="send", model=ORDER, keys=[]).is_error


def test_what_no_list_has_is_a_sentence(tools: Client) -> None:
    calls: list[tuple[dict[str, Any], str]] = [
        (
            {"filters": {"sise": "x"}},
            "There is no filter “sise”; there is: size, state, customer__name, ",
        ),
        (
            {"filters": {"state": "Opn"}},
            "There is no choice “Opn”; there is: All, Waits to be sent, Sent, ",
        ),
        ({"sort": "-note"}, "There is no column “note”; there is: number, state, "),
        ({"page": 9}, "There is no such page."),
        ({"page": -1}, "There is no such page."),
        ({"search": "a\0"}, "This list cannot be searched like this."),
        ({"search": "a" * 100_000}, "Invalid arguments for admin_list:"),
        (
            {"model": "drill.ordr"},
            "There is no model “drill.ordr”; there is: drill.order, drill.",
        ),
        ({"model": "drill.stock", "search": "a"}, "This list cannot be searched"),
    ]
    for call, sentence in calls:
        result = tools.try_call("admin_list", **{"model": ORDER, **call})
        assert result.text.startswith(sentence), call
    result = tools.try_call("admin_change", model="drill.ledger", key="1")
    assert result.text.startswith("Rows of “drill.ledger” cannot be changed; those of:")
    row = Ledger.objects.create(key="a", worker="b")
    listed = tools.call("admin_list", model="drill.ledger").data["rows"]
    assert listed == [{"key": str(row.pk), "key_": "a", "worker": "b"}]
    assert tools.try_call("admin_get", model="drill.ledger", key="1").text == (
        "This page of the admin cannot be read here."
    )
