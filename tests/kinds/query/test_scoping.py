from __future__ import annotations

import copy
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Final

import pytest
from django.db import connection
from django.db.models import Count, Model, Q
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from mcp_app.catalog.open_models import OpenModels
from mcp_app.kinds.query.comparisons import ENDS, PERIODS
from mcp_app.kinds.query.config import UNITS
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.protocol.json_types import JsonObject
from tests.drill.models import Country, Customer, Invoice, Item, Order, Stock
from tests.kinds.query import shop
from tests.kinds.query.interpreter import Interpreter
from tests.marks import long_cases

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

MODELS: Final[Sequence[type[Model]]] = [Country, Customer, Stock, Order, Item, Invoice]


def _plain(model: Any, hidden: Sequence[Any]) -> Any:
    return model.objects.exclude(pk__in=hidden)


def _annotated(model: Any, hidden: Sequence[Any]) -> Any:
    return model.objects.annotate(mcp_0=Count("pk")).exclude(pk__in=hidden)


def _distinct(model: Any, hidden: Sequence[Any]) -> Any:
    return model.objects.exclude(pk__in=hidden).distinct().order_by("-pk")


def _two_conditions(model: Any, hidden: Sequence[Any]) -> Any:
    return model.objects.filter(~Q(pk__in=hidden) | Q(pk__in=[])).select_related()


class Shop:
    """The rows of the shop, read once, and queries about some of them."""

    def __init__(self) -> None:
        shop.fill()
        self.rows: dict[str, list[Any]] = {
            each.__name__: [*each._default_manager.all()] for each in MODELS
        }
        for order in self.rows["Order"]:
            order.supplied_by = {each.pk for each in order.suppliers.all()}

    def opened(self, hidden: Mapping[str, Sequence[int]], scope: Any) -> OpenModels:
        def of(model: Any) -> Callable[[object], Any]:
            keys = [
                self.rows[model.__name__][at].pk
                for at in hidden[model.__name__]
                if at < len(self.rows[model.__name__])
            ]
            return lambda request: scope(model, keys)

        return shop.shop(**{model.__name__: of(model) for model in MODELS})

    def interpreter(self, hidden: Mapping[str, Sequence[int]]) -> Interpreter:
        visible = {
            name: [row for at, row in enumerate(rows) if at not in hidden[name]]
            for name, rows in self.rows.items()
        }
        return Interpreter(visible, shop.TODAY)


@pytest.fixture
def whole(db: None) -> Shop:
    return Shop()


PATHS: Final = {
    "Order": [
        *("id", "number", "state", "total", "weight", "created", "due", "note"),
        *("customer_id", "customer", "customer.name", "customer.country"),
        *("customer.pk", "customer.country.pk"),
        *("customer.country.name", "invoice", "invoice.paid", "invoice.customer"),
        *("invoice.customer.email", "invoice.key"),
    ],
    "Item": [
        *("amount", "order", "order.number", "order.customer", "order.customer.name"),
        *("stock", "stock.price", "order.invoice", "order.invoice.paid", "order.due"),
    ],
    "Customer": ["name", "country", "country.code", "country.name", "country_id"],
    "Invoice": ["paid", "order.number", "order.customer.name", "customer.country.name"],
    "Country": ["code", "name"],
}
SORTED: Final = {
    name: [path for path in paths if path not in ("note", "invoice", "invoice.key")]
    for name, paths in PATHS.items()
}
_DAYS: Final = st.dates(date(2026, 9, 1), date(2026, 12, 24))
FILTERS: Final[Mapping[str, Sequence[tuple[Any, str, st.SearchStrategy[Any]]]]] = {
    "Order": [
        ("state", "in", st.lists(st.sampled_from(["open", "sent"]), min_size=1)),
        ("total", "gte", st.integers(0, 9)),
        ("weight", "lte", st.sampled_from([0.5, 1.0, 2.5])),
        ("weight", "isempty", st.booleans()),
        ("note", "isempty", st.booleans()),
        ("number", "icontains", st.sampled_from(["1", "A0", "%", "_", "\\"])),
        (
            ["number", "customer.name", "note"],
            "words",
            st.sampled_from(["NAME 1", "a1 call", "1 %", "_", "Fragile name"]),
        ),
        ("created", "last_days", st.integers(1, 90)),
        # The others are about the moment of the call.
        ("created", "period", st.sampled_from(PERIODS[:-2])),
        ("due", "period", st.sampled_from(PERIODS)),
        ("due", "gte", st.just(shop.TODAY)),
        ("created", "range", st.tuples(st.none() | _DAYS, st.none() | _DAYS)),
        ("due", "range", st.tuples(st.none() | _DAYS, st.none() | _DAYS)),
        ("due", "next_days", st.integers(1, 9)),
        ("customer.name", "exact", st.sampled_from(["name 1", "name 3"])),
        (
            ["customer.name", "note"],
            "istartswith",
            st.sampled_from(["NAME 1", "f", "c"]),
        ),
        ("customer", "exact", st.sampled_from(["NAME 1", "name 2"])),
        ("customer", "in", st.just(["Name 0", "name 3"])),
        ("customer.pk", "isempty", st.booleans()),
        ("customer", "isempty", st.booleans()),
        ("customer.country", "isempty", st.booleans()),
        ("customer.country.pk", "exact", st.sampled_from(["de", "it", shop.FREE])),
        ("customer.country.name", "iexact", st.sampled_from(["LAND fr"])),
        ("invoice", "isempty", st.booleans()),
        ("invoice.paid", "exact", st.booleans()),
        ("invoice.paid", "isempty", st.booleans()),
        ("invoice.customer", "isempty", st.booleans()),
        ("items", "isempty", st.booleans()),
        ("items.amount", "gte", st.integers(1, 4)),
        ("items.stock.sku", "in", st.sampled_from([["k0"], ["k1", "k2"]])),
        ("suppliers", "in", st.sampled_from([["land de"], ["LAND FR", "land it"]])),
        ("suppliers.code", "exact", st.sampled_from(["de", "it", shop.FREE])),
        ("suppliers.pk", "isempty", st.booleans()),
        (["note", "suppliers.name", "items.stock.sku"], "words", st.just("LAND k1")),
    ],
    "Item": [
        ("amount", "gte", st.integers(1, 3)),
        ("order.customer.name", "icontains", st.sampled_from(["0", "1"])),
        ("order.invoice.paid", "exact", st.booleans()),
        ("stock.price", "lte", st.integers(0, 3)),
    ],
    "Customer": [
        ("country", "isempty", st.booleans()),
        ("country.pk", "exact", st.sampled_from(["de", shop.FREE])),
        ("country.name", "istartswith", st.just("land d")),
        ("orders.total", "gte", st.integers(0, 9)),
        ("orders.items.amount", "exact", st.integers(1, 3)),
        ("country.supplies.state", "in", st.just(["open", "back"])),
        ("invoices.paid", "isempty", st.booleans()),
    ],
    "Invoice": [
        ("paid", "exact", st.booleans()),
        ("customer.country.pk", "in", st.just(["de", shop.FREE])),
        ("customer.country.code", "in", st.just(["de", "fr"])),
    ],
    "Country": [("code", "exact", st.just("de"))],
}
LISTED: Final = {
    "Order": {"items": "Item", "suppliers": "Country"},
    "Customer": {"orders": "Order", "invoices": "Invoice"},
    "Country": {"customers": "Customer", "supplies": "Order"},
    "Item": {},
    "Invoice": {},
}
MEASURED: Final = {
    "Order": [("total", "sum"), ("weight", "avg"), ("total", "avg")],
    "Item": [("stock.price", "sum"), ("order.due", "max"), ("amount", "avg")],
}
GROUPED: Final = {
    "Order": [
        *("state", "customer", "customer.name", "customer.country.pk"),
        "invoice.paid",
    ],
    "Item": ["order.customer.country", "stock", "order.invoice.paid"],
}
DATED: Final = {"Order": ["created", "due"], "Item": ["order.due", "order.created"]}


@st.composite
def _filters(draw: st.DrawFn, name: str, prefix: str = "p") -> list[JsonObject]:
    chosen = draw(st.lists(st.sampled_from(FILTERS[name]), max_size=3))
    return [
        {
            "path": path,
            "lookup": comparison,
            "exclude": draw(st.booleans()) and comparison != "range",
            "parameter": f"{prefix}{at}",
            "drawn": draw(st.none() | value),
        }
        for at, (path, comparison, value) in enumerate(chosen)
    ]


@st.composite
def _order(draw: st.DrawFn, name: str) -> list[str]:
    paths = draw(st.lists(st.sampled_from(SORTED[name]), max_size=3, unique=True))
    return [draw(st.sampled_from(["", "-"])) + path for path in paths]


@st.composite
def _shown(draw: st.DrawFn, name: str) -> list[str]:
    paths = st.lists(st.sampled_from(PATHS[name]), min_size=1, max_size=5, unique=True)
    chosen = draw(paths)
    # A relation with members beside it is an object: told in test_shapes.
    return [
        path
        for path in chosen
        if not any(other.startswith(f"{path}.") for other in chosen)
    ]


@st.composite
def _row_configs(draw: st.DrawFn) -> JsonObject:
    name = draw(st.sampled_from(sorted(PATHS)))
    listed = [
        {
            "path": path,
            "fields": draw(_shown(target)),
            "filters": draw(_filters(target, f"q{at}_")),
            "order": draw(_order(target)),
            "limit": draw(st.sampled_from([1, 3, 50])),
        }
        for at, (path, target) in enumerate(LISTED[name].items())
        if draw(st.booleans())
    ]
    return {
        "model": f"drill.{name}",
        "fields": draw(_shown(name)),
        "filters": draw(_filters(name)),
        "order": draw(_order(name)),
        "lists": listed,
        "limit": 200,
    }


@st.composite
def _group_configs(draw: st.DrawFn) -> JsonObject:
    name = draw(st.sampled_from(sorted(GROUPED)))
    by: list[Any] = draw(
        st.lists(st.sampled_from(GROUPED[name]), max_size=2, unique=True)
    )
    if draw(st.booleans()):
        path, each = draw(st.sampled_from(DATED[name])), draw(st.sampled_from(UNITS))
        by.append({"path": path, "unit": each})
    measures = [{"aggregate": "count", "name": "count"}]
    for path, do in draw(st.lists(st.sampled_from(MEASURED[name]), unique=True)):
        measures.append({"aggregate": do, "path": path, "name": f"m{len(measures)}"})
    return {
        "model": f"drill.{name}",
        "filters": draw(_filters(name)),
        "group_by": by,
        "measures": measures,
    }


_HIDDEN: Final = st.fixed_dictionaries(
    {each.__name__: st.sets(st.integers(0, 5)).map(sorted) for each in MODELS}
)
_SCOPES: Final = st.sampled_from([_plain, _annotated, _distinct, _two_conditions])
_EXAMPLES: Final = settings(
    max_examples=int(os.environ.get("QUERY_EXAMPLES", "120")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


JOINED: Final = re.compile(
    r"JOIN [`\"]?drill_(country|customer|order|item|invoice|stock)[`\"]? "
)
"""What no statement over plain scopes has: a join of an opened model."""


def _without_drawn(config: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return the config, and the values of its parameters."""
    values: JsonObject = {}
    for part in (config, *config.get("lists", [])):
        for asked in part["filters"]:
            drawn = asked.pop("drawn")
            name = asked["parameter"]
            named = {name: drawn}
            if isinstance(drawn, tuple):
                named = {f"{name}_{end}": drawn[at] for at, end in enumerate(ENDS)}
            values |= {n: each for n, each in named.items() if each is not None}
    return config, values


def _statements() -> CaptureQueriesContext:
    """Capture the statements of one example: Django keeps 9,000 in all."""
    connection.queries_log.clear()
    return CaptureQueriesContext(connection)


@given(config=_row_configs(), hidden=_HIDDEN, scope=_SCOPES)
@_EXAMPLES
def test_rows_are_those_of_the_scope(
    whole: Shop, config: JsonObject, hidden: Any, scope: Any
) -> None:
    config, values = _without_drawn(config)
    with _statements() as statements:
        found = shop.rows(config, whole.opened(hidden, scope), **values)
    assert found == whole.interpreter(hidden).rows(config, values)
    if scope is _plain:
        assert not [each for each in statements if JOINED.search(each["sql"])]


@given(config=_group_configs(), hidden=_HIDDEN, scope=_SCOPES)
@_EXAMPLES
def test_groups_are_those_of_the_scope(
    whole: Shop, config: JsonObject, hidden: Any, scope: Any
) -> None:
    config, values = _without_drawn(config)
    with _statements() as statements:
        found = shop.groups(config, whole.opened(hidden, scope), **values)
    if scope is _plain:
        assert not [each for each in statements if JOINED.search(each["sql"])]
    wanted = whole.interpreter(hidden).groups(config, values)
    assert sorted(map(repr, map(_sorted, found))) == sorted(
        map(repr, map(_sorted, wanted))
    )


# Where the code asks for a model's rows: for each, other rows in its place are seen.
WAYS: Final = (
    *("where", "_of_one", "_chosen_rows", "read_groups"),
    # Few of the queries that are drawn go these ways.
    *long_cases("read_list"),
)


@pytest.mark.parametrize("way", WAYS)
def test_no_way_can_be_left_without_its_scope(
    whole: Shop, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scoped = Scopes.rows

    def planted(self: Scopes, model: Any) -> Any:
        if sys._getframe(1).f_code.co_name == way:
            return model.model._base_manager.all()
        return scoped(self, model)

    monkeypatch.setattr(Scopes, "rows", planted)

    def differs(drawn: Any) -> bool:
        config, hidden = drawn
        config, values = _without_drawn(copy.deepcopy(config))
        opened = whole.opened(hidden, _plain)
        visible = whole.interpreter(hidden)
        if "measures" in config:
            found = [*map(_sorted, shop.groups(config, opened, **values))]
            wanted = [*map(_sorted, visible.groups(config, values))]
            return sorted(map(repr, found)) != sorted(map(repr, wanted))
        return shop.rows(config, opened, **values) != visible.rows(config, values)

    drawn = st.tuples(_row_configs() | _group_configs(), _HIDDEN)
    most = settings(_EXAMPLES, max_examples=400, database=None, phases=[Phase.generate])
    assert find(drawn, differs, settings=most)


def _sorted(line: JsonObject) -> Any:
    return sorted(line.items())


def test_a_scope_is_asked_once_for_each_model() -> None:
    asked = []

    def orders(request: object) -> Any:
        asked.append(request)
        return Order.objects.all()

    opened = shop.shop(Order=orders)
    scopes = Scopes(shop.request(), "default")
    for _time in range(3):
        scopes.rows(opened["drill.Order"])
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (lambda request: None, "returned NoneType, which is no queryset."),
        (lambda request: [], "returned list, which is no queryset."),
        (
            lambda request: Customer.objects.all(),
            "returned rows of drill.Customer, which is not drill.Order.",
        ),
        (lambda request: Order.objects.all()[:3], "returned a slice."),
        (
            lambda request: Order.objects.all().union(Order.objects.all()),
            "returned a union.",
        ),
        (lambda request: Order.objects.values(), r"returned values\(\)"),
        (lambda request: Order.objects.values_list("pk"), r"returned values\(\)"),
        (
            lambda request: Order.objects.using("elsewhere"),
            "returned rows of the database “elsewhere”, but “default” is read.",
        ),
    ],
)
def test_what_is_no_scope(rows: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        shop.rows({"fields": ["id"]}, shop.shop(Order=rows))


def test_all_rows_are_those_of_the_default_manager() -> None:
    shop.order("a", hidden=True)
    assert shop.rows({"fields": ["number"]}, shop.shop(Order="all")) == [
        {"number": "a"}
    ]
