"""Tools of models, called as a client calls them."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final
from unittest.mock import ANY

import pytest
from django.contrib.auth.models import User
from django.db import connection, models, transaction
from django.db.models import Q
from django.test.utils import CaptureQueriesContext, isolate_apps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_app.catalog.registry import Registry
from mcp_app.interface.log_secrets import BLOT
from mcp_app.interface.principal import AccessRequest
from mcp_app.kinds.kind import KindError
from mcp_app.kinds.query import reading
from mcp_app.kinds.query.scoping import Path
from mcp_app.protocol.json_types import JsonObject
from mcp_app.test import Client
from tests.drill.functions.shop import FIELDS
from tests.drill.models import Country, Customer, Invoice, Item, Order, Stock
from tests.kinds.query import shop
from tests.kinds.query.interpreter import LISTS
from tests.kinds.query.test_hidden_rows import _change, _keys, _remove
from tests.kinds.query.test_scoping import _HIDDEN, MODELS, Shop
from tests.toolsets.people import client_of, person, problem_of

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

registry: Final = Registry()
ORDER_TOOLS: Final = {"order_list", "order_get", "order_count"}
TARGETS: Final = {name: target for (_model, name), (target, _how) in LISTS.items()}
UNSEEN: Final[dict[Any, Collection[Any]]] = {}
"""Further keys that nobody sees, by models."""


def _open(model: Any, fields: Any) -> None:
    def visible_rows(request: AccessRequest) -> Any:
        return model.objects.filter(hidden=False).exclude(pk__in=UNSEEN.get(model, ()))

    registry.open_model(model, fields=fields, rows=visible_rows, permission="")
    search = ["number", "customer.name", "suppliers.name"] if model is Order else None
    options: Any = {} if search is None else {"search": search}
    registry.model_tools(model, **options)


for each, its_fields in FIELDS.items():
    _open(each, its_fields)


@pytest.fixture
def client() -> Client:
    shop.fill()
    return client_of(person("ada"), registry)


def pages(client: Client, name: str, **arguments: Any) -> Iterator[JsonObject]:
    """Yield all pages of a list."""
    page = client.call(name, **arguments).data
    yield page
    while "next" in page:
        page = client.call(name, **arguments, cursor=page["next"]).data
        yield page


def test_what_is_listed(client: Client) -> None:
    tools = {each["name"]: each for each in client.tools()}
    assert {name for name in tools if name.startswith("order_")} == ORDER_TOOLS
    listed = tools["order_list"]
    assert listed["annotations"]["readOnlyHint"] is True
    properties = listed["inputSchema"]["properties"]
    assert {*properties} == {
        *("search", "state", "total_from", "total_to", "weight_from", "weight_to"),
        *("created_from", "created_to", "due_from", "due_to", "customer_key"),
        *("customer_id", "invoice_key", "sort", "cursor", "weight_empty", "due_empty"),
        *("note_empty", "customer_empty", "customer_id_empty", "invoice_empty"),
        *("items_key", "items_empty", "suppliers_key", "suppliers_empty", "totals"),
        *("total", "weight"),
    }
    assert properties["state"]["enum"] == ["open", "sent", "back"]
    asked = tools["invoice_get"]["inputSchema"]
    assert asked["required"] == ["key"]
    assert asked["properties"]["key"]["description"].endswith(": its key.")
    for each in tools.values():
        described = each["inputSchema"]["properties"].values()
        assert all(parameter["description"] for parameter in described)


def test_a_list_to_its_end(client: Client) -> None:
    for count in range(60):
        shop.order(f"b{count:02}")
    Order.objects.filter(number="b07").update(hidden=True)
    visible = [*Order.objects.filter(hidden=False).order_by("-pk")]
    first, second = pages(client, "order_list", totals=True)
    assert first["total"] == second["total"] == len(visible)
    weights = [each.weight for each in visible if each.weight is not None]
    mean = f"{sum(each.total for each in visible) / len(visible):.6f}"
    totals = {"count": len(visible), "sum_total": ANY, "avg_total": mean}
    totals |= {"sum_weight": sum(weights)}
    totals |= {"avg_weight": round(sum(weights) / len(weights), 6)}
    assert [first["totals"], second["totals"]] == [totals, totals]
    rows = [*first["rows"], *second["rows"]]
    assert [row["id"] for row in rows] == [each.pk for each in visible]
    # A hidden customer is none.
    known = {each.pk: each.name for each in Customer.objects.filter(hidden=False)}
    assert [row["customer"] for row in rows] == [
        {"text": known[each.customer_id], "pk": each.customer_id}
        if each.customer_id in known
        else None
        for each in visible
    ]


@isolate_apps("tests.drill")
def test_secrets_are_neither_shown_nor_searched(db: None) -> None:
    class Card(models.Model):  # noqa: DJ008
        badge_key = models.CharField(max_length=40, db_column="number")
        facts = models.JSONField(db_column="note")

        class Meta:
            app_label = "drill"
            db_table = "drill_order"
            managed = False

    facts = {"a": [{"api_keys": ["s3cret"], "key": "color", "pin": 1}], "max_tokens": 5}
    customer = Customer.objects.create(name="Ana", email="1@example.org")
    row = {"total": 1, "created": datetime.now(UTC), "customer": customer}
    Order.objects.create(number="1", note=json.dumps(facts), **row)
    cards = Registry()
    cards.open_model(Card, fields=["facts", "badge_key"], rows="all", permission="")
    cards.model_tools(Card, fields=["facts"])
    shown = client_of(person("ada"), cards).call("card_list").data["rows"][0]["facts"]
    hidden = {"api_keys": BLOT, "key": "color", "pin": BLOT}
    assert shown == {"a": [hidden], "max_tokens": 5}
    cards = Registry()
    cards.open_model(Card, fields=["badge_key"], rows="all", permission="")
    cards.model_tools(Card, search=["badge_key"])
    assert "search names 'badge_key', which sounds like" in problem_of(cards)


def test_search_filters_and_order(client: Client) -> None:
    customer, day = Customer.objects.get(email="1@example.org"), date(2026, 11, 20)
    cases: list[tuple[JsonObject, JsonObject]] = [
        ({"search": "A1"}, {"number__startswith": "a1"}),
        (
            {"search": "A1 NAME"},
            {"number__startswith": "a1", "customer__hidden": False},
        ),
        ({"customer_key": customer.pk}, {"customer": customer}),
        (
            {"total_from": 3, "total_to": 6, "state": "sent"},
            {"total__gte": 3, "total__lte": 6, "state": "sent"},
        ),
        ({"created_from": day}, {"created__date__gte": day}),
        (
            {"created_from": "2026-11-12", "created_to": shop.moment(4.3).isoformat()},
            {"created__range": (shop.moment(13), shop.moment(4.3))},
        ),
        ({"total": 4.5}, {"total": 4.5}),
        (
            {"weight_empty": True, "due_empty": False},
            {"weight": None, "due__isnull": False},
        ),
    ]
    for arguments, lookups in cases:
        orders = Order.objects.filter(hidden=False, **lookups).order_by("number")
        listed = [*pages(client, "order_list", sort="-number", **arguments)]
        numbers = [row["number"] for page in listed for row in page["rows"]]
        assert numbers == [each.number for each in orders.reverse()]
        assert numbers


def test_one_row_with_what_belongs_to_it(client: Client) -> None:
    order = Order.objects.get(number="a03")
    for count in range(25):
        Item.objects.create(order=order, stock=Stock.objects.all()[0], amount=count)
    Item.objects.filter(order=order, amount=24).update(hidden=True)
    row = client.call("order_get", key=order.pk).data
    visible = order.items.filter(hidden=False)
    assert row["number"] == "a03"
    assert row["items"]["total"] == visible.count() > 20
    [listed] = client.call("order_list", search="a03").data["rows"]
    # Of any number of items, a list of orders says nothing.
    assert "items" not in listed
    assert listed["suppliers"]["total"] == row["suppliers"]["total"]
    # The way back to the order is left out.
    assert {*row["items"]["rows"][0]} == {"id", "stock", "amount"}
    assert [each["id"] for each in row["items"]["rows"]] == [
        each.pk for each in visible.order_by("pk")[:20]
    ]
    suppliers = order.suppliers.filter(hidden=False)
    assert row["suppliers"]["total"] == suppliers.count()


def test_a_hidden_key_is_an_unknown_one(client: Client) -> None:
    for key in (Order.objects.filter(hidden=True)[0].pk, 1_000_000):
        refusal = client.try_call("order_get", key=key)
        assert refusal.is_error
        assert refusal.text == f"There is no order with the key {key}."


def test_counts(client: Client) -> None:
    orders = Order.objects.filter(hidden=False)
    assert client.call("order_count").data == {"count": orders.count()}
    assert client.call("order_count", state="open", total_from=2).data == {
        "count": orders.filter(state="open", total__gte=2).count()
    }
    states = client.call("order_count", by="state").data["groups"]
    assert {each["state"]: each["count"] for each in states} == {
        state: orders.filter(state=state).count() for state in ("open", "sent", "back")
    }
    by_customer = client.call("order_count", by="customer").data["groups"]
    known = Customer.objects.filter(hidden=False)
    # Two customers of one name stay apart.
    of_customers = {each["customer_pk"]: each["count"] for each in by_customer}
    assert of_customers.pop(None) == orders.exclude(customer__in=known).count()
    assert of_customers == {
        each.pk: orders.filter(customer=each).count() for each in known
    }
    months = client.call("order_count", by="created_month").data["groups"]
    assert [each["created_month"] for each in months] == sorted(
        {each.created.date().replace(day=1).isoformat() for each in orders}
    )
    assert sum(each["count"] for each in months) == orders.count()


def test_a_database_without_zones_counts_by_all_but_moments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_zones(path: Path) -> None:
        raise KindError("The database does not know the zone.")

    monkeypatch.setattr(reading, "_check_zones", no_zones)
    own = Registry()
    own.open_model(Order, fields=["state", "created", "due"], rows="all")
    own.model_tools(Order, only=["count"])
    schema: Any = own.tools["order_count"].definition.input_schema
    assert schema["properties"]["by"]["enum"] == ["state", "due_month"]


def test_a_key_that_is_not_opened_is_shown_and_asked_by(client: Client) -> None:
    """Customers are opened without it, and staff do not see it either."""
    assert "id" not in registry.open_models["drill.Customer"].all_fields
    customer = Customer.objects.filter(hidden=False)[0]
    assert client.call("customer_get", key=customer.pk).data["id"] == customer.pk
    invoice = Invoice.objects.filter(hidden=False)[0]
    found = client.call("invoice_get", key=str(invoice.key)).data
    assert found["key"] == str(invoice.key)


def test_numbers_beyond_those_of_the_column(client: Client) -> None:
    far, whole = 10**400, client.call("stock_count").data
    assert client.call("stock_count", level_from=-far, level_to=far).data == whole
    assert client.call("stock_list", level_from=far).data == {"rows": [], "total": 0}


def test_the_key_of_a_relation_leads_to_its_row(client: Client) -> None:
    """Also where another column joins the two."""
    [row, *_] = [
        row for row in client.call("customer_list").data["rows"] if row["country"]
    ]
    key = row["country"]["id"]
    assert client.call("country_get", key=key).data["code"] == row["country_id"]
    assert row in client.call("customer_list", country_key=key).data["rows"]


LATER_THAN_ITS_END: Final = {"created_from": "2026-11-21", "created_to": "2026-11-20"}
REFUSED: Final[list[tuple[str, JsonObject, str]]] = [
    ("order_list", {"state": "lost"}, "state"),
    ("order_list", {"sort": "note"}, "sort"),
    ("order_list", {"margin": 3}, "margin"),
    ("order_list", {"search": ""}, "search"),
    ("order_list", {"search": "a\0"}, "Null characters are not allowed."),
    ("order_list", {"search": "x" * 3_000_000}, "search"),
    ("order_list", {"created_from": "13.4.2026"}, "created_from"),
    ("order_list", {"customer_key": 10**30}, "customer_key"),
    ("order_list", {"items_key": [*range(1_000)]}, "items_key"),
    ("order_list", {"tags_key": [1]}, "tags_key"),
    ("order_list", {"totals": ["number"]}, "totals"),
    ("order_list", {"total_from": 3, "total_to": 2}, "It is after total_to"),
    ("order_list", LATER_THAN_ITS_END, "$.created_from (value): It is after created_t"),
    ("order_list", {"cursor": "no cursor"}, "This tool gave no such cursor"),
    ("order_get", {}, "key"),
    ("order_get", {"key": None}, "key"),
    ("order_get", {"key": "a1"}, "key"),
    ("order_get", {"key": 10**30}, "key"),
    ("invoice_get", {"key": "../1"}, "key"),
    ("order_count", {"by": "note"}, "by"),
]


def test_what_does_not_fit_is_a_sentence(
    client: Client, subtests: pytest.Subtests
) -> None:
    for name, arguments, sentence in REFUSED:
        with subtests.test(f"{name} {arguments!r:.80}"):
            told = client.try_call(name, **arguments)
            assert told.is_error
            assert sentence in told.text
            assert len(told.text) < 1_000


def test_a_cursor_is_of_one_question_and_caller(client: Client) -> None:
    for count in range(60):
        shop.order(f"b{count:02}")
    cursor = client.call("order_list", sort="number").data["next"]
    other = client_of(person("eve"), registry)
    for caller, arguments in ((client, {}), (other, {"sort": "number"})):
        told = caller.try_call("order_list", cursor=cursor, **arguments)
        assert told.text.startswith("This tool gave no such cursor")


# -- scope -----------------------------------------------------------------------------


@pytest.fixture
def whole(db: None) -> Shop:
    return Shop()


@pytest.fixture
def caller(db: None) -> Client:
    return client_of(person("ada"), registry)


def _values(whole: Shop, name: str, schema: JsonObject) -> st.SearchStrategy[Any]:
    """Draw what a parameter may be asked by: of keys those of all rows, seen or not."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "boolean":
        return st.booleans()
    if schema.get("format") == "date" or "examples" in schema:
        return st.dates(date(2026, 9, 1), date(2026, 12, 24))
    if name == "search":
        return st.sampled_from(["1", "A0", "1 name", "land d", "it a1", "%", "_"])
    if name.endswith(("_from", "_to")) or "Exactly" in schema["description"]:
        return st.integers(0, 9)
    relation = name.removesuffix("_key").removesuffix("_id")
    model = TARGETS.get(relation, relation.capitalize())
    column = "code" if name == "country_id" else "pk"
    keys = st.sampled_from([getattr(each, column) for each in whole.rows[model]])
    is_list = schema["type"] == "array"
    return st.lists(keys, min_size=1, max_size=3) if is_list else keys


def _answers(client: Client, name: str, arguments: JsonObject) -> Iterator[object]:
    """Yield what a client reads, page by page, but the sealed places of pages."""
    asked = arguments
    for _page in range(20):
        raw = client.try_call(name, **asked).raw
        place = raw.get("structuredContent", {}).pop("next", None)
        yield raw.get("structuredContent", raw["content"])
        if place is None:
            return
        asked = {**arguments, "cursor": place}


PROGRAMS: Final = settings(
    max_examples=int(os.environ.get("QUERY_EXAMPLES", "30")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@given(data=st.data(), hidden=_HIDDEN)
@PROGRAMS
def test_hidden_rows_change_no_answer(
    whole: Shop, caller: Client, data: Any, hidden: Any
) -> None:
    """Neither what is in them, nor whether they are there."""
    name = data.draw(st.sampled_from(sorted(registry.tools)))
    schema: Any = registry.tools[name].definition.input_schema
    properties = {k: v for k, v in schema["properties"].items() if k != "cursor"}
    asked = data.draw(st.lists(st.sampled_from(sorted(properties)), max_size=3))
    if name.endswith("_get"):
        keys = [each.pk for each in whole.rows[name.partition("_")[0].capitalize()]]
        arguments = {"key": data.draw(st.sampled_from(keys))}
    else:
        arguments = {
            each: data.draw(_values(whole, each, properties[each])) for each in asked
        }
    happens = data.draw(st.sampled_from([_change, _remove]))
    with transaction.atomic():
        UNSEEN.update({model: _keys(whole, hidden, model) for model in MODELS})
        before = [*_answers(caller, name, arguments)]
        happens(whole, hidden)
        assert [*_answers(caller, name, arguments)] == before
        UNSEEN.clear()
        transaction.set_rollback(True)


ASKED: Final = (
    *("search", "state", "items_key", "suppliers_key", "suppliers_empty", "total_from"),
    *("customer_key", "items_empty", "totals"),
)


@given(data=st.data(), hidden=_HIDDEN)
@settings(PROGRAMS, max_examples=max(200, PROGRAMS.max_examples))
def test_drawn_questions_are_answered_as_the_orm_does(
    whole: Shop, caller: Client, data: Any, hidden: Any
) -> None:
    schema: Any = registry.tools["order_list"].definition.input_schema
    names = data.draw(st.lists(st.sampled_from(ASKED), max_size=3, unique=True))
    asked = {n: data.draw(_values(whole, n, schema["properties"][n])) for n in names}
    UNSEEN.update({model: _keys(whole, hidden, model) for model in MODELS})
    seen = {
        model: model._default_manager.filter(hidden=False).exclude(pk__in=keys)
        for model, keys in UNSEEN.items()
    }
    wanted = _asked_of_the_orm(seen, **asked)
    listed = [*pages(caller, "order_list", sort="number", **asked)]
    rows = [row for page in listed for row in page["rows"]]
    assert [row["id"] for row in rows] == [order.pk for order in wanted]
    if totals := listed[0].get("totals"):
        assert totals["count"] == len(wanted)
        assert Decimal(totals["sum_total"] or 0) == sum(each.total for each in wanted)
    supplied_by = {each.pk: each.supplied_by for each in whole.rows["Order"]}
    countries = [*seen[Country].order_by("pk").values("id", "name")]
    for row in rows:
        below = [each for each in countries if each["id"] in supplied_by[row["id"]]]
        assert row["suppliers"] == {"rows": below[:5], "total": len(below)}
    UNSEEN.clear()


def _asked_of_the_orm(seen: Any, search: str = "", **asked: Any) -> Any:
    orders, customers, countries = seen[Order], seen[Customer], seen[Country]
    for word in search.split():
        orders = orders.filter(
            Q(number__icontains=word)
            | Q(customer__in=customers.filter(name__icontains=word))
            | Q(suppliers__in=countries.filter(name__icontains=word))
        )
    have = {"items_empty": seen[Item], "suppliers_empty": countries}
    for name, value in asked.items():
        way, _, end = name.rpartition("_")
        if end == "empty":
            some = Q(**{f"{way}__in": have[name]})
            orders = orders.exclude(some) if value else orders.filter(some)
        elif end == "key":
            target = orders.model._meta.get_field(way).related_model
            keys = value if isinstance(value, list) else [value]
            orders = orders.filter(**{f"{way}__in": seen[target].filter(pk__in=keys)})
        elif name != "totals":
            orders = orders.filter(**{name.replace("_from", "__gte"): value})
    return orders.order_by("number").distinct()


def test_a_list_takes_one_statement_for_each_relation_to_many(client: Client) -> None:
    own = Registry()
    for model, fields in FIELDS.items():
        own.open_model(model, fields=fields, rows="all", permission="")
    own.model_tools(Order, name="bare", fields=["number"])
    own.model_tools(Order, name="whole", fields=["number", "items", "suppliers"])
    other = client_of(person("eve"), own)
    with CaptureQueriesContext(connection) as few:
        other.call("bare_list")
    with CaptureQueriesContext(connection) as more:
        other.call("whole_list")
    assert len(more) == len(few) + 1


@isolate_apps("tests.drill")
def test_a_list_is_made_whatever_else_is_not() -> None:
    class Person(models.Model):  # noqa: DJ008
        age = models.IntegerField()
        age_from = models.IntegerField()

        class Meta:
            app_label = "drill"

    own = Registry()
    own.open_model(Person, fields=["age", "age_from"], rows="all", permission="")
    own.model_tools(Person, only=["list"])
    own.open_model(Order, fields=["number", "suppliers"], rows="all", permission="")
    own.model_tools(Order, only=["list"])
    order, person_list = client_of(person("eve"), own).tools()
    # Nobody has opened them, and one number is called as the end of a span.
    assert "suppliers" not in order["description"]
    assert {"age_to", "age_from_to"} <= {*person_list["inputSchema"]["properties"]}


# -- rights ----------------------------------------------------------------------------


def limited(*rights: str, **options: Any) -> list[JsonObject]:
    """Return what somebody with these rights is offered of orders that need some."""
    own = Registry()
    own.open_model(
        Order,
        fields=["number", "total", "state"],
        rows="all",
        permissions={"total": "drill.change_order"},
    )
    own.model_tools(Order, **options)
    return client_of(person(f"no. {User.objects.count()}", *rights), own).tools()


def test_who_may_use_them() -> None:
    def names(*rights: str, **options: Any) -> set[str]:
        return {each["name"] for each in limited(*rights, **options)}

    editor = "view_order", "change_order"
    assert names() == set()
    assert names("view_order") == ORDER_TOOLS
    # A field with a permission of its own is not there unless it is named.
    properties = limited("view_order")[0]["inputSchema"]["properties"]
    assert not {each for each in properties if each.startswith("total")}
    naming: Any = {"fields": ["number", "total"], "only": ["list"]}
    assert names("view_order", **naming) == set()
    assert names(*editor, **naming) == {"order_list"}
    assert names(*editor, permission="drill.delete_order") == set()
    tagged: Any = {"only": ["count"], "name": "all_orders", "tags": ["reports"]}
    assert names("view_order", **tagged) == {"all_orders_count"}


def test_a_key_with_a_permission_of_its_own_needs_it() -> None:
    own, permissions = Registry(), {"id": "drill.change_order"}
    own.open_model(Order, fields=["id"], rows="all", permissions=permissions)
    own.model_tools(Order)
    viewer, editor = ["view_order"], ["view_order", "change_order"]
    for rights, names in ((viewer, {"order_count"}), (editor, ORDER_TOOLS)):
        tools = client_of(person(rights[-1], *rights), own).tools()
        assert {each["name"] for each in tools} == names
