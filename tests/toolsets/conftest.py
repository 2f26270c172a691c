"""A shop with an office, and people in it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from mcp_app.catalog.registry import Registry
from mcp_app.test import Client
from tests.drill.models import Country, Customer, Invoice, Item, Order, Stock
from tests.toolsets.office import MODELS, office
from tests.toolsets.people import client_of, person


@pytest.fixture
def shop(db: None, settings: Settings) -> None:
    """Rows of a shop; a hidden order among them, and one with all that it can have."""
    settings.ROOT_URLCONF = "tests.toolsets.office"
    countries = [Country.objects.create(code=each, name=each) for each in ("FR", "PT")]
    for name in ("Ana", "Rui"):
        Customer.objects.create(name=name, email=f"{name}@example.com")
    stock = Stock.objects.create(sku="S-1", price=Decimal("2.50"))
    Stock.objects.create(sku="S-2", price=Decimal("12.00"))
    created = datetime(2026, 3, 4, 5, 6, 7, 891234, tzinfo=UTC)
    for index in range(8):
        order = Order.objects.create(
            number=f"A-{index}",
            total=Decimal(index * 40),
            weight=1234.5 if index else None,
            created=created,
            due=date(2026, 3, 9) if index else None,
            note=" two\nlines " if index else "",
            customer=Customer.objects.order_by("pk")[index % 2],
            hidden=index == 7,
            state=Order.State.SENT if index == 6 else Order.State.OPEN,
        )
        order.suppliers.set(countries[: index % 3])
        Item.objects.create(order=order, stock=stock, amount=index + 1)
        Invoice.objects.create(order=order, paid=[None, True, False][index % 3])


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.admin_tools(site=office, change=MODELS)
    return registry


@pytest.fixture
def boss(shop: None) -> User:
    return person("boss", is_superuser=True)


@pytest.fixture
def tools(boss: User, registry: Registry) -> Client:
    """A client of somebody who may do everything."""
    return client_of(boss, registry)
