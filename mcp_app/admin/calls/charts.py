"""Numbers of calls, of refused and of failed ones, and how long the calls took.

Reads only counters, never the rows of calls: there may be millions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, Max, QuerySet, Sum
from django.db.models.functions import Lower
from django.utils.formats import date_format, number_format
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.calls.filters import (
    ANY_FAILURE,
    ANY_REFUSAL,
    CLASSES,
    CallFilter,
    milliseconds,
    stored_time,
)
from mcp_app.admin.page.result import bar_plot
from mcp_app.interface.definitions import Label
from mcp_app.models import CallStatistic
from mcp_app.models.calls import BOUNDS_MS, DURATIONS, HOUR_S, MINUTE_S
from mcp_app.site_time import local_time

if TYPE_CHECKING:
    # Import here: processes that serve clients load the admin, but no `workbench`.
    from mcp_app.workbench.overview import Hour

BARS: Final = 32
"""The greatest number of complete bars; one more may be in progress."""
LOOKS: Final = {"": "ok", ANY_REFUSAL: "refused", ANY_FAILURE: "err"}
"""The classes of outcomes in a bar, from below, with their CSS classes."""
TITLES: Final[Mapping[int, Label]] = {
    HOUR_S * 1_000: gettext_lazy("Calls each hour"),
    24 * HOUR_S * 1_000: gettext_lazy("Calls each day"),
}
STEPS: Final = tuple(
    minutes * MINUTE_S * 1_000
    for minutes in (5, 60, 120, 360, 720, 1440, 2880, 10080, 20160, 43200)
)
"""Lengths of time that a bar may stand for, in milliseconds: 5 minutes to 30 days."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Numbers of the calls that began in one bar's time, by how they ended."""

    start: datetime
    answered: int
    refused: int
    failed: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of the filtered calls.

    `calls`, `refused` and `failed` ignore the filters by outcome and duration;
    `matching` counts the calls that pass all filters. `p50_ms` and `p95_ms` are the
    50th and 95th percentile of their duration, None if there are no such calls.
    """

    calls: int
    refused: int
    failed: int
    matching: int
    dropped: int
    p50_ms: int | None
    p95_ms: int | None
    chart: dict[str, Any]
    servers: tuple[str, ...]


def call_figures(call_filter: CallFilter) -> Figures:
    """Return the figures of the filtered calls from the counters; one query."""
    end_ms = call_filter.end_ms or milliseconds(now())
    step = _bar_length(end_ms - call_filter.start_ms)
    since = F("start_ms") - call_filter.start_ms
    sums = {f"sum_{name}": Sum(name) for name in ("calls", "dropped", *DURATIONS)}
    rows: list[Any] = list(
        _counter_rows(call_filter)
        .annotate(since=since - since % step)
        .values("since", "server", "outcome")
        .annotate(**sums, top=Max("most_us"))
    )
    servers = tuple(sorted({row["server"] for row in rows}))
    if call_filter.server:
        rows = [row for row in rows if row["server"] == call_filter.server]
    counts = Counter[tuple[int, str]]()
    for row in rows:
        classes = (name for name, each in CLASSES.items() if row["outcome"] in each)
        counts[row["since"], next(classes, "")] += row["sum_calls"]
    wanted = call_filter.wanted_outcomes
    matching = [row for row in rows if not wanted or row["outcome"] in wanted]
    buckets = [
        sum(row[f"sum_{name}"] for row in matching if bound > call_filter.slower_ms)
        for name, bound in zip(DURATIONS, [*BOUNDS_MS, inf], strict=True)
    ]
    longest = max((row["top"] for row in matching), default=0)
    times = range(0, max(step, end_ms - call_filter.start_ms), step)
    chart = _chart(call_filter.start_ms, times, counts)
    return Figures(
        calls=counts.total(),
        refused=sum(bar.refused for bar in chart["bars"]),
        failed=sum(bar.failed for bar in chart["bars"]),
        matching=sum(buckets),
        dropped=sum(row["sum_dropped"] for row in matching),
        p50_ms=percentile_bound(buckets, 50, longest),
        p95_ms=percentile_bound(buckets, 95, longest),
        chart=chart,
        servers=servers,
    )


def names_with(call_filter: CallFilter, text: str, max_names: int) -> tuple[str, ...]:
    """Return at most `max_names` names of called definitions that contain a text."""
    # The collation is exact: on some databases even `icontains` respects case.
    lowered = _counter_rows(call_filter).annotate(lowered=Lower("name"))
    rows = lowered.filter(lowered__contains=text.lower())
    names = rows.order_by("name").values_list("name", flat=True).distinct()
    return tuple(names[:max_names])


def hourly_chart(since_ms: int, hours: Iterable[Hour]) -> dict[str, Any]:
    """Return a bar for each hour from `since_ms` on: 24, and the current one."""
    counts = Counter[tuple[int, str]]()
    for hour in hours:
        answered = hour.calls - hour.refused - hour.failed
        numbers = (answered, hour.refused, hour.failed)
        for look, number in zip(LOOKS, numbers, strict=True):
            counts[hour.start_ms - since_ms, look] = number
    hour_ms = HOUR_S * 1_000
    return _chart(since_ms, range(0, 25 * hour_ms, hour_ms), counts)


def count_similar(kind: str, name: str, outcome: str, start_ms: int) -> int:
    """Return how many calls ended in the same way in the 24 hours from `start_ms`."""
    end_ms = start_ms + 24 * HOUR_S * 1_000
    rows = CallStatistic.objects.filter(
        seconds=HOUR_S, start_ms__gte=start_ms, start_ms__lt=end_ms
    ).filter(kind=kind, name=name, outcome=outcome)
    return int(rows.aggregate(sum=Sum("calls"))["sum"] or 0)


def _counter_rows(call_filter: CallFilter) -> QuerySet[CallStatistic]:
    rows = CallStatistic.objects.filter(
        seconds=call_filter.counter_seconds, start_ms__gte=call_filter.start_ms
    )
    if call_filter.end_ms is not None:
        rows = rows.filter(start_ms__lt=call_filter.end_ms)
    if call_filter.kind:
        rows = rows.filter(kind=call_filter.kind)
    return rows.filter(name=call_filter.name) if call_filter.name else rows


def _bar_length(length_ms: int) -> int:
    """Return the time of one bar: a round length, or one that gives `BARS` bars."""
    fitting = (step for step in STEPS if length_ms / step <= BARS)
    return next(fitting, length_ms // BARS + 1)


def percentile_bound(
    buckets: Sequence[int], percent: int, longest_us: int
) -> int | None:
    """Return a percentile in ms, rounded up to a bucket's bound; None without calls."""
    total, so_far = sum(buckets), 0
    longest = -(-longest_us // 1_000)
    for count, bound in zip(buckets, [*BOUNDS_MS, longest], strict=True):
        so_far += count
        if total and so_far * 100 >= total * percent:
            return max(1, min(bound, longest))
    return None


def _chart(
    start_ms: int, times: range, counts: Counter[tuple[int, str]]
) -> dict[str, Any]:
    """Return a bar for each of these times, in milliseconds after the start.

    The bars are numbers, and a drawing; the title names the time of one bar.
    """
    columns = [[counts[time, look] for look in LOOKS] for time in times]
    bars = [
        Bar(stored_time(start_ms + time), *column)
        for time, column in zip(times, columns, strict=True)
    ]
    wording = "H:i" if times.stop <= 25 * HOUR_S * 1_000 else "j M"
    labels = [date_format(local_time(bar.start), wording) for bar in bars]
    title = TITLES.get(times.step, _("Calls over time"))
    text = _("%(title)s; the table below says the same") % {"title": title}
    plot = bar_plot(columns, labels, text, [*LOOKS.values()])
    return {"title": title, "bars": bars, "plot": plot}


def grouped_digits(number: int) -> str:
    """Format a number with the language's thousands separators."""
    return number_format(number, force_grouping=True)


def format_percent(percent: float) -> str:
    """Format a percentage; show at least 0.1 if it is not 0."""
    number = number_format(round(max(percent, 0.1) if percent else 0.0, 1), 1)
    return _("%(number)s %%") % {"number": number}
