"""What the shop offers to MCP clients: tools, a function for staff, and a template."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated, Literal

from django.db import transaction
from django.db.models import Count, Sum
from pydantic import Field

from mcp_app import Accepted, Context, SyncContext, ToolError, mcp
from mcp_project.shop.models import Customer, Invoice, Order, OrderLine, Product

VIEW = "shop.view_order"
CHANGE = "shop.change_order"

Number = Annotated[int, Field(ge=1)]

WEEK_S = 2.0
"""How long `sales_report` takes for a week, as it would in a larger shop."""

mcp.open_model(
    Order,
    fields=["number", "customer", "placed", "status", "total", "note", "lines"],
    rows="all",
    # Staff make event types of these, such as “an order was returned”.
    events=["created", "changed"],
    watch=["status"],
)
mcp.open_model(Customer, fields=["name", "email", "orders", "invoices"], rows="all")
mcp.open_model(
    Invoice, fields=["number", "order", "customer", "due", "paid"], rows="all"
)
mcp.open_model(OrderLine, fields=["product", "quantity", "order"], rows="all")
mcp.open_model(
    Product, fields=["sku", "name", "price", "stock"], rows="all", permission=""
)

# Who may view invoices lists and counts them.
mcp.model_tools(Invoice, search=["customer.name"])
# How the shop works, for agents: shop/skills/take-back-an-order/SKILL.md.
mcp.skills("skills", prefix="shop", permission=VIEW)
# Staff read, by their clients, what the admin shows them.
mcp.admin_tools()


@mcp.event("order.paid", filters=["customer"], permission=VIEW)
@dataclass(frozen=True)
class OrderPaid:
    """An order was paid: it can be packed."""

    number: int
    customer: str
    total: float


@transaction.atomic
def mark_paid(order: Order) -> None:
    """Note that an order was paid, and tell whoever subscribes to that."""
    order.status = Order.Status.PAID
    order.save(update_fields=["status"])
    mcp.emit(OrderPaid(order.number, order.customer.name, float(order.total)))


@dataclass(frozen=True)
class FoundOrder:
    number: int
    customer: str
    placed: date
    status: str


@mcp.tool(
    title="Find orders",
    read_only=True,
    open_world=False,
    permission=VIEW,
    app="ui://mcp_app/table",
)
def find_orders(
    customer: str = "",
    status: Literal["open", "paid", "sent", "returned"] | None = None,
    since: date | None = None,
    most: Annotated[int, Field(ge=1, le=50)] = 10,
) -> list[FoundOrder]:
    """Find orders by customer, status or date, the newest first.

    Args:
        customer: Part of the customer's name. Empty: all customers.
        status: Only orders with this status.
        since: Only orders that were placed on this day or later.
        most: How many orders to return at most.
    """
    orders = Order.objects.select_related("customer")
    if customer:
        orders = orders.filter(customer__name__icontains=customer)
    if status:
        orders = orders.filter(status=status)
    if since:
        orders = orders.filter(placed__gte=since)
    return [
        FoundOrder(each.number, each.customer.name, each.placed, each.status)
        for each in orders[:most]
    ]


@dataclass(frozen=True)
class OrderStatus:
    number: int
    placed: date
    status: str


@mcp.tool(title="Order status", read_only=True, open_world=False)
def order_status(number: Number) -> OrderStatus:
    """Tell when an order was placed, and whether it was paid, sent or returned.

    Args:
        number: The number of the order, for example 1042.
    """
    found = _order(number)
    return OrderStatus(found.number, found.placed, found.status)


@mcp.tool(
    title="Add a note",
    read_only=False,
    destructive=False,
    open_world=False,
    permission=CHANGE,
)
def add_note(
    number: Number, text: Annotated[str, Field(min_length=1, max_length=500)]
) -> str:
    """Add a line to the note of an order. Staff see it in the admin.

    Args:
        number: The number of the order.
        text: The line, for example what the customer asked for.
    """
    found = _order(number)
    found.note = f"{found.note}\n{text}".strip()
    found.save(update_fields=["note"])
    return f"Order {number} has the note: {found.note}"


def _order(number: int) -> Order:
    found = Order.objects.filter(number=number).first()
    if found is None:
        raise ToolError(f"There is no order {number}.")
    return found


@dataclass(frozen=True)
class WeekOfSales:
    monday: date
    orders: int
    total: float


# It only reads, so it may run again if its process ends. The weeks that it had then
# stand in `once`: it goes on with the next one.
@mcp.tool(
    title="Sales report",
    read_only=True,
    open_world=False,
    task="optional",
    permission=VIEW,
    app="ui://mcp_app/chart",
)
def sales_report(ctx: SyncContext) -> list[WeekOfSales]:
    """Report how many orders came in each week, and for how much; takes a minute."""
    begun = ctx.once("begun", time.time)
    mondays = Order.objects.dates("placed", "week")
    report = []
    for done, monday in enumerate(mondays):
        ctx.progress(done, len(mondays), f"The week of {monday}")
        # Not in the step: its transaction would keep SQLite from all other changes.
        time.sleep(max(0, begun + done * WEEK_S - time.time()))
        found = ctx.once(f"sales of {monday}", _sales, monday)
        report.append(WeekOfSales(monday, *found))
    return report


def _sales(monday: date) -> tuple[int, float]:
    """Return how many orders came in a week, and for how much."""
    sunday = monday + timedelta(days=6)
    orders = Order.objects.filter(placed__range=(monday, sunday))
    found = orders.aggregate(orders=Count("pk"), total=Sum("total"))
    return found["orders"], float(found["total"])


@dataclass(frozen=True)
class Guest:
    """The form that `book_table` asks the person to fill in."""

    name: str
    people: int = 2


@mcp.tool(title="Book a table", read_only=False, destructive=False, open_world=False)
async def book_table(ctx: Context, day: str) -> str:
    """Book a table in the shop's café; asks who is coming. Nothing is stored.

    Args:
        day: The day of the visit, for example Friday or 24 December.
    """
    answer = await ctx.elicit(f"Who is coming on {day}?", Guest)
    if not isinstance(answer, Accepted):
        return "No table was booked."
    guest = answer.data
    return f"A table for {guest.people} is booked on {day} for {guest.name}."


@mcp.function("shop.stock")
def stock(product: str) -> str:
    """Tell how many pieces of a product are in stock.

    Args:
        product: A part of the product's name.
    """
    found = Product.objects.filter(name__icontains=product)[:10]
    if not found:
        raise ToolError(f"There is no product like “{product}”.")
    return "\n".join(f"{each.name}: {each.stock}" for each in found)


@mcp.resource(
    "shop://orders/{number}",
    title="An order",
    model=Order,
    mime_type="application/json",
    permission=VIEW,
)
def order(number: str) -> dict[str, object] | None:
    """One order with its lines."""
    found = Order.objects.filter(number=number).select_related("customer").first()
    if found is None:
        return None
    lines = found.lines.select_related("product")
    return {
        "number": found.number,
        "customer": found.customer.name,
        "placed": found.placed.isoformat(),
        "status": found.status,
        "note": found.note,
        "lines": [{"product": e.product.name, "quantity": e.quantity} for e in lines],
    }
