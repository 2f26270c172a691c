"""Counts calls and how long they took."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar

from django.db import Error as DatabaseError
from django.db import transaction

from mcp_app.models.calls import BOUNDS_MS, HOUR_S, MINUTE_S
from mcp_app.models.transactions import is_conflict
from mcp_app.pools.connections import may_be_refused

Subject: TypeAlias = tuple[str, str, str, str]
"""The key of one set of counters: server, kind, name and outcome."""
Row: TypeAlias = tuple[str | int, ...]
"""The values of `CallStatistic.KEYS` and `CallStatistic.COUNTERS`."""

_BOUNDS_US: Final = [bound * 1_000 for bound in BOUNDS_MS]


class Tally:
    """Calls with one subject that began in the same minute."""

    __slots__ = ("buckets", "calls", "dropped", "most_us", "total_us")

    def __init__(self) -> None:
        self.calls = self.dropped = self.total_us = self.most_us = 0
        self.buckets = [0] * (len(_BOUNDS_US) + 1)

    def add_calls(self, times_us: list[int], dropped: int = 0) -> None:
        """Count calls with these durations; sorts the list."""
        times_us.sort()
        self.calls += len(times_us)
        self.dropped += dropped
        self.total_us += sum(times_us)
        self.most_us = max(self.most_us, times_us[-1])
        ends = [bisect_right(times_us, bound) for bound in _BOUNDS_US]
        for index, (begin, end) in enumerate(pairwise([0, *ends, len(times_us)])):
            self.buckets[index] += end - begin

    def merge_tally(self, other: Tally) -> None:
        self.calls += other.calls
        self.dropped += other.dropped
        self.total_us += other.total_us
        self.most_us = max(self.most_us, other.most_us)
        self.buckets = [a + b for a, b in zip(self.buckets, other.buckets, strict=True)]

    def counter_values(self) -> Row:
        return (self.calls, self.dropped, self.total_us, self.most_us, *self.buckets)


class Tallies:
    """Counts by minute; times are milliseconds."""

    def __init__(self) -> None:
        self._minutes: dict[tuple[int, Subject], Tally] = {}

    def __bool__(self) -> bool:
        return bool(self._minutes)

    def add_calls(
        self, minute_ms: int, subject: Subject, times_us: list[int], dropped: int = 0
    ) -> None:
        """Count calls that began in the minute that starts at `minute_ms`."""
        self._tally_of_subject(minute_ms, subject).add_calls(times_us, dropped)

    def count_dropped(self, minute_ms: int, subject: Subject) -> None:
        """Count a call as dropped that was counted already."""
        self._tally_of_subject(minute_ms, subject).dropped += 1

    def merge_tallies(self, other: Tallies) -> None:
        for (minute_ms, subject), tally in other._minutes.items():
            self._tally_of_subject(minute_ms, subject).merge_tally(tally)

    def sorted_rows(self) -> list[Row]:
        """Return a row for each minute and hour, in an order that avoids deadlocks."""
        hours: dict[tuple[int, Subject], Tally] = {}
        for (minute_ms, subject), tally in self._minutes.items():
            hour_ms = period_start_ms(minute_ms, HOUR_S)
            hours.setdefault((hour_ms, subject), Tally()).merge_tally(tally)
        return sorted(
            (seconds, start_ms, *subject, *tally.counter_values())
            for seconds, tallies in ((MINUTE_S, self._minutes), (HOUR_S, hours))
            for (start_ms, subject), tally in tallies.items()
        )

    def _tally_of_subject(self, minute_ms: int, subject: Subject) -> Tally:
        return self._minutes.setdefault((minute_ms, subject), Tally())


def period_start_ms(time_ms: int, seconds: int) -> int:
    return time_ms - time_ms % (seconds * 1_000)


# -- refusals --------------------------------------------------------------------------
# Finds the rows of a batch that the database refuses, and stores the others.
#
# For example, a latin1 table cannot store some names of clients; MySQL and MariaDB
# report that like an outage.  A batch is stored in parts, with savepoints, if it failed
# twice, or once with an error that is no outage.  The parts are halved until each
# refused row is alone; its call is counted as dropped.  Temporary problems (a lock, a
# full disk) are retried instead (`pools.connections`).

Thing = TypeVar("Thing")


def stored_apart(
    using: str, store: Callable[[Sequence[Thing]], object], things: Sequence[Thing]
) -> list[tuple[Thing, DatabaseError]]:
    """Store things, in halves if needed; return the refused ones with the errors."""
    if not things:
        return []
    try:
        with transaction.atomic(using=using):
            store(things)
    except DatabaseError as error:
        # The return to the savepoint has shown that the database still answers.
        must_roll_back = transaction.get_rollback(using)
        if must_roll_back or is_conflict(error) or not may_be_refused(error):
            raise
        if len(things) == 1:
            return [(things[0], error)]
    else:
        return []
    middle = len(things) // 2
    return [
        refused
        for half in (things[:middle], things[middle:])
        for refused in stored_apart(using, store, half)
    ]
