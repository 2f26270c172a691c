"""Queries as staff compose them, without scripts and without JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import CASCADE, CharField, ForeignKey, Model
from django.test import Client
from django.test.utils import isolate_apps
from django.utils.translation import gettext_lazy, override

from mcp_app.catalog.open_models import open_model
from mcp_app.catalog.registry import mcp
from mcp_app.kinds.query.config import input_schema
from mcp_app.kinds.query.reading import read_query_config
from mcp_app.models import ResourceTemplate, Tool
from mcp_app.publishing import publication
from tests.admin.pages import (
    Queries,
    Staff,
    errors,
    fill_in,
    fill_in_again,
    form_of,
    form_page,
    grant,
    page,
    page_of,
    save,
    saved,
    shown_values,
    text_of,
)
from tests.drill.models import Country, Customer, Order
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


def _filter(at: int, path: str, lookup: str, **more: Any) -> dict[str, Any]:
    typed = {"path": path, "lookup": lookup, "source": "client", **more}
    return {f"filters-{at}-{name}": value for name, value in typed.items()}


def _shown_again(client: Client, row: Any, **typed: Any) -> Any:
    """Send the form of a row by a button that saves nothing."""
    sent = {f"{ROW}-{name}": value for name, value in typed.items()}
    response = fill_in(client, page_of(row), **sent, **{"show-add": "1"})
    assert response.status_code == 200
    return response


def test_rows_of_everybody(admin_client: Client, monkeypatch: Any) -> None:
    said = "Developers have opened items in full, but a item belongs to a"
    tool = _tool(model="drill.Item")
    assert said not in text_of(admin_client, tool)
    monkeypatch.setattr(mcp, "open_models", shop.shop(Item="all"))
    assert said in text_of(admin_client, tool)


def test_a_new_tool_begins_with_what_most_want(admin_client: Client) -> None:
    url = f"{form_page('tool', 'query')}&model=drill.Customer"
    response = fill_in(admin_client, url, **{f"{ROW}-filters-add": "name"})
    assert saved(response)
    tool = Tool.objects.get()
    assert tool.json("config") == {
        "model": "drill.Customer",
        "answer": "rows",
        "fields": ["name", "email", "country"],
        "filters": [{"path": "name", "lookup": "words", "parameter": "name"}],
    }
    # What is left empty is as drafted.
    assert (tool.title, tool.name) == ("Customers by name", "customers-by-name")
    assert tool.description.endswith("Give name: words of the name.")


def test_names_do_not_meet(admin_client: Client) -> None:
    url = f"{form_page('tool', 'query')}&model=drill.Customer"
    for title in ("", "", "العملاء"):
        assert saved(fill_in(admin_client, url, title=title))
    names = Tool.objects.order_by("pk").values_list("name", flat=True)
    assert [*names] == ["customers", "customers-2", "customers-3"]


def test_a_customer_with_open_invoices(admin_client: Client) -> None:
    tool = _tool(model="drill.Customer", fields=["name", "country.name"])
    listed = _fill(admin_client, tool, **{"lists-add": "invoices"})["lists"][0]
    # The way back to the customer is not preset.
    assert "customer" not in listed["fields"]
    unpaid = _filter(0, "paid", "exact", source="fixed", value="False")
    typed = {
        "order-add": "-name",
        "limit": "5",
        "count": "on",
        "lists-0-columns": ["key", "order"],
        "lists-0-order": "order",
        "lists-0-limit": "3",
        **_filter(0, "email", "exact", required="on", description="Whose."),
        **{f"lists-0-{name}": value for name, value in unpaid.items()},
    }
    invoices = {
        "path": "invoices",
        "fields": ["key", "order"],
        "filters": [{"path": "paid", "lookup": "exact", "value": False}],
        "order": ["order"],
        "limit": 3,
    }
    email = {"path": "email", "lookup": "exact", "parameter": "email"}
    assert _fill(admin_client, tool, **typed) == {
        "model": "drill.Customer",
        "filters": [{**email, "description": "Whose.", "required": True}],
        "fields": ["name", "country.name"],
        "lists": [invoices],
        "order": ["-name"],
        "limit": 5,
        "count": True,
    }


def test_one_row_for_each_address(admin_client: Client) -> None:
    typed = {"name": "order", "title": "Order", "uri_template": "shop://o/{number}"}
    url = f"{form_page('resourcetemplate', 'query')}&model=drill.Order"
    number = _filter(0, "number", "exact")
    sent = {f"{ROW}-{name}": each for name, each in number.items()}
    chosen = {f"{ROW}-columns": ["number"]}
    assert saved(fill_in(admin_client, url, **typed, **chosen, **sent))
    assert ResourceTemplate.objects.get().json("config") == {
        "model": "drill.Order",
        "answer": "one",
        "filters": [{"path": "number", "lookup": "exact", "parameter": "number"}],
        "fields": ["number"],
    }


def test_a_form_is_shown_again_without_saving(admin_client: Client) -> None:
    """What a script draws anew, a button does without one."""
    tool = _tool(fields=["number"])
    response = _shown_again(admin_client, tool, **{"filters-add": "state"})
    text = response.content.decode()
    assert '<details class="mcp-filter" open' in text
    assert "<strong>state</strong> is one of the given <em>state</em>" in text
    assert 'type="checkbox" name="config-0-filters-0-value"' in text
    sent = {**shown_values(response), f"{ROW}-filters-0-lookup": "exact"}
    again = admin_client.post(page_of(tool), {**sent, "show-line": f"{ROW}-filters-0"})
    assert '<select name="config-0-filters-0-value"' in again.content.decode()
    sent = {**shown_values(again), "show-remove": f"{ROW}-filters-0"}
    removed = admin_client.post(page_of(tool), sent)
    assert f"{ROW}-filters-0-path" not in shown_values(removed)
    tool.refresh_from_db()
    assert tool.json("config") == {"model": "drill.Order", "fields": ["number"]}


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
        {"path": "customer.name", "lookup": "in", "value": ["Smith, Ann", " Bo"]},
    ],
    "lists": [{"path": "items", "fields": ["stock.sku", "amount"], "order": ["-id"]}],
    "order": ["-created", "customer.name"],
    "totals": [{"aggregate": "sum", "path": "total", "name": "sum_total"}],
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
    assert tool.json("config") == config


def test_what_only_the_other_answer_has_is_not_stored(admin_client: Client) -> None:
    tool = _tool(**WHOLE)
    shown = _shown_again(admin_client, tool, answer="groups")
    back = fill_in_again(
        admin_client, page_of(tool), shown, **{f"{ROW}-answer": "rows", "show-add": "1"}
    )
    assert {*shown_values(back)[f"{ROW}-columns"]} == {*WHOLE["fields"]}
    config = _fill(admin_client, tool, answer="groups")
    assert not {"fields", "lists", "count", "totals"} & config.keys()


def test_a_description_that_nobody_wrote_stays_true(
    admin_client: Client, monkeypatch: Any
) -> None:
    state = Order._meta.get_field("state")
    monkeypatch.setattr(state, "verbose_name", gettext_lazy("password"))
    tool = _tool(fields=["number", "state"])
    told = "Orders: number and password, at most %s."
    with override("de"):
        _fill(admin_client, tool, limit="40")
    assert tool.description == told % 40
    old: Any = published(tool).published
    _fill(admin_client, tool, limit="3")
    assert tool.description == told % 3
    published(tool)
    again: Any = {"author": None, "number": 2, "working_copy": True}
    publication.roll_back(tool, old, mcp, **again)
    tool.refresh_from_db()
    assert tool.description == told % 40
    _fill(admin_client, tool, columns=["number"], **_filter(0, "state", "exact"))
    assert tool.description == "Orders: number, at most 40. Give state."
    save(admin_client, tool, description="Orders, as people want them.")
    _fill(admin_client, tool, limit="9")
    assert tool.description == "Orders, as people want them."


def test_a_filter_is_removed(admin_client: Client) -> None:
    tool = _tool(**WHOLE)
    removed = {"show-remove": f"{ROW}-filters-0", f"{ROW}-filters-3-value": "last_week"}
    shown = fill_in(admin_client, page_of(tool), **removed)
    assert saved(fill_in_again(admin_client, page_of(tool), shown))
    tool.refresh_from_db()
    period = {"path": "due", "lookup": "period", "value": "last_week"}
    kept = WHOLE["filters"]
    assert tool.json("config")["filters"] == [*kept[1:3], period, *kept[4:]]


def test_a_value_is_asked_for_once_the_line_was_left(admin_client: Client) -> None:
    tool, wanted = _tool(fields=["number"]), "Write the value."
    shown = _shown_again(admin_client, tool, **{"filters-add": "total"})
    for change in ({"source": "fixed"}, {"lookup": "gte"}):
        typed = {f"{ROW}-filters-0-{name}": each for name, each in change.items()}
        sent = {**shown_values(shown), **typed, "show-add": "1"}
        shown = admin_client.post(page_of(tool), sent)
        assert wanted not in shown.content.decode()
    again = {**shown_values(shown), "show-add": "1"}
    assert wanted in admin_client.post(page_of(tool), again).content.decode()


def test_what_is_not_empty(admin_client: Client) -> None:
    tool = _tool(fields=["number"])
    config = _fill(admin_client, tool, **_filter(0, "due", "-isempty"))
    asked = {"path": "due", "lookup": "isempty", "value": False}
    assert config["filters"] == [asked]
    save(admin_client, tool, title="B")
    assert tool.json("config") == config
    assert "<strong>due</strong> is not empty" in text_of(admin_client, tool)


def test_each_parameter_has_a_name_of_its_own(admin_client: Client) -> None:
    tool = _tool(fields=["number"])
    for count in range(1, 4):
        filters = _fill(admin_client, tool, **{"filters-add": "state"})["filters"]
        assert len(filters) == count
    assert [each["parameter"] for each in filters] == ["state", "state_2", "state_3"]


def test_what_most_want_is_one_choice(admin_client: Client, monkeypatch: Any) -> None:
    ready: dict[str, Any] = {
        "due=this_month": {"path": "due", "lookup": "period", "value": "this_month"},
        "state=sent": {"path": "state", "lookup": "exact", "exclude": True},
        "invoice.paid=False": {"path": "invoice.paid", "lookup": "exact"},
    }
    ready["state=sent"]["value"], ready["invoice.paid=False"]["value"] = "sent", False
    tool = _tool(fields=["number"])
    text = text_of(admin_client, tool)
    for label in ("due: this month", "created: from now on", "state: not Sent"):
        assert f">{label}</option>" in text
    for choice in ready:
        config = _fill(admin_client, tool, **{"filters-add": choice})
    assert config["filters"] == [*ready.values()]
    assert shop.problems(config) == []
    many = [(number, f"no {number}") for number in range(13)]
    monkeypatch.setattr(Order._meta.get_field("state"), "choices", many)
    assert ": not no 1<" not in text_of(admin_client, tool)


def test_a_text_in_any_of_several_fields(admin_client: Client) -> None:
    tool = _tool(fields=["number"])
    others = ["note", "customer.name", "customer.email"]
    several = _filter(0, "customer.name", "icontains", others=others, parameter="text")
    config = _fill(admin_client, tool, **several)
    asked = {"lookup": "icontains", "parameter": "text"}
    paths = ["customer.name", "note", "customer.email"]
    assert config["filters"] == [{"path": paths, **asked}]
    what = "a part of the customer: name, note or customer: email."
    assert tool.description.endswith(f"Give text: {what}")
    query: Any = read_query_config(config, shop.shop())[0]
    said = input_schema(query)["properties"]["text"]["description"]
    assert said == what.capitalize()
    config = _fill(admin_client, tool, **{"filters-0-others": []})
    assert config["filters"] == [{"path": "customer.name", **asked}]


def test_rows_and_their_sum(admin_client: Client) -> None:
    config = _fill(admin_client, _tool(), **{"totals-add": "sum/total"})
    assert config["totals"] == WHOLE["totals"]
    said = text_of(admin_client, Tool.objects.get())
    assert "with totals of all that fit: sum_total (sum of total)" in said


def test_what_has_none_of_several_rows(admin_client: Client) -> None:
    Country.objects.create(code="de", name="Germany")
    asked = _filter(0, "suppliers", "-in", source="fixed", value="germany")
    tool = _tool(fields=["number"])
    [written] = _fill(admin_client, tool, **asked)["filters"]
    keys = [Country.objects.get().pk]
    assert (written["path"], written["value"]) == ("suppliers.pk", keys)
    assert "include none of Germany" in text_of(admin_client, tool)


def test_each_line_is_a_value(admin_client: Client) -> None:
    names = {"source": "fixed", "value": "Smith, Ann\r\n\r\n Bo "}
    asked = _filter(0, "customer.name", "in", **names)
    config = _fill(admin_client, _tool(), columns=["number"], **asked)
    assert config["filters"][0]["value"] == ["Smith, Ann", "Bo"]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (_filter(0, "state", "in", parameter="the state"), "Only letters without"),
        (_filter(0, "total", "gte", value="much"), "Write a number."),
        (_filter(0, "due", "last_days", source="fixed", value="x"), "Write a number."),
        (_filter(0, "state", "exact", source="fixed"), "Write the value."),
        (_filter(0, "total", "gte", parameter="cursor"), "our own parameter"),
        (_filter(0, "due", "last_days", value="9999"), "does not fit"),
        (_filter(0, "due", "exact", value="2026-02-30"), "Write a date, such as"),
        (
            _filter(0, "due", "range", value="2026-05-02", value_to="2026-05-01"),
            "after",
        ),
        (
            {
                "measures-0-path": "count",
                "measures-0-name": "Turnover €",
            },
            "beginning with a letter. For example: turnover.",
        ),
        ({"limit": "500"}, "less than or equal to 200"),
    ],
)
def test_what_is_wrong_is_told(
    admin_client: Client, typed: dict[str, Any], sentence: str
) -> None:
    """At its field, in a line that is open; the preview goes on without it."""
    tool = _tool(**({"answer": "groups"} if "measures-0-path" in typed else {}))
    stored = tool.config
    given = {f"{ROW}-{name}": value for name, value in typed.items()}
    sent = {f"{ROW}-columns": ["number"], **given}
    response = fill_in(admin_client, page_of(tool), **sent)
    assert errors(response).keys() == {"config"}
    text = response.content.decode()
    assert sentence in text
    if "measures-0-path" in typed:
        assert "Count of orders: named" in text
        # Nothing is grouped yet.
        assert "and each …" not in text
    if "filters-0-path" in typed:
        assert '<details class="mcp-filter wrong" open' in text
        assert "Not shown: filter 1 has an error." in text
    shown = shown_values(response)
    assert {name: shown.get(name, value) for name, value in given.items()} == given
    tool.refresh_from_db()
    assert tool.config == stored


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
    config = _fill(admin_client, tool, columns=["number"], **{"order-1-path": ""})
    assert config["fields"] == ["number"]


def test_what_the_page_cannot_show_is_json(admin_client: Client) -> None:
    odd: list[tuple[str, object]] = [("in", 7), ("range", [1])]
    odd += [("in", [[1]]), ("exact", {})]
    tool = _tool()
    for lookup, value in odd:
        filters = [{"path": "customer.pk", "lookup": lookup, "value": value}]
        tool.config = json.dumps({"model": "drill.Order", "filters": filters})
        tool.save()
        assert "(a value does not fit its comp" in text_of(admin_client, tool)
    shown = shown_values(admin_client.get(page_of(tool)))
    assert json.loads(shown["config-json"]) == tool.json("config")


@pytest.mark.parametrize(
    ("rights", "sentence"),
    [
        (["behind", "view_order"], ""),
        (["behind"], "You may not see this data yourself (drill.view_order)."),
        # Whoever cannot change what it does gets no rows from it.
        (["view_order"], "Needs"),
    ],
)
def test_only_what_one_may_see_oneself(
    staff: Staff, monkeypatch: pytest.MonkeyPatch, rights: list[str], sentence: str
) -> None:
    opened = {"drill.Order": open_model(Order, fields=["number"], rows="all")}
    monkeypatch.setattr(mcp, "open_models", opened)
    shop.order("a1")
    text = text_of(staff("view_tool", "change_tool", *rights), _tool(fields=["number"]))
    assert sentence in text
    assert (">a1<" in text) is (not sentence)


def test_who_can_see_it_says_what_a_lookup_needs(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = {"drill.Order": open_model(Order, fields=["number"], rows="all")}
    monkeypatch.setattr(mcp, "open_models", opened)
    User.objects.create_user("zoe")
    url = page_of(published(_tool(fields=["number"])), "who")
    labels = [step.label for step in admin_client.get(url).context["steps"]]
    assert "Permission drill.view_order" in labels
    refused = admin_client.get(url, {"show": "cannot"}).context["people"]["shown"]
    assert [each["why"] for each in refused if each["name"] == "zoe"] == [
        "cannot: lacks drill.view_order"
    ]
    grant("view_order", to="zoe")
    shown = admin_client.get(url).context["people"]["shown"]
    assert "zoe" in {each["name"] for each in shown}


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


def test_two_people_at_one_form(admin_client: Client) -> None:
    """Who comes second sees both in words, and puts what they typed on top."""
    number = {"path": "number", "lookup": "exact", "parameter": "number"}
    tool = _tool(fields=["number"], filters=[number], limit=5)
    opened = admin_client.get(page_of(tool))
    theirs = {f"{ROW}-limit": "3", f"{ROW}-filters-0-required": "on"}
    save(admin_client, tool, description="By another.", **theirs)
    typed = {f"{ROW}-filters-add": "state", f"{ROW}-columns": ["number", "id"]}
    refused = fill_in_again(admin_client, page_of(tool), opened, **typed)
    assert "Nothing was overwritten" in refused.content.decode()
    assert shown_values(refused)[f"{ROW}-filters-1-path"] == "state"
    told = form_of(refused).differences  # type: ignore[attr-defined]
    assert ("At most", "3 rows", "5 rows") in told
    on_top = fill_in_again(admin_client, page_of(tool), refused, _mine="1")
    # The draft is about what the form shows now.
    assert "at most 3. Give number. Give state" in on_top.content.decode()
    assert saved(fill_in_again(admin_client, page_of(tool), on_top))
    tool.refresh_from_db()
    assert tool.description == "By another."
    state = {"path": "state", "lookup": "in", "parameter": "state"}
    assert tool.json("config") == {
        "model": "drill.Order",
        "fields": ["number", "id"],
        "filters": [{**number, "required": True}, state],
        "limit": 3,
    }


def test_what_was_typed_is_there_as_json(admin_client: Client) -> None:
    tool = _tool(fields=["number"])
    sent = {f"{ROW}-filters-add": "state", "show-config": "json"}
    response = fill_in(admin_client, page_of(tool), **sent)
    values = shown_values(response)
    assert '"parameter": "state"' in values["config-json"]
    assert values["config-as"] == "json"


ASK: dict[str, Any] = _filter(0, "customer", "exact", source="fixed")


def test_rows_are_picked_by_their_texts(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows that one sees: an error names those that are near, and no others."""
    ann, _bo, _hidden = (
        Customer.objects.create(name=name, email=f"{name}@x.org", hidden=name == "Anna")
        for name in ("Ann", "Bo", "Anna")
    )
    tool = _tool(fields=["number"])
    typed = {f"{ROW}-{name}": value for name, value in ASK.items()}
    response = fill_in(
        admin_client, page_of(tool), **typed, **{f"{ROW}-filters-0-value": "An"}
    )
    assert (
        "No customer of yours is called “An”. Did you mean Ann?"
        in errors(response)["config"]
    )
    text = response.content.decode()
    assert '<option value="Ann"></option>' in text
    assert "Anna" not in text
    config = _fill(admin_client, tool, **ASK, **{"filters-0-value": "ann"})
    [asked] = config["filters"]
    assert asked == {"path": "customer.pk", "lookup": "exact", "value": ann.pk}
    assert shop.problems(config) == []
    # It is shown by its text, and stays as it was.
    shown = shown_values(admin_client.get(page_of(tool)))
    assert shown[f"{ROW}-filters-0-value"] == "Ann"
    save(admin_client, tool, title="B")
    assert tool.json("config") == config
    # Of namesakes it is shown by its key.
    same = Customer.objects.create(name="Ann", email="2@x.org")
    shown = shown_values(admin_client.get(page_of(tool)))
    line = [shown[f"{ROW}-filters-0-{each}"] for each in ("path", "value")]
    assert line == ["customer.pk", str(ann.pk)]
    url = f"{form_page('tool', 'query')}&model=drill.Order"
    response = fill_in(admin_client, url, **typed, **{f"{ROW}-filters-0-value": "Ann"})
    assert f"write one of {ann.pk}, {same.pk}." in errors(response)["config"]


def test_a_range_is_two_values(admin_client: Client) -> None:
    tool = _tool(fields=["number"])
    days = {"value": "2026-01-01", "value_to": ""}
    config = _fill(admin_client, tool, **_filter(0, "due", "range", **days))
    [asked] = config["filters"]
    assert asked["default"] == ["2026-01-01", None]
    assert shop.problems(config) == []
    response = admin_client.get(page_of(tool))
    assert (
        'type="date" name="config-0-filters-0-value" value="2026-01-01"'
        in response.content.decode()
    )
    tool.delete()
    tool, states = _tool(fields=["number"]), ["open", "sent"]
    config = _fill(admin_client, tool, **_filter(0, "state", "-in", value=states))
    asked = {"path": "state", "lookup": "in", "exclude": True, "parameter": "state"}
    assert config["filters"] == [{**asked, "default": states}]


def test_many_choices_are_chosen(admin_client: Client, monkeypatch: Any) -> None:
    """And are read and shown once for all values, not once for each."""
    reads, field = [], Order._meta.get_field("state")
    choices = [(number, f"no {number}") for number in range(200)]

    def flat_choices(_field: object) -> Any:
        reads.append(1)
        return choices

    monkeypatch.setattr(field, "choices", choices)
    monkeypatch.setattr(type(field), "flatchoices", property(flat_choices))
    wanted = {"path": "state", "lookup": "in", "value": [*range(99)]}
    tool = _tool(fields=["number"], filters=[wanted])
    assert 'value="98" selected>no 98</option>' in text_of(admin_client, tool)
    assert len(reads) < 50
    sent = {"title": "Another", f"{ROW}-filters-0-value": [*map(str, range(99))]}
    save(admin_client, tool, **sent)
    assert tool.json("config")["filters"] == [wanted]


@isolate_apps("tests.drill")
def test_a_wide_model(admin_client: Client, monkeypatch: Any) -> None:
    """Its page stays small."""

    def opened(label: str, count: int, **more: Any) -> Any:
        columns = {f"text_{at}": CharField(max_length=9) for at in range(count)} | more
        meta = type("Meta", (), {"app_label": "drill"})
        members = {**columns, "__module__": __name__, "Meta": meta}
        model = type(label, (Model,), members)
        return open_model(model, fields=[*columns], rows="all", permission="")

    near = [opened(f"Near{at}", 30) for at in range(5)]
    keys = {
        f"near_{at}": ForeignKey(each.model, CASCADE) for at, each in enumerate(near)
    }
    wide = [*near, opened("Wide", 200, **keys)]
    monkeypatch.setattr(mcp, "open_models", {each.label: each for each in wide})
    paths = [[f"text_{at}", "near_1.text_2"] for at in range(20)]
    asked = [
        {"path": each, "lookup": "icontains", "parameter": each[0]} for each in paths
    ]
    tool = _tool(model="drill.Wide", fields=["text_1"], filters=asked)
    response = admin_client.get(page_of(tool))
    assert len(response.content) < 1_000_000
    text = response.content.decode()
    assert 'value="near_1.text_2" selected>near 1: text 2</option>' in text


def test_many_rows_are_read_together(
    admin_client: Client, django_assert_max_num_queries: Queries
) -> None:
    """Each by its text, and those that are called alike: whatever their number."""
    keys = [
        Customer.objects.create(name=f"c {at}", email=f"{at}@example.com").pk
        for at in range(30)
    ]
    wanted = {"path": "customer.pk", "lookup": "in", "value": keys}
    tool = _tool(fields=["number"], filters=[wanted])
    with django_assert_max_num_queries(20):
        assert "c 29" in text_of(admin_client, tool)
    sent = {**shown_values(admin_client.get(page_of(tool))), f"{ROW}-limit": "7"}
    with django_assert_max_num_queries(40):
        assert saved(admin_client.post(page_of(tool), sent))
    tool.refresh_from_db()
    assert tool.json("config")["filters"] == [wanted]


def test_a_line_that_is_not_offered_any_more_is_not_added(admin_client: Client) -> None:
    tool = _tool(fields=["number"])
    for lines in ("filters", "lists", "order"):
        again = _shown_again(admin_client, tool, **{f"{lines}-add": "gone"}, limit=7)
        sent = shown_values(again)
        assert sent[f"{ROW}-limit"] == "7"
        assert f"{ROW}-{lines}-0-path" not in sent


def test_an_order_goes_with_what_it_names(admin_client: Client) -> None:
    """Also a further term, which the page does not show."""
    measures = [
        {"aggregate": "count", "name": "orders"},
        {"aggregate": "sum", "path": "total", "name": "sum"},
    ]
    order = ["-orders", "sum"]
    tool = _tool(answer="groups", group_by=["state"], measures=measures, order=order)
    assert _fill(admin_client, tool, limit="7")["order"] == order
    config = _fill(admin_client, tool, **{"measures-1-path": None})
    assert config["order"] == ["-orders"]
    assert "order" not in _fill(admin_client, tool, **{"measures-0-name": "n"})


def test_json_that_was_refused_is_corrected(admin_client: Client) -> None:
    url = f"{form_page('tool', 'query')}&model=drill.Order"
    wrong = {"model": "drill.Order", "order": ["nope"]}
    sent = {"config-as": "json", "config-json": json.dumps(wrong)}
    refused = fill_in(admin_client, url, **sent)
    assert 'href="#id_config-json"' in refused.content.decode()
    sent["config-json"] = json.dumps({**wrong, "order": ["number"]})
    assert saved(fill_in_again(admin_client, url, refused, **sent))
    assert Tool.objects.get().json("config")["order"] == ["number"]
