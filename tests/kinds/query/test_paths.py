from __future__ import annotations

import pytest

from mcp_app.kinds.kind import KindError
from mcp_app.kinds.query.scoping import Use, resolve_path
from tests.kinds.query import shop

OPENED = shop.shop()
ORDER = OPENED["drill.Order"]


def test_over_relations_to_a_field() -> None:
    path = resolve_path("customer.country.name", ORDER, OPENED, "fields")
    hops = ["drill.Customer", "drill.Country"]
    assert [hop.model.label for hop in path.hops] == hops
    assert (path.field.name, path.owner.label) == ("name", "drill.Country")
    assert path.name == "customer_country_name"
    assert [each.label for each in path.models] == ["drill.Order", *hops]
    assert path.nullable
    assert path.stand_in == ""


def test_a_field_of_its_own() -> None:
    path = resolve_path("number", ORDER, OPENED, "filters")
    assert (path.hops, path.owner, path.nullable) == ((), ORDER, False)


def test_a_relation_is_its_text_or_its_key() -> None:
    for text, field, name in (
        ("customer", "name", "customer"),
        ("customer.pk", "customer", "customer_pk"),
        ("customer.country.pk", "country", "customer_country_pk"),
        ("invoice", "invoice", "invoice"),
    ):
        path = resolve_path(text, ORDER, OPENED, "filters")
        assert (path.field.name, path.name) == (field, name)
        assert path.stand_in == ("text" if field == "name" else "pk")
        assert path.hops[-1].field.name == path.end_field.name


@pytest.mark.parametrize(
    ("text", "use", "sentence"),
    [
        ("", "fields", "“” is no path. Write up to 3 names of fields with dots"),
        ("customer.", "fields", "“customer.” is no path."),
        ("customer.country.customers.name", "fields", "is no path. Write up to 3"),
        (None, "fields", "“None” is no path."),
        (
            "numbr",
            "fields",
            "of drill.Order cannot be shown: .* Did you mean “number”?",
        ),
        (
            "margin",
            "filters",
            "“margin” of drill.Order cannot be asked by: no code open",
        ),
        (
            "number.x",
            "fields",
            "number of drill.Order is a text, and a path goes on on",
        ),
        (
            "items.amount",
            "fields",
            "items of drill.Order is a relation to many, and a ",
        ),
        ("items", "filters", "“items” of drill.Order cannot be asked by"),
        ("number.pk", "fields", "number of drill.Order is a text, and a path goes"),
        ("customer__name", "fields", "“customer__name” of drill.Order cannot be shown"),
    ],
)
def test_what_is_no_path(text: object, use: Use, sentence: str) -> None:
    with pytest.raises(KindError, match=sentence):
        resolve_path(text, ORDER, OPENED, use)


def test_a_relation_to_what_is_not_opened() -> None:
    opened = {"drill.Order": ORDER}
    with pytest.raises(KindError, match=r"“customer” leads to drill\.Customer, whi"):
        resolve_path("customer.name", ORDER, opened, "fields")
