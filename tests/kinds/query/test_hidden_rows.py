"""What hidden rows have in them changes no answer, nor whether they are there."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Concat
from django.forms import ModelChoiceField
from hypothesis import HealthCheck, Phase, find, given, settings

from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModels
from mcp_app.catalog.registry import Registry
from mcp_app.interface.errors import ToolError
from mcp_app.kinds.query import comparisons
from mcp_app.kinds.query.comparisons import Unfit
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.kinds.query.suggesting import _Looking, referenced_path
from mcp_app.protocol.json_types import JsonObject
from tests.drill.models import Country, Customer, Invoice, Item, Order, Stock
from tests.kinds.query import shop
from tests.kinds.query.test_scoping import (
    _HIDDEN,
    MODELS,
    Shop,
    _filters,
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
    reader = shop.reader({**config, "limit": 3, "count": True}, opened, **values)
    page = reader.page_at_place(None)
    yield repr(page)
    for _ in range(20):
        if page.next is None:
            return
        page = reader.page_at_place(page.next)
        yield repr(page)


def _told(
    config: JsonObject, opened: OpenModels, values: JsonObject
) -> list[object] | str:
    try:
        return [*_answers(config, opened, values)]
    except (ToolError, Unfit) as error:
        return str(error)


_CONFIGS: Final = _row_configs() | _group_configs()
_SHORT: Final = _filters("Customer").map(
    lambda filters: {"model": "drill.Customer", "fields": ["name"], "filters": filters}
)
"""What is asked by a key again and again, so that one is found soon."""
_EXAMPLES: Final = settings(
    max_examples=int(os.environ.get("QUERY_EXAMPLES", "50")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("happens", [_change, _remove])
@given(config=_CONFIGS, hidden=_HIDDEN)
@_EXAMPLES
def test_hidden_rows_change_no_answer(
    whole: Shop,
    happens: Callable[[Shop, Mapping[str, Sequence[int]]], None],
    config: JsonObject,
    hidden: Any,
) -> None:
    before, after = _before_and_after(whole, happens, config, hidden)
    assert before == after


def _before_and_after(
    whole: Shop,
    happens: Callable[[Shop, Mapping[str, Sequence[int]]], None],
    config: JsonObject,
    hidden: Any,
) -> tuple[object, object]:
    """Return what a config answers before and after that happens to hidden rows."""
    config, values = _without_drawn(copy.deepcopy(config))
    opened = whole.opened(hidden, _plain)
    with transaction.atomic():
        before = _told(config, opened, values)
        happens(whole, hidden)
        after = _told(config, opened, values)
        transaction.set_rollback(True)
    return before, after


@pytest.mark.parametrize("happens", [_change, _remove])
def test_hidden_rows_change_no_suggestion(
    whole: Shop, happens: Callable[[Shop, Mapping[str, Sequence[int]]], None]
) -> None:
    hidden = {model.__name__: [0, 2, 3] for model in MODELS}
    opened = whole.opened(hidden, _plain)
    names = ["Country.code", "Customer.email", "Stock.sku", "Order.number"]
    paths = [referenced_path(f"{{{{drill.{each}}}}}", opened) for each in names]

    def suggested() -> list[list[str]]:
        looking = _Looking([], paths, Registry())
        scopes = Scopes(shop.request(), "default")
        return [
            looking._fitting_values(path, scopes, typed)
            for path in paths
            for typed in ("a0", "e", "k", "z")
        ]

    with transaction.atomic():
        before = suggested()
        happens(whole, hidden)
        assert any(before)
        assert suggested() == before
        transaction.set_rollback(True)


def test_keys_that_a_form_cleans_would_be_found(
    whole: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `ModelChoiceField` asks all rows, and so tells which of them exist."""
    clean_one = comparisons._clean_one

    def planted(field: OpenField, value: object) -> Any:
        if field.kind is FieldKind.TO_ONE:
            form: Any = field.source.formfield()
            assert isinstance(form, ModelChoiceField)
            try:
                form.clean(value)
            except ValidationError as error:
                raise Unfit(error.messages[0]) from None
        return clean_one(field, value)

    monkeypatch.setattr(comparisons, "_clean_one", planted)

    free = [each.code for each in whole.rows["Country"]].index(shop.FREE)
    hidden = {model.__name__: [free] if model is Country else [] for model in MODELS}

    def differs(config: JsonObject) -> bool:
        before, after = _before_and_after(whole, _remove, config, hidden)
        return before != after

    most = settings(_EXAMPLES, max_examples=400, database=None, phases=[Phase.generate])
    assert find(_SHORT, differs, settings=most)


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
