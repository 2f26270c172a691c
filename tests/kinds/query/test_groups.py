from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from mcp_app.kinds.query.groups import read_groups
from mcp_app.kinds.query.scoping import Scopes
from tests.kinds.query import shop

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

COUNT = {"aggregate": "count", "name": "orders"}


def test_one_line_without_anything_to_group_by() -> None:
    measured = ["sum total", "avg total", "min created", "max due"]
    measures = [COUNT]
    for each in measured:
        aggregate, path = each.split()
        measures.append(
            {"aggregate": aggregate, "path": path, "name": f"{aggregate}_{path}"}
        )
    config = {"measures": measures}
    nothing = {each.replace(" ", "_"): None for each in measured}
    assert shop.groups(config) == [{"orders": 0, **nothing}]
    shop.order("a", total=1, due="2026-11-01")
    shop.order("b", total="1.25", due="2026-11-02", created=shop.moment(1))
    assert shop.groups(config) == [
        {
            "orders": 2,
            "sum_total": "2.25",
            "avg_total": "1.125000",
            "min_created": "2026-11-24T12:00:00+00:00",
            "max_due": "2026-11-02",
        }
    ]


@pytest.mark.parametrize(
    ("unit", "days"),
    [
        ("day", ["2026-06-29", "2026-07-01", "2026-12-31"]),
        ("week", ["2026-06-29", "2026-12-28"]),
        ("month", ["2026-06-01", "2026-07-01", "2026-12-01"]),
        ("quarter", ["2026-04-01", "2026-07-01", "2026-10-01"]),
        ("year", ["2026-01-01"]),
    ],
)
def test_dates_by_the_zone_of_the_site(unit: str, days: list[str]) -> None:
    """The last moment of a month is the first of the next one further east.

    Times of one day are one group.
    """
    moments = [
        *("2026-06-29T10:00Z", "2026-06-29T11:30Z"),
        *("2026-06-30T22:30Z", "2026-12-30T23:15Z"),
    ]
    for number, moment in enumerate(moments):
        shop.order(str(number), created=datetime.fromisoformat(moment))
    by = [{"path": "created", "unit": unit}]
    with override_settings(TIME_ZONE="Europe/Berlin"):
        if not connection.features.has_zoneinfo_database:
            [problem] = shop.problems(
                {"answer": "groups", "group_by": by, "measures": [COUNT]}
            )
            assert "does not know the zone Europe/Berlin" in problem
            return
        lines = shop.groups({"group_by": by, "measures": [COUNT]})
    assert [line[f"created_{unit}"] for line in lines] == days
    assert sum(line["orders"] for line in lines) == 4


def test_dates_come_first_and_in_their_order() -> None:
    for number, due, state in (
        ("a", "2026-11-02", "sent"),
        ("b", "2026-10-02", "sent"),
        ("c", "2026-10-02", "open"),
        ("d", None, "open"),
    ):
        shop.order(number, due=due, state=state)
    config = {
        "group_by": ["state", {"path": "due", "unit": "month"}],
        "measures": [COUNT],
    }
    assert [(each["due_month"], each["state"]) for each in shop.groups(config)] == [
        ("2026-10-01", "open"),
        ("2026-10-01", "sent"),
        ("2026-11-01", "sent"),
        (None, "open"),
    ]


TOTAL = {"aggregate": "sum", "path": "total", "name": "total"}


@pytest.mark.parametrize(
    ("config", "numbers"),
    [
        ({"measures": [COUNT]}, "b a c"),
        # The first sum decides, wherever it is.
        ({"measures": [COUNT, TOTAL]}, "c b a"),
        ({"measures": [COUNT, TOTAL], "order": ["-orders", "total"]}, "b a c"),
        ({"measures": [COUNT, TOTAL], "order": ["note"]}, "a b c"),
        ({"measures": [TOTAL], "order": ["-note"], "limit": 2}, "c b"),
    ],
)
def test_groups_are_sorted_and_limited(config: Any, numbers: str) -> None:
    for at, (note, total) in enumerate((("a", 1), ("b", 2), ("b", 3), ("c", 9))):
        shop.order(str(at), note=note, total=total)
    scopes = Scopes(shop.request(), "default")
    query = shop.query({"answer": "groups", "group_by": ["note"], **config})
    lines, more = read_groups(query, scopes, {}, shop.TODAY)
    assert [each["note"] for each in lines] == numbers.split()
    assert more is ("limit" in config)
