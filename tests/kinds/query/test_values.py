from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings

from mcp_app.kinds.query.shapes import exact, measure_to_json, plain, to_json
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
    assert plain(value) == shown


def test_times_are_those_of_the_site() -> None:
    with override_settings(TIME_ZONE="Europe/Berlin"):
        assert plain(MOMENT) == "2026-11-02T23:30:00+01:00"


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
    assert to_json(FIELDS["total"], Decimal(value)) == shown


@pytest.mark.parametrize(
    ("do", "name", "value", "shown"),
    [
        ("count", None, 3, 3),
        ("sum", "total", Decimal("4.5"), "4.50"),
        ("average", "total", Decimal("4.5"), "4.500000"),
        ("average", "weight", 1 / 3, 0.333333),
        ("least", "created", MOMENT, "2026-11-02T22:30:00+00:00"),
        ("average", "weight", float("inf"), "inf"),
        ("sum", "total", None, None),
        ("average", "weight", None, None),
    ],
)
def test_measures(do: str, name: str | None, value: Any, shown: Any) -> None:
    assert measure_to_json(do, FIELDS[name] if name else None, value) == shown


@pytest.mark.parametrize(
    "value", [None, "a", 7, 0.1, Decimal("0.10"), date(2026, 11, 2), MOMENT, KEY]
)
def test_exact_values_are_json(value: Any) -> None:
    assert type(exact(value)) in (type(None), str, int, float)
