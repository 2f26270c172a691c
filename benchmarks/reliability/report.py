"""The table of what was found, for people."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.reliability.rates import (
    COUNTER,
    COUNTER_LONGER,
    PLAIN,
    UNHEARD,
    WATCHED,
    WATCHED_LONGER,
)
from benchmarks.reliability.rounds import Round
from benchmarks.reliability.stale_reads import TEST as STALE

DOCUMENT: Final = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
BEGIN: Final = "<!-- written by python -m benchmarks.reliability -->"
END: Final = "<!-- end of what is written -->"
LIMITS_S: Final = {"postgresql": 0.75, "postgresql-redis": 0.5, "mariadb": 0.75}
"""In which 99 of 100 announcements are to be there, with unslowed checks."""
HEADINGS: Final = (
    *("test", "on", "rounds", "answers", "wrong", "untold", "unanswered"),
    *("deadlocks", "kills", "resumes", "announced p50", "p99", "broken rounds", "kept"),
)
MODES: Final = (WATCHED, UNHEARD, PLAIN, COUNTER, WATCHED_LONGER, COUNTER_LONGER)
RATES: Final = (
    *("on", "rounds", *MODES, f"{WATCHED} / {PLAIN}"),
    *(f"{WATCHED} / {COUNTER}", "the same, 5 ms more", "deadlocks", "kept"),
)
SUMS: Final = (
    *("asked", "wrong", "untold", "unanswered"),
    *("deadlocks", "kills", "resumes"),
)
LEAST: Final = 0.9
LEAST_OF_COUNTER: Final = 3.0


def report(found: Iterable[tuple[str, Round]], load: float) -> str:
    """Return the tables, in Markdown."""
    groups: dict[tuple[str, str], list[Round]] = {}
    for kind, each in found:
        groups.setdefault((each.test, kind), []).append(each)
    counted = [_line(*key, own) for key, own in groups.items() if own[0].rates is None]
    rated = [_rates(key[1], own) for key, own in groups.items() if own[0].rates]
    parts = [machine(load), "", *table_of(HEADINGS, counted)]
    if rated:
        parts += ["", "Transactions a second, of eight writers:", ""]
        parts += table_of(RATES, rated)
    return "\n".join(parts)


def written(table: str, document: Path = DOCUMENT, begin: str = BEGIN) -> None:
    """Put the table between its marks in the document."""
    text = document.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(END)
    document.write_text(f"{before}{begin}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def share(sorted_values: Sequence[float], part: float) -> float:
    """Return the value that this part of all values does not pass."""
    return sorted_values[min(len(sorted_values) - 1, int(part * len(sorted_values)))]


def _line(test: str, kind: str, rounds: list[Round]) -> tuple[str, ...]:
    announced = sorted(each.announced for each in rounds if each.announced is not None)
    times = [
        f"{share(announced, part):.2f} s" if announced else "" for part in (0.5, 0.99)
    ]
    broken = sum(not each.kept for each in rounds)
    kept = not broken
    if test == STALE and kind in LIMITS_S and announced:
        kept = kept and share(announced, 0.99) <= LIMITS_S[kind]
    sums = [sum(getattr(each, name) for each in rounds) for name in SUMS]
    return (
        test,
        kind,
        str(len(rounds)),
        *map(str, sums),
        *times,
        str(broken),
        _yes(kept),
    )


def _rates(kind: str, rounds: list[Round]) -> tuple[str, ...]:
    medians = {
        mode: median(each.rates[mode] for each in rounds if each.rates)
        for mode in MODES
    }
    to_plain = medians[WATCHED] / medians[PLAIN]
    to_counter = medians[WATCHED] / medians[COUNTER]
    longer = medians[WATCHED_LONGER] / medians[COUNTER_LONGER]
    deadlocks = sum(each.deadlocks for each in rounds)
    kept = to_plain >= LEAST and longer >= LEAST_OF_COUNTER and not deadlocks
    return (
        *(kind, str(len(rounds)), *(f"{each:.0f}" for each in medians.values())),
        *(f"{to_plain:.2f}", f"{to_counter:.1f}", f"{longer:.1f}"),
        *(str(deadlocks), _yes(kept)),
    )


def _yes(kept: bool) -> str:
    return "yes" if kept else "NO"


def table_of(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, ["-" * width for width in widths], *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield f"| {' | '.join(cells)} |"


def machine(load: float) -> str:
    """Return a sentence about the machine, whose load was that when it began."""
    return (
        f"{time.strftime('%Y-%m-%d', time.gmtime())}: {os.cpu_count()} processors,"
        f" Python {platform.python_version()}, load {load:.1f} when it began and"
        f" {os.getloadavg()[0]:.1f} when it ended."
    )
