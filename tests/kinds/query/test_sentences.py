"""Queries in words: part by part, in one sentence, and as drafts for clients."""

from __future__ import annotations

from typing import Any, Final

from mcp_app.kinds.query.description import QueryText
from mcp_app.kinds.query.labels import FIELD, PARAMETER, filter_words, plain_text
from tests.kinds.query import shop

OPENED: Final = shop.shop()
TOP: Final[dict[str, Any]] = {
    "model": "drill.Order",
    "answer": "groups",
    "group_by": ["customer"],
    "measures": [
        {"aggregate": "sum", "path": "total", "name": "turnover"},
        {"aggregate": "count", "name": "orders"},
    ],
    "filters": [
        {"path": "created", "lookup": "range", "parameter": "created"},
        {"path": "state", "lookup": "in", "value": ["open", "back"]},
    ],
    "order": ["-turnover"],
    "limit": 10,
}
CUSTOMERS: Final[dict[str, Any]] = {
    "model": "drill.Customer",
    "fields": ["name", "country.name"],
    "lists": [
        {
            "path": "orders",
            "fields": ["number", "total"],
            "order": ["-created"],
            "limit": 5,
            "filters": [{"path": "due", "lookup": "next_days", "parameter": "days"}],
        }
    ],
    "filters": [
        {"path": "name", "lookup": "icontains", "parameter": "name", "required": True}
    ],
    "order": ["name"],
    "count": True,
}
GONE: Final[dict[str, Any]] = {
    "model": "gone.Model",
    "answer": "one",
    "fields": ["a", "b.c"],
    "filters": [{"path": "x.y", "lookup": "exact", "value": 1}],
}


def test_groups_in_words() -> None:
    assert [*QueryText(TOP, OPENED).parts()] == [
        ("Looks up", "Orders"),
        ("Whose rows", "only rows that the caller may see"),
        ("One group for each", "customer"),
        ("Numbers of each group", "turnover: sum of total"),
        ("Numbers of each group", "orders: count of orders"),
        (
            "Only orders where",
            "created is between created_from and created_to, the client says",
        ),
        ("Only orders where", "state is one of Waits to be sent, Came back, fixed"),
        ("Sorted by", "turnover, largest first"),
        ("At most", "10 groups"),
    ]
    sentence = QueryText(TOP, OPENED).sentence()
    stressed = [each for each in sentence if each.role]
    assert stressed == [
        ("customers", FIELD),
        ("turnover", FIELD),
        ("state", FIELD),
        ("created", FIELD),
        ("created_from", PARAMETER),
        ("created_to", PARAMETER),
    ]
    what = (
        "The 10 customers with the largest turnover (sum of total), with orders (count"
        " of orders). Only orders whose"
    )
    fixed = "state is one of Waits to be sent, Came back."
    assert plain_text(sentence) == (
        f"{what} {fixed[:-1]}, and whose created is between created_from and"
        " created_to, as the client says."
    )
    assert QueryText(TOP, OPENED).title() == "Top 10 customers"
    assert QueryText(TOP, OPENED).description() == (
        f"{what} {fixed} Give created_from and created_to for a span, both ends"
        " included."
    )
    by_month = {"group_by": [{"path": "created", "unit": "month"}, "state"]}
    months = {**TOP, **by_month, "order": ["-created_month"], "filters": []}
    assert plain_text(QueryText(months, OPENED).sentence()) == (
        "Orders, for each created: month and state: turnover (sum of total) and orders"
        " (count of orders), sorted by created: month (newest first), at most 10."
    )
    assert QueryText(months, OPENED).title() == "Orders by created: month and state"


def test_rows_in_words() -> None:
    listed = (
        "orders (number, total; created, newest first; at most 5; orders whose due is"
        " in the next days days, as the client says)"
    )
    assert [*QueryText(CUSTOMERS, OPENED).parts()] == [
        ("Looks up", "Customers"),
        ("Whose rows", "only rows that the caller may see"),
        ("Columns", "name, country: name"),
        ("With each customer, a list", listed),
        (
            "Only customers where",
            "name contains the given name, the client must say it",
        ),
        ("Sorted by", "name, A to Z"),
        ("At most", "50 rows"),
        ("Says", "how many rows there are in all"),
    ]
    what = (
        f"Customers: name and country: name, each with its {listed}, sorted by name (A"
        " to Z), at most 50."
    )
    assert plain_text(QueryText(CUSTOMERS, OPENED).sentence()) == (
        f"{what} Only customers whose name contains the given name, as the client says."
    )
    assert QueryText(CUSTOMERS, OPENED).title() == "Customers by name"
    assert QueryText(CUSTOMERS, OPENED).description() == (
        f"{what} Give name: a part of the name. Give days: how many days ahead."
    )


def test_what_no_code_opens_any_more_has_its_name() -> None:
    assert [*QueryText(GONE, OPENED).parts()] == [
        ("Looks up", "gone.Model"),
        ("Columns", "a, b.c"),
        ("Only gone.Model where", "x.y is 1, fixed"),
    ]
    assert QueryText(GONE, OPENED).title() == "One gone.Model"


FIXED: Final[list[tuple[str, str, Any, str]]] = [
    ("created", "range", ["2026-01-01", None], "is on or after 1 Jan 2026"),
    ("total", "range", [1, 2.5], "is between 1 and 2.5"),
    ("created", "last_days", 7, "is in the last 7 days"),
    ("due", "exact", "2026-12-24", "is on 24 Dec 2026"),
    ("due", "lte", "soon", "is on or before soon"),
    ("state", "exact", "open", "is Waits to be sent"),
    ("note", "isempty", False, "is not empty"),
    ("number", "exact", "A7", "is exactly “A7”"),
    ("total", "gte", None, "is at least …"),
    ("due", "last_days", "", "is in the last … days"),
]
ASKED: Final[list[tuple[str, str, Any, str]]] = [
    ("due", "range", [None, "2026-01-31"], "is between p_from and p_to, else up to"),
    ("created", "period", "last_month", "is in the period p, else last month"),
    ("due", "next_days", None, "is in the next p days"),
    ("note", "isempty", None, "is empty or not: p"),
    ("number", "iexact", None, "is p (any case)"),
]


def test_filters_in_words() -> None:
    def words(path: Any, lookup: str, text: str = "", **rest: Any) -> str:
        config = {"path": path, "lookup": lookup, **rest}
        return plain_text(filter_words(config, OPENED["drill.Order"], OPENED, text))

    for path, lookup, value, said in FIXED:
        assert words(path, lookup, value=value) == f"{path} {said}"
    for path, lookup, value, said in ASKED:
        told = words(path, lookup, parameter="p", default=value)
        assert told.startswith(f"{path} {said}")
    assert words("state", "in", value=["open"], exclude=True) == (
        "state is none of Waits to be sent"
    )
    several = ["number", "customer.name"]
    assert words(several, "icontains", parameter="text") == (
        "number or customer: name contains text"
    )
    assert words("customer.pk", "exact", value=7) == "customer (its key) is 7"
    known = words("customer.pk", "exact", "Meyer Bau", value=7)
    assert known == "customer (its key) is Meyer Bau"
