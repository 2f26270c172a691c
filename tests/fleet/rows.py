"""The rows of the fleet, for three companies: what can be read names its own."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from django.contrib.auth.models import Group, Permission, User

from mcp_app.auth.groups import complete_groups
from mcp_app.models import AccessToken, Server
from tests.fleet.models import Company, Customer, Hire, Machine, Payment

NAMES: Final = "Meier Okafor Svensson Rossi Dubois Novak Haddad Silva Byrne Larsen Ito"
MACHINES: Final = ("Excavator", "Crane", "Roller", "Generator", "Pump")
STATES: Final = ("booked", "out", "back", "back", "cancelled")
HIRES: Final = 80


def write_rows(people: dict[str, str], password: str) -> dict[str, str]:
    """Write who works for which company, and its rows; return a token for each person.

    Everybody may publish, and see what their company has.
    """
    complete_groups()
    Server.objects.publish(Server.objects.all())
    views = Permission.objects.filter(content_type__app_label="fleet")
    tokens = {}
    for tenant, (name, company) in enumerate(people.items()):
        user = User.objects.create_user(name, password=password, is_staff=True)
        user.groups.set(Group.objects.filter(name="MCP publishers"))
        user.user_permissions.set(views.filter(codename__startswith="view_"))
        tokens[name] = str(AccessToken.objects.make(user=user, name="client")[1])
        _write_company(Company.objects.create(name=company, user=user), tenant)
    User.objects.create_superuser("admin", password=password)
    return tokens


def _write_company(own: Company, tenant: int) -> None:
    machines = [
        Machine(company=own, code=f"{own.name}-{at}", name=name, day_rate=50 + at)
        for at, name in enumerate(MACHINES)
    ]
    customers = [
        Customer(
            company=own,
            name=f"{name} {own.name}",
            email=f"{name}@example.com",
            phone=f"+49 561 634 39 {tenant}{at}",
        )
        for at, name in enumerate(NAMES.split())
    ]
    Machine.objects.bulk_create(machines)
    Customer.objects.bulk_create(customers)
    for number in range(HIRES):
        begins = date.today() + timedelta(days=62 - 7 * number)
        hire = Hire.objects.create(
            company=own,
            customer=customers[(number * number + number // 4) % 11],
            machine=machines[number % len(machines)],
            begins=begins,
            ends=begins + timedelta(days=3),
            state=STATES[number % len(STATES)],
            net_total=100 * (1 + number % 9) + number * number % 89 + tenant,
            paid=number % 3 > 0,
        )
        Payment.objects.create(hire=hire, paid=hire.ends, amount=hire.net_total)
