from __future__ import annotations

import pytest

from tests.drill.models import Country, Customer, Item, Order, Stock
from tests.kinds.query import shop

pytestmark = [pytest.mark.django_db, pytest.mark.databases]


def _items(order: Order, *amounts: int) -> None:
    for amount in amounts:
        stock, _new = Stock.objects.get_or_create(sku=f"k{amount}", price=1)
        Item.objects.create(order=order, stock=stock, amount=amount)


def test_rows_below_each_row() -> None:
    _items(shop.order("a"), 3, 1, 2)
    _items(shop.order("b"), 4)
    shop.order("c")
    config = {
        "fields": ["number"],
        "order": ["number"],
        "lists": [{"path": "items", "fields": ["amount", "stock.sku"], "most": 2}],
    }
    assert shop.rows(config) == [
        {
            "number": "a",
            "items": {
                "rows": [
                    {"amount": 3, "stock": {"sku": "k3"}},
                    {"amount": 1, "stock": {"sku": "k1"}},
                ],
                "total": 3,
            },
        },
        {
            "number": "b",
            "items": {"rows": [{"amount": 4, "stock": {"sku": "k4"}}], "total": 1},
        },
        {"number": "c", "items": {"rows": [], "total": 0}},
    ]


def test_sorted_and_asked_by() -> None:
    _items(shop.order("a"), 3, 1, 2)
    listed = {"path": "items", "fields": ["amount"], "order": ["-stock.sku"]}
    least = {"path": "amount", "is": "least", "parameter": "least"}
    config = {"fields": ["number"], "lists": [{**listed, "filters": [least]}]}
    for least_amount, amounts in ((None, [3, 2, 1]), (2, [3, 2])):
        [row] = shop.rows(config, least=least_amount)
        assert [each["amount"] for each in row["items"]["rows"]] == amounts
        assert row["items"]["total"] == len(amounts)


def test_hidden_rows_are_not_listed() -> None:
    order = shop.order("a")
    _items(order, 1, 2)
    Item.objects.filter(amount=2).update(hidden=True)
    listed = [{"path": "items", "fields": ["amount"]}]
    [row] = shop.rows({"fields": ["number"], "lists": listed})
    assert row["items"] == {"rows": [{"amount": 1}], "total": 1}


def test_many_to_many_from_both_sides() -> None:
    order = shop.order("a")
    shop.order("b")
    for code, hidden in (("de", False), ("fr", False), ("it", True)):
        country = Country.objects.create(code=code, name=code, hidden=hidden)
        order.suppliers.add(country)
    listed = [{"path": "suppliers", "fields": ["code"], "order": ["-code"]}]
    first, second = shop.rows({"fields": ["number"], "lists": listed})
    assert first["suppliers"] == {"rows": [{"code": "fr"}, {"code": "de"}], "total": 2}
    assert second["suppliers"] == {"rows": [], "total": 0}

    config = {
        "model": "drill.Country",
        "fields": ["code"],
        "lists": [{"path": "supplies", "fields": ["number"]}],
        "order": ["code"],
    }
    assert shop.rows(config) == [
        {"code": code, "supplies": {"rows": [{"number": "a"}], "total": 1}}
        for code in ("de", "fr")
    ]


def test_many_to_many_asked_by_and_over_a_path() -> None:
    order = shop.order("a")
    for code in ("de", "fr"):
        order.suppliers.add(Country.objects.create(code=code, name=code))
    customer = Customer.objects.create(name="ann", email="a@example.org")
    Order.objects.update(customer=customer)
    config = {
        "model": "drill.Country",
        "fields": ["code"],
        "lists": [
            {
                "path": "supplies",
                "fields": ["customer.name"],
                "filters": [{"path": "customer.name", "is": "is", "value": "ann"}],
            }
        ],
        "filters": [{"path": "code", "is": "is", "value": "fr"}],
    }
    below = {"rows": [{"customer": {"name": "ann"}}], "total": 1}
    assert shop.rows(config) == [{"code": "fr", "supplies": below}]
    Order.objects.update(customer=None)
    [row] = shop.rows(config)
    assert row["supplies"]["total"] == 0


def test_a_relation_by_another_column_than_the_key() -> None:
    Country.objects.create(code="de", name="Germany")
    Customer.objects.create(name="ann", email="a@example.org", country_id="de")
    config = {
        "model": "drill.Country",
        "fields": ["name"],
        "lists": [{"path": "customers", "fields": ["name", "country.name"]}],
    }
    below = {"rows": [{"name": "ann", "country": {"name": "Germany"}}], "total": 1}
    assert shop.rows(config) == [{"name": "Germany", "customers": below}]
