"""The drill's shop, opened: rows of it, and what queries answer about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final
from uuid import UUID

from django.db import connection

from mcp_app.catalog.open_models import OpenModel, OpenModels, Rows, open_model
from mcp_app.interface.principal import AccessRequest, Principal
from mcp_app.kinds.query.config import Query
from mcp_app.kinds.query.groups import read_groups
from mcp_app.kinds.query.reading import Page, RowReader, read_query_config
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.protocol.json_types import JsonObject
from tests.drill.functions.shop import FIELDS
from tests.drill.models import Country, Customer, Invoice, Item, Order, Stock

TODAY: Final = date(2026, 11, 25)
FREE: Final = "es"
"""The country that nothing points at."""
HIDDEN: Final[JsonObject] = {"hidden": False}


@contextmanager
def tables_of(*models: Any) -> Iterator[None]:
    """Have tables of further models, outside of any transaction."""
    with connection.schema_editor() as editor:
        for each in models:
            editor.create_model(each)
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            for each in reversed(models):
                editor.delete_model(each)


def shop(**rows: Rows) -> OpenModels:
    """Return the open models; `rows` by the names of models, all but hidden ones else.

    Everybody may see them.
    """
    models: list[OpenModel] = [
        open_model(
            model,
            fields=fields,
            rows=rows.get(model.__name__, _not_hidden(model)),
            permission="",
        )
        for model, fields in FIELDS.items()
    ]
    return {each.label: each for each in models}


def watched_shop(**options: Any) -> OpenModels:
    """Return the open models, of which changes of orders are told."""
    usual = {"rows": _not_hidden(Order), "permission": "", "events": ["changed"]}
    members: Any = {"fields": FIELDS[Order], "watch": ["state"], **usual, **options}
    return {**shop(), "drill.Order": open_model(Order, **members)}


def _not_hidden(model: Any) -> Rows:
    return lambda request: model.objects.filter(hidden=False)


def request() -> AccessRequest:
    return AccessRequest(principal=Principal(kind="session"), server="")


def query(config: JsonObject, opened: OpenModels | None = None) -> Query:
    """Return what a config says, which has to be right."""
    read_query, problems = read_query_config(
        {"model": "drill.Order", **config}, opened or shop()
    )
    if read_query is None:
        raise AssertionError([*map(str, problems)])
    return read_query


def problems(config: JsonObject, opened: OpenModels | None = None) -> list[str]:
    """Return what is wrong with a config."""
    _query, wrong = read_query_config(
        {"model": "drill.Order", **config}, opened or shop()
    )
    return [str(each) for each in wrong]


def cleaned(asked: Query, values: JsonObject) -> JsonObject:
    """Return the values of filters as a call cleans them; raise `Unfit`."""
    known = asked.parameters
    return {name: known[name].value_for_column(value) for name, value in values.items()}


def reader(
    config: JsonObject,
    opened: OpenModels | None = None,
    *,
    size: int = 100_000,
    **values: Any,
) -> RowReader:
    asked = query(config, opened)
    return RowReader(
        query=asked,
        scopes=Scopes(request(), "default"),
        values=cleaned(asked, values),
        today=TODAY,
        limit=asked.limit,
        size=size,
    )


def page(config: JsonObject, opened: OpenModels | None = None, **values: Any) -> Page:
    """Return the first page of a query about orders."""
    return reader(config, opened, **values).page_at_place(None)


def rows(
    config: JsonObject, opened: OpenModels | None = None, **values: Any
) -> list[JsonObject]:
    return list(page(config, opened, **values).rows)


def groups(
    config: JsonObject, opened: OpenModels | None = None, **values: Any
) -> list[JsonObject]:
    asked = query({"answer": "groups", **config}, opened)
    scopes = Scopes(request(), "default")
    lines, _more = read_groups(asked, scopes, cleaned(asked, values), TODAY)
    return list(lines)


def moment(days_ago: float) -> datetime:
    return datetime(2026, 11, 25, 12, tzinfo=UTC) - timedelta(days=days_ago)


def order(number: str, **fields: Any) -> Order:
    """Write an order of 10.00 of today."""
    given = {"total": Decimal(10), "created": moment(0), **fields}
    return Order.objects.create(number=number, **given)


def random_order(number: str, random: Random) -> Order:
    """Return an order whose weight and day are often missing."""
    weight = random.choice([None, None, 1.0, 2.5, random.random()])
    due = random.choice([None, date(2026, 11, random.randint(1, 28))])
    own = {"total": Decimal(10), "created": moment(0)}
    return Order(number=number, weight=weight, due=due, **own)


def fill() -> None:
    """Write a shop with something of each case: nothing there, hidden, several."""
    for index, code in enumerate(["de", "fr", "it", FREE]):
        Country.objects.create(code=code, name=f"land {code}", hidden=index == 2)
    for index in range(6):
        Customer.objects.create(
            name=f"name {index % 4}",
            email=f"{index}@example.org",
            country_id=["de", "fr", "it", None][index % 4],
            hidden=index == 5,
        )
    for index in range(4):
        Stock.objects.create(
            sku=f"k{index}", level=index * 3, price=Decimal(index) + Decimal("0.5")
        )
    customers = [*Customer.objects.order_by("pk"), None]
    countries = Country.objects.order_by("pk")
    stock = Stock.objects.order_by("pk")
    for index in range(24):
        each = order(
            f"a{index:02}",
            state=["open", "sent", "back"][index % 3],
            total=Decimal(index % 7) * 3 / 2,
            weight=[None, 0.5, 1.25, 3.0][index % 4],
            created=moment(index * 4.3),
            due=TODAY - timedelta(days=index * 2) if index % 3 else None,
            note=["", "call first", "fragile"][index % 3],
            customer=customers[index % 7],
            hidden=index % 11 == 10,
        )
        each.suppliers.set(countries[: index % 4])
        for count in range(index % 4):
            Item.objects.create(
                order=each,
                stock=stock[(index + count) % 4],
                amount=count + 1,
                hidden=index % 5 == 4 and count == 1,
            )
        if index % 2:
            Invoice.objects.create(
                # MariaDB sorts keys by their last part first.
                key=UUID(int=index + 1),
                order=each,
                customer=each.customer,
                paid=[True, False, None][index % 3],
                hidden=index % 7 == 6,
            )
