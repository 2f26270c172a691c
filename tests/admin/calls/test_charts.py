"""Figures of calls, at the boundaries of counters, bars and percents."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils.translation import override

from mcp_app.admin.calls import charts
from mcp_app.admin.calls.charts import BARS, STEPS, Figures, format_percent
from mcp_app.admin.calls.filters import DAY, CallFilter, stored_time
from mcp_app.models import CallStatistic
from mcp_app.models.calls import BOUNDS_MS, HOUR_S

HOUR_MS = HOUR_S * 1_000
START_MS = 480_000 * HOUR_MS
ASKED = CallFilter(DAY, stored_time(START_MS), stored_time(START_MS + 24 * HOUR_MS))


def buckets(*counts: tuple[int, int]) -> list[int]:
    """Return how many calls took so many milliseconds at most."""
    found = dict(counts)
    return [found.pop(bound, 0) for bound in (*BOUNDS_MS, 10**9)]


@pytest.mark.parametrize(
    ("counts", "percent", "longest_us", "bound"),
    [
        ([], 50, 0, None),
        ([(1, 1)], 50, 10, 1),
        ([(5, 50), (10, 50)], 50, 9_000, 5),
        ([(5, 49), (10, 51)], 50, 9_000, 9),
        ([(5, 95), (10, 5)], 95, 9_000, 5),
        ([(5, 94), (10, 6)], 95, 10_000, 10),
        # No call took longer than the longest.
        ([(10_000, 1)], 95, 6_000_001, 6_001),
        ([(10**9, 1)], 50, 30_000_000, 30_000),
        ([(1, 1), (10**9, 1)], 50, 30_000_000, 1),
    ],
)
def test_in_how_many_milliseconds(
    counts: Any, percent: int, longest_us: int, bound: int | None
) -> None:
    assert charts.percentile_bound(buckets(*counts), percent, longest_us) == bound


@pytest.mark.parametrize("step", STEPS)
def test_a_bar_stands_for_a_round_time(step: int) -> None:
    assert charts._bar_length(step * BARS) == step
    assert charts._bar_length(step * BARS + 1) > step


def test_a_time_beyond_all_round_ones_has_few_bars() -> None:
    length = STEPS[-1] * BARS * 10
    assert length / charts._bar_length(length) <= BARS


@pytest.mark.parametrize(
    ("percent", "text"),
    [(0.0, "0.0 %"), (0.001, "0.1 %"), (0.14, "0.1 %"), (12.34, "12.3 %")],
)
def test_what_is_not_nothing_is_not_0(percent: float, text: str) -> None:
    with override("en"):
        assert format_percent(percent).replace("\xa0", " ") == text


# -- counters ------------------------------------------------------------------------


def count(hour: int, outcome: str = "answered", calls: int = 1, **columns: Any) -> None:
    usual = {"seconds": HOUR_S, "server": "default", "kind": "tool", "name": "add"}
    counted = {"calls": calls, "to_5": calls, "most_us": 4_000, "outcome": outcome}
    start_ms = START_MS + hour * HOUR_MS
    values: dict[str, Any] = {**usual, **counted, **columns}
    CallStatistic.objects.create(start_ms=start_ms, **values)


@pytest.mark.django_db
def test_only_the_time_that_is_asked_for() -> None:
    for hour in (-1, 0, 23, 24):
        count(hour)
    count(0, seconds=60)
    made = charts.call_figures(ASKED)
    assert (made.calls, made.failed, made.matching) == (2, 0, 2)
    assert (made.p50_ms, made.p95_ms) == (4, 4)


@pytest.mark.django_db
def test_bars_show_each_hour_and_how_its_calls_ended() -> None:
    count(0, calls=1_000)
    count(23, "crashed", calls=1)
    count(23, "arguments", calls=2)
    chart = charts.call_figures(ASKED).chart
    numbers = [(bar.answered, bar.refused, bar.failed) for bar in chart["bars"]]
    assert numbers == [(1_000, 0, 0), *[(0, 0, 0)] * 22, (0, 2, 1)]
    assert chart["bars"][-1].start == stored_time(START_MS + 23 * HOUR_MS)
    # Even one of a thousand is drawn, and the axis says how many the whole is.
    assert all(path for _look, path in chart["plot"].bars)
    assert chart["plot"].values == ["1000", "500", "0"]


@pytest.mark.django_db
def test_of_all_calls_some_are_asked_for() -> None:
    count(0, calls=10)
    count(0, "crashed", calls=3, server="shop", to_5=0, to_200=3, most_us=150_000)
    count(0, "answered", calls=5, server="shop", name="find")

    def figures(**asked: Any) -> Figures:
        return charts.call_figures(CallFilter(DAY, ASKED.start, ASKED.end, **asked))

    failed = figures(outcome="any_failure")
    assert (failed.calls, failed.failed, failed.matching) == (18, 3, 3)
    assert (failed.servers, failed.p50_ms) == (("default", "shop"), 150)
    shop = figures(server="shop")
    assert (shop.calls, shop.servers) == (8, ("default", "shop"))
    slow = figures(slower="100")
    assert (slow.calls, slow.matching) == (18, 3)


@pytest.mark.django_db
def test_names_are_found_whatever_the_case_of_their_letters() -> None:
    for name in ("Refund", "refund_all", "find", "100%"):
        count(0, name=name)
        count(1, name=name)
    assert charts.names_with(ASKED, "FUND", 9) == ("Refund", "refund_all")
    assert charts.names_with(ASKED, "f", 1) == ("Refund",)
    # It is no pattern.
    assert charts.names_with(ASKED, "%", 9) == ("100%",)
