"""The rows of the demo: products, customers, and orders with invoices up to today."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from mcp_project.shop.models import Customer, Invoice, Order, OrderLine, Product

SEED: Final = 20_240_501
ORDERS: Final = 300
FIRST_NUMBER: Final = 1_001

PRODUCTS: Final = {
    "KET-1": ("Kettle", "39.90"),
    "LAM-1": ("Desk lamp", "54.00"),
    "LAM-2": ("Reading lamp", "79.50"),
    "MUG-1": ("Mug", "9.80"),
    "POT-1": ("Teapot", "32.00"),
    "TRA-1": ("Tray", "24.00"),
    "CLO-1": ("Wall clock", "45.00"),
    "BAS-1": ("Bread basket", "18.50"),
}
CUSTOMERS: Final = (
    *("Ada Byron", "Grace Murray", "Mary Jackson", "Radia Joy", "Hedy Kiesler"),
    *("Alan Mathison", "Edsger Wybe", "Donald Ervin", "Barbara Jane", "Ken Lane"),
)
DAYS_TO_PAY: Final = 30
STATUSES: Final = (
    *("sent", "sent", "sent", "sent", "sent", "sent"),
    *("paid", "paid", "open", "returned"),
)


def make_shop(today: date) -> bool:
    """Make the rows unless there are products; return whether they were made.

    They are the same each time, but for the dates: one or two orders a day until today.
    """
    if Product.objects.exists():
        return False
    chance = random.Random(SEED)  # noqa: S311 - a demo
    products = [
        Product.objects.create(
            sku=sku, name=name, price=Decimal(price), stock=chance.randrange(40)
        )
        for sku, (name, price) in PRODUCTS.items()
    ]
    customers = [
        Customer.objects.create(
            name=name, email=f"{name.split()[0].lower()}@example.com"
        )
        for name in CUSTOMERS
    ]
    orders = [
        Order(
            number=FIRST_NUMBER + place,
            customer=chance.choice(customers),
            placed=today - timedelta(days=(ORDERS - 1 - place) * 2 // 3),
            status=chance.choice(STATUSES),
        )
        for place in range(ORDERS)
    ]
    lines = [
        OrderLine(order=order, product=product, quantity=chance.randint(1, 3))
        for order in orders
        for product in chance.sample(products, chance.randint(1, 3))
    ]
    for line in lines:
        line.order.total += line.quantity * line.product.price
    Order.objects.bulk_create(orders)
    OrderLine.objects.bulk_create(lines)
    Invoice.objects.bulk_create(_invoice(order, today) for order in orders)
    return True


def _invoice(order: Order, today: date) -> Invoice:
    """Return the invoice of an order: all were paid when they were due."""
    due = order.placed + timedelta(days=DAYS_TO_PAY)
    return Invoice(
        number=order.number,
        order=order,
        customer=order.customer,
        due=due,
        paid=due < today or order.status in ("paid", "returned"),
    )
