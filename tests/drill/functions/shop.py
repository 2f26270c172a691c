"""What of the small shop is opened to staff: hidden rows are nobody's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcp_app import AccessRequest, mcp
from tests.drill.models import Country, Customer, Invoice, Item, Order, Stock

FIELDS: Final[Mapping[Any, Sequence[str]]] = {
    Country: ["name", "code", "customers", "supplies"],
    Customer: ["name", "email", "country", "country_id", "orders", "invoices"],
    Stock: ["sku", "level", "price", "items"],
    Order: [
        *("id", "number", "state", "total", "weight", "created", "due", "note"),
        *("customer", "items", "suppliers", "invoice", "customer_id"),
    ],
    Item: ["order", "stock", "amount", "id"],
    Invoice: ["key", "order", "customer", "paid"],
}


def _open(model: Any, fields: Sequence[str]) -> None:
    def visible_rows(request: AccessRequest) -> Any:
        return model.objects.filter(hidden=False)

    mcp.open_model(model, fields=fields, rows=visible_rows, permission="")


for each, its_fields in FIELDS.items():
    _open(each, its_fields)
