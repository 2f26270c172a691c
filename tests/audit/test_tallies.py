"""Counting, and adding up what was counted."""

from __future__ import annotations

from typing import Final

from mcp_app.audit.tallies import Subject, Tallies, Tally
from mcp_app.models import CallStatistic
from mcp_app.models.calls import BOUNDS_MS

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
