"""Counting, and adding up what was counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from django.db import DataError, IntegrityError, OperationalError, transaction

from mcp_app.audit.tallies import Subject, Tallies, Tally, stored_apart
from mcp_app.models import CallStatistic
from mcp_app.models.calls import BOUNDS_MS
from mcp_app.models.transactions import INNODB_DEADLOCK

pytestmark = pytest.mark.django_db

HOUR_MS: Final = 3_600_000
A: Final[Subject] = ("default", "tool", "a", "answered")
B: Final[Subject] = ("default", "tool", "b", "answered")


def test_each_time_is_in_one_bucket() -> None:
    tally = Tally()
    edges = [bound * 1_000 for bound in BOUNDS_MS]
    tally.add_calls([0, *edges, *(edge + 1 for edge in edges)])
    # Up to a millisecond there are 0 and the bound itself, and above all bounds one.
    assert tally.buckets == [2] + [2] * (len(edges) - 1) + [1]
    assert tally.calls == 2 * len(edges) + 1
    assert tally.most_us == edges[-1] + 1
    assert tally.total_us == 2 * sum(edges) + len(edges)


def test_what_is_added_later_counts_too() -> None:
    tally, other = Tally(), Tally()
    tally.add_calls([5_000, 1_000])
    tally.add_calls([3_000], dropped=1)
    other.add_calls([9_000, 100], dropped=2)
    tally.merge_tally(other)
    calls, dropped, total, most, *buckets = tally.counter_values()
    assert (calls, dropped, total, most) == (5, 3, 18_100, 9_000)
    assert buckets[:5] == [2, 0, 2, 1, 0]
    assert len(tally.counter_values()) == len(CallStatistic.COUNTERS)


def test_minutes_add_up_to_hours() -> None:
    tallies, more = Tallies(), Tallies()
    assert not tallies
    tallies.add_calls(HOUR_MS - 60_000, A, [1])
    tallies.add_calls(HOUR_MS, A, [1, 2])
    more.add_calls(HOUR_MS, A, [3])
    more.add_calls(HOUR_MS + 60_000, B, [4])
    tallies.merge_tallies(more)
    assert tallies
    rows = [(row[:3], row[6]) for row in tallies.sorted_rows()]
    assert rows == [
        ((60, HOUR_MS - 60_000, "default"), 1),
        ((60, HOUR_MS, "default"), 3),
        ((60, HOUR_MS + 60_000, "default"), 1),
        ((3_600, 0, "default"), 1),
        ((3_600, HOUR_MS, "default"), 3),
        ((3_600, HOUR_MS, "default"), 1),
    ]


def test_rows_have_one_order() -> None:
    forth, back = Tallies(), Tallies()
    for tallies, subjects in ((forth, [A, B]), (back, [B, A])):
        for subject in subjects:
            tallies.add_calls(0, subject, [1])
    assert forth.sorted_rows() == back.sorted_rows()


# -- refusals --------------------------------------------------------------------------


class Store:
    """Keeps numbers; refuses a portion that has one of `bad` in it."""

    def __init__(self, *bad: int, error: Exception | None = None) -> None:
        self.bad = set(bad)
        self.error = error or DataError("no number")
        self.rows: list[int] = []
        self.portions: list[Sequence[int]] = []

    def __call__(self, numbers: Sequence[int]) -> None:
        self.portions.append(numbers)
        if not self.bad.isdisjoint(numbers):
            raise self.error
        self.rows += numbers


def refused(store: Store, *numbers: int) -> list[int]:
    with transaction.atomic():
        found = stored_apart("default", store, numbers)
    assert all(error is store.error for _, error in found)
    return [number for number, _ in found]


@pytest.mark.parametrize("bad", [(), (0,), (7,), (3, 4), (0, 1, 6, 7), tuple(range(8))])
@pytest.mark.parametrize("count", [8, 7, 1])
def test_each_is_stored_or_named(bad: tuple[int, ...], count: int) -> None:
    store = Store(*bad)
    assert refused(store, *range(count)) == [each for each in bad if each < count]
    assert store.rows == [each for each in range(count) if each not in bad]


def test_what_fits_is_stored_at_once() -> None:
    store = Store()
    assert refused(store) == []
    assert store.portions == []
    assert refused(store, 1, 2, 3) == []
    assert len(store.portions) == 1


@pytest.mark.parametrize(
    "error",
    [
        # It gave way to others, others hold it up, it has no room: no fault of a row.
        OperationalError(INNODB_DEADLOCK, "Deadlock found"),
        OperationalError("database is locked"),
        OperationalError("database or disk is full"),
    ],
)
def test_what_is_no_refusal(error: Exception) -> None:
    store = Store(2, error=error)
    with pytest.raises(OperationalError) as raised:
        refused(store, 1, 2)
    assert raised.value is error
    assert len(store.portions) == 1


def test_where_the_way_back_is_lost_nothing_is_tried_again() -> None:
    def store(numbers: Sequence[int]) -> None:
        attempts.append(numbers)
        raise IntegrityError("no number")

    attempts: list[Sequence[int]] = []
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(IntegrityError, match="no number"):
            stored_apart("default", store, (1, 2))
    assert attempts == [(1, 2)]
