"""Objects of rows, and that they are as the schema says."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.kinds.query.config import output_schema
from mcp_app.protocol import schemas
from tests.drill.models import Country, Customer
from tests.kinds.query import shop

pytestmark = [pytest.mark.django_db, pytest.mark.databases]


@pytest.fixture
def key(db: None) -> int:
    """Write an order of a customer in Germany, and one of nobody."""
    Country.objects.create(code="de", name="Germany")
    customer = Customer.objects.create(
        name="ann", email="a@example.org", country_id="de"
    )
    shop.order("a", customer=customer)
    shop.order("b")
    return customer.pk


@pytest.mark.parametrize(
    ("fields", "with_customer", "without"),
    [
        (["customer"], {"customer": "ann"}, {"customer": None}),
        (["customer.pk"], {"customer": {"pk": "KEY"}}, {"customer": None}),
        (["customer_id"], {"customer_id": "KEY"}, {"customer_id": None}),
        (["customer.name"], {"customer": {"name": "ann"}}, {"customer": None}),
        (
            ["customer", "customer.name", "customer.pk"],
            {"customer": {"text": "ann", "name": "ann", "pk": "KEY"}},
            {"customer": None},
        ),
        (
            ["customer.name", "customer"],
            {"customer": {"name": "ann", "text": "ann"}},
            {"customer": None},
        ),
        (
            ["customer.country"],
            {"customer": {"country": "Germany"}},
            {"customer": None},
        ),
        (
            ["customer.country.pk", "customer.country.name", "customer.email"],
            {
                "customer": {
                    "country": {"pk": "de", "name": "Germany"},
                    "email": "a@example.org",
                }
            },
            {"customer": None},
        ),
    ],
)
def test_relations(
    key: int, fields: list[str], with_customer: Any, without: Any
) -> None:
    config = {"fields": fields, "order": ["number"]}
    first, second = shop.rows(config)
    assert first == _with_key(with_customer, key)
    assert second == without
    schema = schemas.compile_schema(output_schema(shop.query(config)))
    assert [*schema.violations({"rows": [first, second]})] == []


def _with_key(value: Any, key: int) -> Any:
    if isinstance(value, dict):
        return {name: _with_key(each, key) for name, each in value.items()}
    return key if value == "KEY" else value


def test_the_schema_tells_what_there_is() -> None:
    shop.fill()
    config = {
        "fields": [
            *("id", "number", "state", "total", "weight", "created", "due", "note"),
            *("customer", "customer.name", "customer.country.name", "invoice.paid"),
        ],
        "lists": [{"path": "items", "fields": ["amount", "stock.price"]}],
    }
    schema = output_schema(shop.query(config))
    compiled = schemas.compile_schema(schema)
    answer = {"rows": shop.rows(config)}
    assert len(answer["rows"]) > 2
    assert [*compiled.violations(answer)] == []
    properties = schema["properties"]["rows"]["items"]["properties"]
    assert properties["total"] == {"type": "string"}
    assert properties["due"] == {"type": ["string", "null"], "format": "date"}
    assert properties["customer"]["type"] == ["object", "null"]
    assert {*properties["customer"]["properties"]} == {"text", "name", "country"}
    for name, row in ((each, dict(answer["rows"][0])) for each in properties):
        row[name] = ["something else"]
        expected = name not in ("state", "weight")
        assert bool([*compiled.violations({"rows": [row]})]) is expected, name
