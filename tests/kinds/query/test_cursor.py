from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from django.test import override_settings

from mcp_app.kinds.query import shapes
from mcp_app.kinds.query.shapes import ForeignCursor, Place, Total
from tests.drill.models import Invoice, Order
from tests.kinds.query import shop

BOUND = shapes.binding("person", "", "orders", {"state": "open"}, {"model": "a"})
META = Order._meta
COLUMNS = [META.get_field(name) for name in ("total", "created", "due", "weight")]
PLACE = Place(
    after=(
        Decimal("4.50"),
        datetime(2026, 11, 2, 10, 0, 0, 123456, tzinfo=UTC),
        date(2026, 11, 2),
        0.1,
    ),
    key=7,
    day=shop.TODAY,
    total=Total(137, exact=True),
)


def opened(text: object, bound: bytes = BOUND) -> Place:
    return shapes.open(text, bound, COLUMNS, META.pk)


@pytest.mark.parametrize(
    "place",
    [
        PLACE,
        Place((None, None, None, None), 10**18, shop.TODAY, None),
        Place(PLACE.after, 7, date(1, 1, 1), Total(100_000, exact=False)),
    ],
)
def test_it_comes_back_as_it_was(place: Place) -> None:
    assert opened(shapes.seal(place, BOUND)) == place


def test_keys_that_are_no_numbers() -> None:
    key = Invoice._meta.get_field("key").default()
    text = shapes.seal(Place((), key, shop.TODAY, None), BOUND)
    assert shapes.open(text, BOUND, [], Invoice._meta.pk).key == key


def test_three_long_texts_fit() -> None:
    text = "\N{GRINNING FACE}" * 255
    columns = [META.get_field("number")] * 3
    sealed = shapes.seal(Place((text,) * 3, 2**63 - 1, shop.TODAY, None), BOUND)
    assert len(sealed) <= shapes.LARGEST
    assert shapes.open(sealed, BOUND, columns, META.pk).after == (text,) * 3


@pytest.mark.parametrize(
    "changes",
    [
        {"principal": "another"},
        {"server": "team"},
        {"tool": "customers"},
        {"arguments": {"state": "sent"}},
        {"config": {"model": "b"}},
    ],
)
def test_it_is_for_one_caller_and_one_query(changes: dict[str, Any]) -> None:
    given: dict[str, Any] = {
        "principal": "person",
        "server": "",
        "tool": "orders",
        "arguments": {"state": "open"},
        "config": {"model": "a"},
    }
    text = shapes.seal(PLACE, BOUND)
    assert opened(text, shapes.binding(**given)) == PLACE
    with pytest.raises(ForeignCursor):
        opened(text, shapes.binding(**{**given, **changes}))


@pytest.mark.parametrize("text", ["", "x", None, 3, "é", "A" * 100])
def test_what_is_no_cursor(text: object) -> None:
    with pytest.raises(ForeignCursor):
        opened(text)


def test_it_tells_nothing_and_cannot_be_changed() -> None:
    text = shapes.seal(PLACE, BOUND)
    assert text != shapes.seal(PLACE, BOUND)
    for at, bit in product(range(len(text)), range(8)):
        other = chr(ord(text[at]) ^ 1 << bit)
        with pytest.raises(ForeignCursor):
            opened(text[:at] + other + text[at + 1 :])


def test_the_key_of_the_site_can_change() -> None:
    with override_settings(SECRET_KEY="old"):
        text = shapes.seal(PLACE, BOUND)
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["old"]):
        assert opened(text) == PLACE
    with override_settings(SECRET_KEY="new"), pytest.raises(ForeignCursor):
        opened(text)
