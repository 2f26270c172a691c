"""How many calls there were, how many failed, and how long they took.

Reads only counters, never call rows, of which there may be millions.
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
from django.utils.formats import number_format
from django.utils.timezone import now
from django.utils.translation import gettext as _

from mcp_app.admin.calls.filters import CallFilter, milliseconds, stored_time
from mcp_app.interface.call_record import FAILED
from mcp_app.models import CallStatistic
from mcp_app.models.calls import BOUNDS_MS, DURATIONS, HOUR_S, MINUTE_S

if TYPE_CHECKING:
    # Processes that serve clients load the admin, and never need this.
    from mcp_app.workbench.overview import Hour

BARS: Final = 32
"""The greatest number of bars; one more may be in progress."""
WIDTH: Final = 640
HEIGHT: Final = 96
STEPS: Final = tuple(
    minutes * MINUTE_S * 1_000
    for minutes in (5, 60, 120, 360, 720, 1440, 2880, 10080, 20160, 43200)
)
"""Lengths of time that a bar may stand for, in milliseconds: 5 minutes to 30 days."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the chart, with its position in pixels."""

    start: datetime
    calls: int
    failed: int
    x: int
    width: int
    top: int
    height: int
    failed_top: int
    failed_height: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of the filtered calls.

    `calls` and `failed` ignore the filters by outcome and duration; `matching` counts
    what they leave. Of 100 of these, 50 took at most `half` milliseconds and 95 at most
    `most`, which are None if there are none.
    """

    calls: int
    failed: int
    matching: int
    dropped: int
    half: int | None
    most: int | None
    bars: tuple[Bar, ...]
    servers: tuple[str, ...]

    @property
    def failure_percent(self) -> float:
        return 100 * self.failed / self.calls if self.calls else 0.0


def call_figures(call_filter: CallFilter) -> Figures:
    """Return what the counters say about the filtered calls; one query."""
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
    calls, failed = Counter[int](), Counter[int]()
    for row in rows:
        calls[row["since"]] += row["sum_calls"]
        if row["outcome"] in FAILED:
            failed[row["since"]] += row["sum_calls"]
    wanted = call_filter.wanted_outcomes
    matching = [row for row in rows if not wanted or row["outcome"] in wanted]
    buckets = [
        sum(row[f"sum_{name}"] for row in matching if bound > call_filter.slower_ms)
        for name, bound in zip(DURATIONS, [*BOUNDS_MS, inf], strict=True)
    ]
    longest = max((row["top"] for row in matching), default=0)
    times = range(0, max(step, end_ms - call_filter.start_ms), step)
    return Figures(
        calls=calls.total(),
        failed=failed.total(),
        matching=sum(buckets),
        dropped=sum(row["sum_dropped"] for row in matching),
        half=percentile_bound(buckets, 50, longest),
        most=percentile_bound(buckets, 95, longest),
        bars=tuple(_chart_bars(call_filter.start_ms, times, calls, failed)),
        servers=servers,
    )


def most_failing(call_filter: CallFilter) -> Mapping[str, Any] | None:
    """Return kind, name and outcome of what failed most, and how often; one query."""
    rows = _counter_rows(call_filter).filter(outcome__in=FAILED)
    if call_filter.server:
        rows = rows.filter(server=call_filter.server)
    failures = rows.values("kind", "name", "outcome").annotate(sum=Sum("calls"))
    return failures.order_by("-sum", "name").first()


def names_with(call_filter: CallFilter, text: str, most: int) -> tuple[str, ...]:
    """Return at most `most` names of called definitions that contain a text."""
    # The column compares exactly: on some databases `icontains` would respect case.
    lowered = _counter_rows(call_filter).annotate(lowered=Lower("name"))
    rows = lowered.filter(lowered__contains=text.lower())
    names = rows.order_by("name").values_list("name", flat=True).distinct()
    return tuple(names[:most])


def hourly_bars(since_ms: int, hours: Iterable[Hour]) -> tuple[Bar, ...]:
    """Return a bar for each hour of the day that begins then, and for this one."""
    calls, failed = Counter[int](), Counter[int]()
    for each in hours:
        calls[each.start_ms - since_ms] = each.calls
        failed[each.start_ms - since_ms] = each.failed
    hour_ms = HOUR_S * 1_000
    return tuple(_chart_bars(since_ms, range(0, 25 * hour_ms, hour_ms), calls, failed))


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
    """Return the length of a bar: a round time, or else what gives few enough bars."""
    fitting = (step for step in STEPS if length_ms / step <= BARS)
    return next(fitting, length_ms // BARS + 1)


def percentile_bound(
    buckets: Sequence[int], percent: int, longest_us: int
) -> int | None:
    """Return within how many milliseconds `percent` ended; None if there are none."""
    total, so_far = sum(buckets), 0
    longest = -(-longest_us // 1_000)
    for count, bound in zip(buckets, [*BOUNDS_MS, longest], strict=True):
        so_far += count
        if total and so_far * 100 >= total * percent:
            return max(1, min(bound, longest))
    return None


def _chart_bars(
    start_ms: int, times: range, calls: Counter[int], failed: Counter[int]
) -> Iterable[Bar]:
    most = max(calls.values(), default=0) or 1
    width = WIDTH // len(times)
    for place, since in enumerate(times):
        # Round up: even one failed call must be visible.
        height = -(-calls[since] * HEIGHT // most)
        failing = -(-failed[since] * HEIGHT // most)
        yield Bar(
            start=stored_time(start_ms + since),
            calls=calls[since],
            failed=failed[since],
            x=place * width,
            width=max(1, width - 2),
            top=HEIGHT - height,
            height=height,
            failed_top=HEIGHT - failing,
            failed_height=failing,
        )


def failure_sentence(call_filter: CallFilter, totals: Figures, most: str) -> str:
    """Say how many calls failed; `most` names what failed most."""
    values = {
        "failed": grouped_digits(totals.failed),
        "calls": grouped_digits(totals.calls),
        "percent": format_percent(totals.failure_percent),
        "most": most,
    }
    if not totals.calls:
        return ""
    if not totals.failed:
        return _("None of %(calls)s failed.") % values
    if most:
        text = _("%(failed)s of %(calls)s failed (%(percent)s), most often: %(most)s.")
        return text % values
    return _("%(failed)s of %(calls)s failed (%(percent)s).") % values


def grouped_digits(number: int) -> str:
    """Format a number with the language's thousands separators."""
    return number_format(number, force_grouping=True)


def format_percent(percent: float) -> str:
    """Format a percentage; show at least 0.1 for one that is not 0."""
    number = number_format(round(max(percent, 0.1) if percent else 0.0, 1), 1)
    return _("%(number)s %%") % {"number": number}
