"""What hidden rows have in them changes no answer, nor whether they are there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import pytest
from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Concat
from hypothesis import HealthCheck, given, settings

from mcp_app.catalog.open_models import OpenModels
from mcp_app.interface.errors import ToolError
from mcp_app.protocol.json_types import JsonObject
from tests.drill.models import Country, Customer, Invoice, Item, Order, Stock
from tests.kinds.query import shop
from tests.kinds.query.test_scoping import (
    _HIDDEN,
    MODELS,
    Shop,
    _group_configs,
    _plain,
    _row_configs,
    _without_drawn,
)

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

OTHERS: Final[Mapping[type[Any], Mapping[str, Any]]] = {
    Country: {"name": "zz"},
    Customer: {"name": "zz", "email": Concat(Value("z"), F("email")), "country": None},
    Stock: {"level": 77, "price": 88, "sku": Concat(Value("z"), F("sku"))},
    Order: {
        "number": Concat(Value("z"), F("number")),
        "state": "sent",
        "total": 999,
        "weight": 0.5,
        "created": shop.moment(1),
        "due": shop.TODAY - timedelta(days=1),
        "note": "hidden",
        "customer": None,
    },
    Item: {"amount": 50},
    Invoice: {"paid": True, "customer": None},
}
"""What each hidden row gets."""
_USED: Final[Mapping[type[Any], Sequence[str]]] = {
    Country: ("customers", "supplies"),
    Customer: ("orders", "invoices"),
    Stock: ("items",),
    Order: ("items", "invoice"),
    Item: (),
    Invoice: (),
}
"""From where rows point at those of a model."""


@pytest.fixture
def whole(db: None) -> Shop:
    return Shop()


def _keys(whole: Shop, hidden: Mapping[str, Sequence[int]], model: Any) -> list[Any]:
    rows = whole.rows[model.__name__]
    return [rows[at].pk for at in hidden[model.__name__] if at < len(rows)]


def _change(whole: Shop, hidden: Mapping[str, Sequence[int]]) -> None:
    for model, columns in OTHERS.items():
        rows = model._default_manager.filter(pk__in=_keys(whole, hidden, model))
        rows.update(**columns)


def _remove(whole: Shop, hidden: Mapping[str, Sequence[int]]) -> None:
    """Delete the hidden rows that no other points at, those that point first."""
    for model in reversed(MODELS):
        rows = model._default_manager.filter(pk__in=_keys(whole, hidden, model))
        free = rows.filter(**{f"{name}__isnull": True for name in _USED[model]})
        model._default_manager.filter(
            pk__in=[*free.values_list("pk", flat=True)]
        ).delete()


def _answers(
    config: JsonObject, opened: OpenModels, values: JsonObject
) -> Iterator[object]:
    """Yield the groups, or all pages with their totals and opened cursors."""
    if "measures" in config:
        yield sorted(map(repr, shop.groups(config, opened, **values)))
        return
    reader = shop.reader({**config, "most": 3, "count": True}, opened, **values)
    page = reader.page(None)
    yield repr(page)
    for _ in range(20):
        if page.next is None:
            return
        page = reader.page(page.next)
        yield repr(page)


def _told(
    config: JsonObject, opened: OpenModels, values: JsonObject
) -> list[object] | str:
    try:
        return [*_answers(config, opened, values)]
    except ToolError as error:
        return str(error)


@pytest.mark.parametrize("happens", [_change, _remove])
@given(config=_row_configs() | _group_configs(), hidden=_HIDDEN)
@settings(
    max_examples=int(os.environ.get("QUERY_EXAMPLES", "50")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_hidden_rows_change_no_answer(
    whole: Shop,
    happens: Callable[[Shop, Mapping[str, Sequence[int]]], None],
    config: JsonObject,
    hidden: Any,
) -> None:
    config, values = _without_drawn(config)
    opened = whole.opened(hidden, _plain)
    with transaction.atomic():
        before = _told(config, opened, values)
        happens(whole, hidden)
        assert _told(config, opened, values) == before
        transaction.set_rollback(True)


def test_the_changes_are_seen_where_nothing_is_hidden(whole: Shop) -> None:
    """Otherwise the test above could not fail."""
    hidden = {model.__name__: [0, 1] for model in MODELS}
    opened = whole.opened({model.__name__: [] for model in MODELS}, _plain)
    for happens in (_change, _remove):
        for model, fields in (("Order", ["number"]), ("Item", ["amount"])):
            config = {"model": f"drill.{model}", "fields": fields}
            with transaction.atomic():
                before = _told(config, opened, {})
                happens(whole, hidden)
                assert _told(config, opened, {}) != before
                transaction.set_rollback(True)
