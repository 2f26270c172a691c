"""Configs, and what each sentence says that is wrong with one."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from django.db import models
from django.test import override_settings
from django.test.utils import isolate_apps

from mcp_app.catalog.open_models import open_model
from mcp_app.interface.rules import AccessRequirements
from mcp_app.kinds.kind import Incomplete
from mcp_app.kinds.query.config import SCHEMA
from mcp_app.kinds.query.reading import read_query_config
from mcp_app.protocol import schemas
from tests.drill.models import Customer, Item, Order
from tests.kinds.query import shop

WHOLE: dict[str, Any] = {
    "model": "drill.Order",
    "filters": [
        {"path": "state", "lookup": "in", "parameter": "states"},
        {"path": "created", "lookup": "last_days", "parameter": "days", "default": 7},
        {"path": "note", "lookup": "isempty", "value": False},
        {"path": "customer.country", "lookup": "exact", "parameter": "country"},
        {"path": ["number", "note"], "lookup": "icontains", "parameter": "text"},
    ],
    "answer": "rows",
    "fields": ["number", "total", "customer.name"],
    "lists": [
        {
            "path": "items",
            "fields": ["stock.sku", "amount"],
            "filters": [{"path": "amount", "lookup": "gte", "parameter": "least"}],
            "order": ["stock.sku"],
            "limit": 20,
        }
    ],
    "order": ["-created"],
    "limit": 30,
    "count": True,
}
GROUPED: dict[str, Any] = {
    "answer": "groups",
    "group_by": ["state", {"path": "created", "unit": "month"}],
    "measures": [
        {"aggregate": "count", "name": "orders"},
        {"aggregate": "sum", "path": "total", "name": "total"},
    ],
}


def test_a_whole_config() -> None:
    assert [*schemas.compile_schema(SCHEMA).violations(WHOLE)] == []
    query = shop.query(WHOLE)
    assert [*query.parameters] == ["states", "days", "country", "text", "least"]
    assert query.parameters["days"].default == 7
    assert [path.text for path in query.fields] == ["number", "total", "customer.name"]
    assert (query.limit, query.count, query.answer) == (30, True, "rows")
    assert [(term.path.text, term.descending) for term in query.order] == [
        ("created", True)
    ]
    assert {*query.models} == {
        f"drill.{name}" for name in ("Order", "Customer", "Country", "Item", "Stock")
    }


def test_groups() -> None:
    assert [*schemas.compile_schema(SCHEMA).violations(GROUPED)] == []
    query = shop.query(GROUPED)
    assert [each.name for each in query.group_by] == ["state", "created_month"]
    assert [each.name for each in query.measures] == ["orders", "total"]


def test_a_range_is_two_filters() -> None:
    due = {"path": "due", "lookup": "range"}
    days = ["2026-11-01", "2026-11-30"]
    query = shop.query({**_asked(**due, parameter="due", default=[days[0], None])})
    halves = [
        (name, each.lookup, each.default) for name, each in query.parameters.items()
    ]
    assert halves == [("due_from", "from", days[0]), ("due_to", "to", None)]
    first, last = shop.query(_asked(**due, value=days)).filters
    assert (first.value, last.value) == (date(2026, 11, 1), date(2026, 11, 30))
    [only] = shop.query(_asked(**due, value=[None, days[1]])).filters
    assert (only.lookup, only.value) == ("to", date(2026, 11, 30))
    within_a_day = ["2026-11-02 10:00", "2026-11-02"]
    assert shop.query(_asked("created", "range", value=within_a_day)).filters


def test_what_is_demanded() -> None:
    opened = {
        "drill.Order": open_model(
            Order,
            fields=["number", "customer", "margin"],
            filters=["margin", "items"],
            rows="all",
            permissions={"margin": "drill.view_margin"},
        ),
        "drill.Customer": open_model(
            Customer, fields=["name"], rows="all", permissions={"name": "drill.name"}
        ),
        "drill.Item": open_model(Item, fields=["amount"], rows="all"),
    }
    own = ("drill.view_order",)
    also = ("drill.view_customer",)
    asked = [{"path": "margin", "lookup": "gte", "parameter": "least"}]
    for config, permissions in (
        ({"fields": ["number"]}, own),
        ({"fields": ["customer.pk"]}, also + own),
        ({"fields": ["customer.name"]}, ("drill.name", *also, *own)),
        ({"fields": ["customer"]}, ("drill.name", *also, *own)),
        ({"fields": ["number"], "filters": asked}, ("drill.view_margin", *own)),
        ({"fields": ["number"], "order": ["customer.pk"]}, also + own),
        (
            {"fields": ["number"], "totals": [_sum("margin", "a")]},
            ("drill.view_margin", *own),
        ),
        (_asked("items.amount", "gte", value=1), ("drill.view_item", *own)),
    ):
        query = shop.query(config, opened)
        assert query.demands == AccessRequirements(permissions=permissions)
        assert not query.per_caller


def test_whose_rows_depend_on_who_asks() -> None:
    opened = shop.shop(Order="all", Customer="all")
    assert not shop.query({"fields": ["customer.name"]}, opened).per_caller
    assert shop.query({"fields": ["customer.country"]}, opened).per_caller


def test_what_is_only_missing() -> None:
    for config, sentence in (
        ({"model": ""}, "Choose what to look up."),
        ({}, "Choose at least one field to show."),
        ({"answer": "groups"}, "Choose what to count or to add up."),
    ):
        whole = {"model": "drill.Order", **config}
        query, [problem] = read_query_config(whole, shop.shop())
        assert query is None
        assert isinstance(problem, Incomplete)
        assert str(problem) == sentence


def _asked(path: Any = "number", lookup: str = "exact", **others: Any) -> Any:
    filters = [{"path": path, "lookup": lookup, **others}]
    return {"fields": ["number"], "filters": filters}


def _sum(path: str, name: str) -> Any:
    return {"aggregate": "sum", "path": path, "name": name}


def _group(**changes: Any) -> Any:
    return {**GROUPED, **changes}


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            {"model": "drill.Ledger"},
            "No code opens the model “drill.Ledger” (any more).",
        ),
        ({"fields": ["items"]}, "“items” leads to many rows. Show them as a list"),
        ({"fields": ["number", "number"]}, "“number” is there twice."),
        ({"fields": ["id"], "order": ["note"]}, "Rows cannot be sorted by “note”"),
        (
            {"fields": ["id"], "lists": [{"path": "customer", "fields": ["name"]}]},
            "“customer” is no relation of drill.Order to many.",
        ),
        (
            {"fields": ["id"], "lists": [{"path": "items", "fields": ["sku"]}]},
            "“sku” of drill.Item cannot be shown",
        ),
        (
            _asked(lookup="gte", value="a"),
            "“number” cannot be asked by “gte”. ",
        ),
        (
            {"fields": ["id"], "totals": [_sum("number", "a")]},
            "“number” is a text, which has no sum.",
        ),
        ({"fields": ["id"], "totals": [_sum("total", "a")] * 2}, "“a” is there twice."),
        (_asked("items.amount", "range", value=[1, 2]), "there is: exact, gte, lte."),
        (_asked(), "The filter of “number” has neither a value nor a parameter."),
        (_asked(parameter="cursor"), "“cursor” is the name of our own parameter."),
        (_asked(parameter="a", value="b"), "The parameter “a” has a fixed value, too."),
        (_asked(value=3), "The value of “number” does not fit: "),
        (_asked("due", "gte", value="2026-13-01"), "The value of “due” does not fit"),
        (
            _asked("due", "last_days", parameter="days", default=0),
            "The default of “due” does not fit: ",
        ),
        (
            _asked(["number", "total"], "icontains", parameter="a"),
            "For several texts th",
        ),
        (_asked(["number", "note"], "exact", parameter="a"), "icontains, istartswith."),
        (_asked("state", "exact", value=None), "null is no value. For rows without"),
        (_asked("state", "in", value=["open", None]), "one use “isempty”."),
        (_asked("due", "range", value=[None, None]), "A range needs a beginning"),
        (_asked("total", "range", value=[10, 9]), "its beginning is after its end"),
        (_asked("created", "range", value=["20261103", "20261102"]), "after its end"),
        (_asked("due", "range", value="2026-11-01"), "The value of “due” does not fit"),
        (_asked("due", "range", parameter="a", exclude=True), "A range cannot be ex"),
        (_asked("customer", "iexact", value="a"), "For a relation to one there is: in"),
        (_asked("invoice", "icontains", value="a"), "cannot be asked by “icontains”"),
        (
            _group(order=["-sum"]),
            "Groups cannot be sorted by “sum”. There is: state, cr",
        ),
        (_group(group_by=["suppliers"]), "“suppliers” leads to many rows."),
        (
            _group(group_by=[{"path": "state", "unit": "day"}]),
            "“state” is no date, so it has",
        ),
        (
            _group(
                group_by=["total"], measures=[{"aggregate": "count", "name": "total"}]
            ),
            "there twice",
        ),
        (
            _group(measures=[{"aggregate": "sum", "name": "a"}]),
            "Choose of which field the sum",
        ),
        (
            _group(measures=[{"aggregate": "count", "path": "total", "name": "a"}]),
            "A count counts rows, and takes no path.",
        ),
        (
            _group(measures=[{"aggregate": "sum", "path": "state", "name": "a"}]),
            "“state” is a choice, which has no sum.",
        ),
        (
            _group(measures=[{"aggregate": "avg", "path": "created", "name": "a"}]),
            "“created” is a date and time, which has no avg.",
        ),
    ],
)
def test_what_is_wrong(config: Any, sentence: str) -> None:
    [problem] = shop.problems(config)
    assert sentence in problem


def test_what_is_no_path() -> None:
    for path, sentence in (
        ("", "“” is no path. Write up to 3 names of fields with dots"),
        ("customer.", "“customer.” is no path."),
        ("customer.country.customers.name", "is no path. Write up to 3"),
        (None, "“None” is no path."),
        ("numbr", "of drill.Order cannot be shown: "),
        ("numbr", "Did you mean “number”?"),
        ("number.x", "number of drill.Order is a text, and a path goes on on"),
        ("number.pk", "number of drill.Order is a text, and a path goes on on"),
        ("items.amount", "items of drill.Order is a relation to many, and a "),
        ("customer__name", "“customer__name” of drill.Order cannot be shown"),
    ):
        [problem] = shop.problems({"fields": [path]})
        assert sentence in problem
    [problem] = shop.problems(_asked("margin", value=1))
    assert "“margin” of drill.Order cannot be asked by: no code open" in problem
    opened = {"drill.Order": shop.shop()["drill.Order"]}
    [problem] = shop.problems({"fields": ["customer.name"]}, opened)
    assert "“customer” leads to drill.Customer, whi" in problem


def test_a_parameter_is_named_once_in_lists_too() -> None:
    asked = [{"path": "amount", "lookup": "gte", "parameter": "least"}]
    listed = {"path": "items", "fields": ["amount"], "filters": asked}
    config = {**_asked("total", "gte", parameter="least"), "lists": [listed]}
    assert shop.problems(config) == [
        "The parameter “least” is used twice. Choose another name."
    ]


def test_all_that_is_wrong_is_told_with_its_place() -> None:
    listed = {
        **{"path": "items", "fields": ["amount", "a"], "order": ["-b"]},
        "filters": [{"path": "amount", "lookup": "gte", "value": "c"}],
    }
    asked = [{"path": "state", "lookup": "in", "parameter": "a", "default": ["gone"]}]
    config = {"model": "drill.Order", "fields": ["d"], "filters": asked, "order": ["e"]}
    for each, places in (
        (
            {**config, "lists": [listed]},
            "fields.0 lists.0.fields.1 lists.0.filters.0.value lists.0.order.0 order.0"
            " filters.0.default",
        ),
        (_group(measures=[{"aggregate": "sum", "name": "n"}]), "measures.0.path"),
        (_group(order=["n"]), "order.0"),
        ({"fields": ["id", "id"]}, "fields.1"),
        ({}, "fields"),
    ):
        _query, wrong = read_query_config({"model": "drill.Order", **each}, shop.shop())
        assert {problem.place for problem in wrong} == {*places.split()}


class Router:
    def db_for_read(self, model: Any, **hints: object) -> str | None:
        return "other" if model is Customer else None


def test_one_query_reads_one_database() -> None:
    with override_settings(DATABASE_ROUTERS=[f"{__name__}.Router"]):
        [problem] = shop.problems({"fields": ["customer.name"]})
    assert "drill.Order on “default”" in problem
    assert "drill.Customer on “other”" in problem


@isolate_apps("tests.drill")
def test_the_text_of_a_relation_and_a_field_called_text_are_two() -> None:
    class Topic(models.Model):  # noqa: DJ008
        title = models.CharField(max_length=20)
        text = models.CharField(max_length=20)

        class Meta:
            app_label = "drill"

    class Remark(models.Model):  # noqa: DJ008
        topic = models.ForeignKey(Topic, models.CASCADE, related_name="remarks")

        class Meta:
            app_label = "drill"

    rows: dict[str, Any] = {"rows": "all", "permission": ""}
    own = [
        open_model(Topic, fields=["title", "text", "remarks"], **rows),
        open_model(Remark, fields=["topic"], **rows),
    ]
    opened = {each.label: each for each in own}
    both = ["topic", "topic.text"]
    remarks = {"model": "drill.Remark", "fields": both}
    assert shop.problems(remarks, opened) == ["“topic.text” is there twice."]
    listed = {"path": "remarks", "fields": both}
    topics = {"model": "drill.Topic", "lists": [listed]}
    assert shop.problems(topics, opened) == ["“topic.text” is there twice."]
    for alone in (["topic", "topic.title"], ["topic.text"]):
        assert not shop.problems({**remarks, "fields": alone}, opened)
