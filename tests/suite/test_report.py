"""What a run prints at its end."""

from __future__ import annotations

from tests.suite.report import sum_of


def test_the_sum() -> None:
    assert sum_of(1400.0, 900.0, 1580, 1.0) == (
        "1,400 of 1,580 processor seconds; 900 by the clock"
    )


def test_the_sum_without_a_bound() -> None:
    assert sum_of(7000.4, 4000.0, None, 1.0) == (
        "7,000 processor seconds; 4000 by the clock"
    )


def test_the_sum_where_most_rooms_took_longer_than_their_lines() -> None:
    assert sum_of(1800.0, 900.0, 1580, 1.2) == (
        "1,800 of 1,580 processor seconds (1,500 if divided by 1.20: so many times its"
        " line the median room took); 900 by the clock"
    )
