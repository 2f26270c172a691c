from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings

from mcp_app.kinds.query import shapes
from mcp_app.kinds.query.shapes import (
    ForeignCursor,
    Place,
    Total,
    field_to_json,
    measure_to_json,
    plain_to_json,
)
from tests.drill.models import Invoice, Order
from tests.kinds.query import shop

FIELDS = shop.shop()["drill.Order"].fields
KEY = UUID(int=7)
MOMENT = datetime(2026, 11, 2, 22, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        ("a", "a"),
        (7, 7),
        (True, True),
        (0.5, 0.5),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (date(2026, 11, 2), "2026-11-02"),
        (time(22, 30), "22:30:00"),
        (timedelta(days=1, seconds=2), "P1DT00H00M02S"),
        (KEY, str(KEY)),
        ({"a": [1]}, {"a": [1]}),
        (datetime(2026, 11, 2, 10), "2026-11-02T10:00:00"),
    ],
)
def test_values_in_json(value: Any, shown: Any) -> None:
    assert plain_to_json(value) == shown


def test_times_are_those_of_the_site() -> None:
    with override_settings(TIME_ZONE="Europe/Berlin"):
        assert plain_to_json(MOMENT) == "2026-11-02T23:30:00+01:00"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("4.5", "4.50"),
        ("0.900000000000000", "0.90"),
        ("1E+3", "1000.00"),
        ("NaN", "NaN"),
    ],
)
def test_decimals_have_the_places_of_their_field(value: str, shown: str) -> None:
    assert field_to_json(FIELDS["total"], Decimal(value)) == shown


@pytest.mark.parametrize(
    ("aggregate", "name", "value", "shown"),
    [
        ("count", None, 3, 3),
        ("sum", "total", Decimal("4.5"), "4.50"),
        ("avg", "total", Decimal("4.5"), "4.500000"),
        ("avg", "weight", 1 / 3, 0.333333),
        ("min", "created", MOMENT, "2026-11-02T22:30:00+00:00"),
        ("avg", "weight", float("inf"), "inf"),
        ("sum", "total", None, None),
        ("avg", "weight", None, None),
    ],
)
def test_measures(aggregate: str, name: str | None, value: Any, shown: Any) -> None:
    assert measure_to_json(aggregate, FIELDS[name] if name else None, value) == shown


# -- cursor ----------------------------------------------------------------------------


BOUND = shapes.cursor_binding("person", "", "orders", {"state": "open"}, {"model": "a"})
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
    return shapes.open_cursor(text, bound, COLUMNS, META.pk)


@pytest.mark.parametrize(
    "place",
    [
        PLACE,
        Place((None, None, None, None), 10**18, shop.TODAY, None),
        Place(PLACE.after, 7, date(1, 1, 1), Total(100_000, exact=False)),
    ],
)
def test_it_comes_back_as_it_was(place: Place) -> None:
    assert opened(shapes.seal_cursor(place, BOUND)) == place


def test_keys_that_are_no_numbers() -> None:
    key = Invoice._meta.get_field("key").default()
    text = shapes.seal_cursor(Place((), key, shop.TODAY, None), BOUND)
    assert shapes.open_cursor(text, BOUND, [], Invoice._meta.pk).key == key


def test_three_long_texts_fit() -> None:
    text = "\N{GRINNING FACE}" * 255
    columns = [META.get_field("number")] * 3
    sealed = shapes.seal_cursor(Place((text,) * 3, 2**63 - 1, shop.TODAY, None), BOUND)
    assert len(sealed) <= shapes.LARGEST
    assert shapes.open_cursor(sealed, BOUND, columns, META.pk).after == (text,) * 3


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
    text = shapes.seal_cursor(PLACE, BOUND)
    assert opened(text, shapes.cursor_binding(**given)) == PLACE
    with pytest.raises(ForeignCursor):
        opened(text, shapes.cursor_binding(**{**given, **changes}))


@pytest.mark.parametrize("text", ["", "x", None, 3, "é", "A" * 100])
def test_what_is_no_cursor(text: object) -> None:
    with pytest.raises(ForeignCursor):
        opened(text)


def test_it_tells_nothing_and_cannot_be_changed() -> None:
    text = shapes.seal_cursor(PLACE, BOUND)
    assert text != shapes.seal_cursor(PLACE, BOUND)
    for at, bit in product(range(len(text)), range(8)):
        other = chr(ord(text[at]) ^ 1 << bit)
        with pytest.raises(ForeignCursor):
            opened(text[:at] + other + text[at + 1 :])


def test_the_key_of_the_site_can_change() -> None:
    with override_settings(SECRET_KEY="old"):
        text = shapes.seal_cursor(PLACE, BOUND)
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["old"]):
        assert opened(text) == PLACE
    with override_settings(SECRET_KEY="new"), pytest.raises(ForeignCursor):
        opened(text)
