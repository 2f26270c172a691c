"""Answers as people read them: a table, with bars if its numbers can be compared.

No text is markup, and hidden characters are made visible.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from itertools import islice, pairwise
from typing import Any, Final

from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.interface.rules import visible
from mcp_app.protocol.json_types import JsonObject
from mcp_app.site_time import DAY, local_time

FIRST_ROWS: Final = 10
"""Rows that are shown at once; further ones are folded."""
MAX_ROWS: Final = 200
MAX_COLUMNS: Final = 12
MAX_LETTERS: Final = 120
LISTED: Final = 2
"""How many rows of a nested list a cell shows, each in a line."""
MAX_DEPTH: Final = 4
WIDTH: Final = 640
HEIGHT: Final = 120
KEYS: Final = ("pk", "id", "key")
"""Columns of this name, or with this ending, get no bars."""
NOTHING: Final = "\N{EN DASH}"
_FRACTION: Final = re.compile(r"-?[0-9]{1,30}\.[0-9]{1,20}")
_DATE: Final = re.compile(r"^([0-9]{4}-[0-9]{2}-[0-9]{2})(?:T.*)?$")
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:.*")
_WORDINGS: Final = {"month": "M Y", "quarter": "M Y", "year": "Y"}
"""Formats of the first day of a period, by the last word of the column's name."""
_FIRST_OF_MONTH: Final = re.compile(r"[0-9]{4}-[0-9]{2}-01")


@dataclass(frozen=True, slots=True, repr=False)
class Column:
    """A column of a table; `has_bar` says that a column of bars follows.

    `wording` is Django's format for dates that are the first of a month, or "".
    """

    name: str
    is_number: bool = False
    has_bar: bool = False
    wording: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Cell:
    """A value as short text, and the length of its bar: a percentage as text.

    `below` shows a nested object or list in one or more lines.
    """

    column: Column
    text: str
    bar: str = ""
    below: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Plot:
    """A chart of vertical bars, 640 by 120; its labels are texts beside the drawing.

    `bars` are pairs of a CSS class and the data of an SVG path. `values` label the
    axis from the top. `has_all` says that each bar has a label, not only some.
    """

    title: str
    bars: Sequence[tuple[str, str]]
    values: Sequence[str]
    labels: Sequence[str]
    has_all: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ResultTable:
    """What a page shows of an answer; `count` is the number of all rows.

    `facts` are the members beside the list, or the members of a single object. In the
    second case `has_rows` is false. `plotted` names the column that `plot` draws.
    """

    columns: Sequence[Column] = ()
    rows: Sequence[Sequence[Cell]] = ()
    more_rows: Sequence[Sequence[Cell]] = ()
    count: int = 0
    more_columns: int = 0
    facts: Sequence[Cell] = ()
    has_rows: bool = True
    plot: Plot | None = None
    plotted: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether rows are missing in `rows` and `more_rows`."""
        return self.count > len(self.rows) + len(self.more_rows)


def result_table(value: object, first: int = FIRST_ROWS) -> ResultTable | None:
    """Return the table of an answer; the page shows its `first` rows unfolded.

    The rows are the first list of objects in the answer. Without a list, the table has
    the members of the object. None if these are fewer than two: then the page shows the
    text of the answer.
    """
    objects, beside = _find_objects(value)
    facts = [
        _cell(Column(visible(name)), each)
        for name, each in beside.items()
        if each is not None
    ]
    if objects is None:
        return ResultTable(facts=facts, has_rows=False) if len(facts) > 1 else None
    names = [*dict.fromkeys(name for each in objects[:MAX_ROWS] for name in each)]
    shown = names[:MAX_COLUMNS]
    values = [[each.get(name) for name in shown] for each in objects[:MAX_ROWS]]
    columns = [
        Column(
            visible(name),
            _are_numbers([row[at] for row in values]),
            wording=_WORDINGS.get(name.rpartition("_")[2], ""),
        )
        for at, name in enumerate(shown)
    ]
    plot, plotted, bars = None, "", [0.0] * len(values)
    if (places := _compared_places(columns, values)) is not None:
        label, number = places
        plotted = columns[number].name
        bars = [float(_number_of(row[number]) or 0) for row in values]
        title = f"{plotted}, {columns[label].name}"
        plot = _plot_of_dates([row[label] for row in values], bars, title)
        columns[number] = replace(columns[number], has_bar=plot is None)
        days = (str(row[label]) for row in values)
        if plot is not None and all(map(_FIRST_OF_MONTH.fullmatch, days)):
            # The chart shows months, so the table does, too.
            wording = columns[label].wording or _WORDINGS["month"]
            columns[label] = replace(columns[label], wording=wording)
    top = max(bars, default=0) or 1
    rows = [
        [
            _cell(column, each, f"{100 * bar / top:.1f}")
            for column, each in zip(columns, row, strict=True)
        ]
        for row, bar in zip(values, bars, strict=True)
    ]
    return ResultTable(
        columns=columns,
        rows=rows[:first],
        more_rows=rows[first:],
        count=len(objects),
        more_columns=len(names) - len(shown),
        facts=facts,
        plot=plot,
        plotted=plotted,
    )


# -- values ----------------------------------------------------------------------------


def _find_objects(value: object, depth: int = 0) -> tuple[Any, JsonObject]:
    """Return the first list of objects, or None, and the members beside it.

    An empty list counts only if it is the first member.
    """
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return value, {}
    members = value if isinstance(value, dict) and depth < MAX_DEPTH else {}
    # Prefer the nearest list: look at lists before objects.
    for name in sorted(members, key=lambda name: not isinstance(members[name], list)):
        objects, beside = _find_objects(members[name], depth + 1)
        if objects or (objects is not None and name == next(iter(members))):
            others = {member: members[member] for member in members if member != name}
            return objects, {**others, **beside}
    return None, members


def _number_of(value: object) -> Decimal | None:
    """Return the value of a number or of a text with a decimal number, else None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_decimal = isinstance(value, str) and _FRACTION.fullmatch(value)
    return Decimal(str(value)) if is_number or is_decimal else None


def _are_numbers(values: Sequence[object]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(_number_of(each) is not None for each in present)


def _cell(column: Column, value: object, bar: str = "") -> Cell:
    if column.wording and _FIRST_OF_MONTH.fullmatch(str(value)):
        return Cell(column, _time_text(str(value), column.wording), bar)
    text = visible(_short_text(value), None)
    lines = text.splitlines() if isinstance(value, dict | list) else [text]
    cut = (
        each if len(each) <= MAX_LETTERS else f"{each[: MAX_LETTERS - 1]}…"
        for each in lines
    )
    if not isinstance(value, dict | list):
        return Cell(column, "\n".join(cut), bar)
    # An empty text has no lines.
    return Cell(column, next(cut, ""), bar, "\n".join(cut))


def _time_text(text: str, wording: str = f"{DAY}, H:i") -> str:
    """Return a time as people read it; return any other text unchanged."""
    try:
        return date_format(local_time(datetime.fromisoformat(text)), wording)
    except (ValueError, OverflowError):
        return text


def _short_text(value: Any, depth: int = 0) -> str:
    """Return a value in few words."""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, float | str) and (number := _number_of(value)) is not None:
        return number_format(number, force_grouping=True)
    if value in (None, {}, []):
        return NOTHING
    if isinstance(value, dict | list):
        return _nested_text(value, depth)
    text = str(value)
    text = _time_text(text) if _TIME.fullmatch(text) else text
    return " ".join(text.split()) if depth else text


def _nested_text(value: Any, depth: int) -> str:
    """Return an object or a list in few words; show the first rows of a list."""
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, list):
        # Further items would be cut anyway: each has a letter or more.
        texts = (_short_text(each, depth + 1) for each in value[:MAX_LETTERS])
        # An object with a `text` is shown as this text, so it is no row.
        if not any(isinstance(each, dict) and "text" not in each for each in value):
            return ", ".join(texts)
        count = ngettext("%d row", "%d rows", len(value)) % len(value)
        return count if depth else "\n".join([f"{count}:", *islice(texts, LISTED)])
    if isinstance(value.get("text"), str):
        return " ".join(value["text"].split())
    rows, _beside = _find_objects(value)
    if rows is not None:
        return _short_text(rows, depth)
    named = {name: _short_text(each, depth + 1) for name, each in value.items()}
    # Deeper objects show only their values.
    return "; ".join(named.values() if depth > 1 else map(": ".join, named.items()))


# -- bars ------------------------------------------------------------------------------


def _compared_places(
    columns: Sequence[Column], values: Sequence[Sequence[object]]
) -> tuple[int, int] | None:
    """Return the indexes of the column of names or dates, and of the numbers for bars.

    None if two rows have the same name, or a number is negative. A column of fractions
    comes before a column of whole numbers.
    """
    labels = [at for at, each in enumerate(columns) if not each.is_number]
    numbers = [
        at
        for at, each in enumerate(columns)
        if each.is_number and re.split(r"[_.]", each.name)[-1] not in KEYS
    ]
    if len(labels) != 1 or not numbers or len(values) == 1:
        return None
    named = [row[labels[0]] for row in values]
    texts = {_short_text(each) for each in named if not isinstance(each, bool | list)}
    if len(texts) < len(values):
        return None
    whole = [all(isinstance(row[at], int) for row in values) for at in numbers]
    number = numbers[whole.index(False) if False in whole else 0]
    smallest = min(_number_of(row[number]) or 0 for row in values)
    return None if smallest < 0 else (labels[0], number)


def _plot_of_dates(
    labels: Sequence[object], values: Sequence[float], title: str
) -> Plot | None:
    """Return the chart of values by date, with places for the dates in between.

    None if a label is no date, if two are equal, or with too many places.
    """
    try:
        days = [date.fromisoformat(_DATE.findall(str(label))[0]) for label in labels]
    except (LookupError, ValueError):
        return None
    if len(set(days)) < len(days):
        return None
    # Numbers of months or of days: neighbours differ by 1.
    by_month = all(day.day == 1 for day in days)
    ordinals = [
        12 * day.year + day.month - 1 if by_month else day.toordinal() for day in days
    ]
    step = math.gcd(*(last - first for first, last in pairwise(sorted(ordinals))))
    places = range(min(ordinals), max(ordinals) + 1, step)
    if len(places) > MAX_ROWS:
        return None
    value_at = dict(zip(ordinals, values, strict=True))
    columns = [[value_at.get(ordinal, 0)] for ordinal in places]
    if not by_month:
        shown = [date_format(date.fromordinal(ordinal), "j M") for ordinal in places]
        return bar_plot(columns, shown, title)
    is_one_year = days[0].year == min(days).year == max(days).year
    wording = "M" if is_one_year else "M Y" if step % 12 else "Y"
    months = (date(ordinal // 12, ordinal % 12 + 1, 1) for ordinal in places)
    return bar_plot(columns, [date_format(month, wording) for month in months], title)


def bar_plot(
    columns: Sequence[Sequence[float]],
    labels: Sequence[str],
    title: str,
    looks: Sequence[str] = ("ok",),
) -> Plot:
    """Return a chart with a bar for each column; its values are stacked.

    `labels` name the columns. `looks` are the CSS classes of the values, from below.
    `title` describes the chart to people who cannot see it.
    """
    top = _round_up(columns)
    step = WIDTH / max(1, len(columns))
    drawn: dict[str, str] = dict.fromkeys(looks, "")
    for at, column in enumerate(columns):
        y: float = HEIGHT
        for value, look in zip(column, looks, strict=True):
            # Make the smallest value visible.
            tall = max(HEIGHT * value / top, 2) if value else 0
            y -= tall
            if tall:
                # A bar takes 76 % of its place, with 12 % free on each side.
                start = f"M{(at + 0.12) * step:.1f} {y:.1f}"
                drawn[look] += (
                    f"{start}h{0.76 * step:.1f}v{tall:.1f}h-{0.76 * step:.1f}z"
                )
    values = [_short_number(each) for each in (top, top / 2, 0)]
    chosen = _spread_evenly(labels)
    return Plot(title, [*drawn.items()], values, chosen, len(chosen) == len(labels))


def _round_up(columns: Sequence[Sequence[float]]) -> float:
    """Return the axis's end: the largest sum, rounded up so that its half is short."""
    largest = max(map(sum, columns), default=0)
    # The half of the smallest floats is 0.
    largest = largest if largest > sys.float_info.min else 2
    is_whole = all(float(each).is_integer() for column in columns for each in column)
    unit = 2 * 10.0 ** (math.floor(math.log10(largest)) - 1)
    unit = max(unit, 2) if is_whole else unit
    return math.ceil(largest / unit) * unit


def _short_number(value: float) -> str:
    for bound, size, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value >= bound:
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}"


def _spread_evenly(labels: Sequence[str]) -> Sequence[str]:
    """Return all labels, or as many as fit at equal distances: short ones fit more."""
    steps = len(labels) - 1
    room = 12 if max(map(len, labels), default=0) < len("00:00") else 9
    if steps < room:
        return labels
    fitting = (count for count in range(room - 1, 0, -1) if steps % count == 0)
    return labels[:: steps // next(fitting)]
