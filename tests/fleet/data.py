"""What the fleet opens: everybody sees the rows of their own company.

Payments were forgotten: theirs are the rows of everybody, which staff are told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet

from mcp_app import AccessRequest, mcp
from tests.fleet.models import Customer, Hire, Machine, Owned, Payment


def own(model: type[Owned]) -> Callable[[AccessRequest], QuerySet[Any]]:
    def own_rows(request: AccessRequest) -> QuerySet[Any]:
        """rows of the caller's company"""
        return model._default_manager.filter(company__user=request.user)

    return own_rows


HIRE = ["customer", "machine", "begins", "ends", "state", "net_total", "paid"]
MACHINE = ["code", "name", "day_rate", "in_service"]
CUSTOMER = ["name", "email", "phone", "hires"]
mcp.open_model(Customer, fields=CUSTOMER, rows=own(Customer))
mcp.open_model(Machine, fields=MACHINE, rows=own(Machine))
mcp.open_model(Hire, fields=HIRE, rows=own(Hire))
mcp.open_model(Payment, fields=["paid", "amount", "hire"], rows="all")
