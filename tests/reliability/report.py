"""The table of what was found, for people."""

from __future__ import annotations

import os
import platform
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Final

from tests.process.clusters import KINDS
from tests.reliability import rates
from tests.reliability.parts import TESTS
from tests.reliability.revocations import BOUND_S
from tests.reliability.revocations import TEST as REVOKED
from tests.reliability.rounds import Round, Tried
from tests.reliability.stale_reads import TEST as STALE

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = ROOT / "benchmarks" / "results" / "reliability.md"
END: Final = "<!-- end of what is written -->"
LIMITS_S: Final = {"postgresql": 0.75, "postgresql-redis": 0.5, "mariadb": 0.75}
"""In which 99 of 100 announcements are to be there, with unslowed checks."""
HEADINGS: Final = (
    *("test", "on", "rounds", "answers", "wrong", "untold", "unanswered"),
    *("deadlocks", "kills", "resumes", "announced p50", "p99"),
    *("streams ended p50", "the last", "broken rounds", "minutes", "kept"),
)
MODES: Final = (
    rates.WATCHED,
    rates.UNHEARD,
    rates.PLAIN,
    rates.COUNTER,
    rates.WATCHED_LONGER,
    rates.COUNTER_LONGER,
)
RATES: Final = (
    *("on", "rounds", *MODES, f"{rates.WATCHED} / {rates.PLAIN}"),
    *(f"{rates.WATCHED} / {rates.COUNTER}", "the same, 5 ms more", "deadlocks", "kept"),
)
SUMS = ["asked", "wrong", "untold", "unanswered", "deadlocks", "kills", "resumes"]
JUDGED_ROUNDS: Final = 3
"""Of fewer rounds no rate is judged: one may fall into a busy moment."""
Key = tuple[str, str]


def begin(part: str) -> str:
    return f"<!-- written by python -m tests.reliability --part {part} -->"


def report(
    found: Iterable[tuple[str, Round]], tries: Iterable[tuple[str, Tried]] = ()
) -> str:
    groups = _grouped(found)
    tried = [(kind, each) for kind, each in tries if (each.test, kind) in groups]
    took: dict[Key, float] = defaultdict(float)
    for kind, each in tried:
        took[each.test, kind] += each.seconds / 60
    counted = [
        _line(*key, own, took.get(key))
        for key, own in groups.items()
        if own[0].rates is None
    ]
    rated = [_rates(key[1], own) for key, own in groups.items() if own[0].rates]
    parts = [*_runs(each for _, each in tried)]
    if tried:
        parts += [minutes(tried), ""]
    parts += [*table_of(*_without_empty(HEADINGS, counted))]
    if rated:
        parts += ["", "Transactions a second, of eight writers:", ""]
        parts += table_of(RATES, rated)
    return "\n".join(parts)


def _grouped(found: Iterable[tuple[str, Round]]) -> dict[Key, list[Round]]:
    groups: dict[Key, list[Round]] = {}
    for kind, each in found:
        groups.setdefault((each.test, kind), []).append(each)
    return {key: groups[key] for key in product(TESTS, KINDS) if key in groups}


def described(command: str, seed: int, databases: Sequence[str]) -> str:
    """Return what a run is, and where, without its end."""
    return f"`{command}`, seed {seed}, {_today()}: {', '.join([*_here(), *databases])}"


def _runs(tries: Iterable[Tried]) -> Iterator[str]:
    """Yield a paragraph for each run of which rounds are left."""
    loads: dict[str, list[float]] = {}
    for each in tries:
        loads.setdefault(each.run, []).append(each.load)
    for run, own in loads.items():
        yield f"{run}, load {min(own):.1f} to {max(own):.1f}."
        yield ""


def minutes(tries: Iterable[tuple[str, Tried]]) -> str:
    sums: dict[str, float] = defaultdict(float)
    for kind, each in tries:
        sums[kind] += each.seconds / 60
    took = ", ".join(f"{kind} {each:.0f}" for kind, each in sums.items())
    return f"Minutes, kinds side by side: {took or 'none'}."


def lost(part: str, found: Iterable[tuple[str, Round]]) -> list[Key]:
    """Return which rows the document has, that a new table would not have."""
    _, _, text = DOCUMENT.read_text(encoding="utf-8").partition(begin(part))
    lines = text.partition(END)[0].splitlines()
    cells = [[each.strip() for each in line.strip("|").split("|")] for line in lines]
    # The table of rates is of one test, and begins with the kind.
    keys = [(rates.TEST, *own) if own[0] in KINDS else own for own in cells]
    there = {(own[0], own[1]) for own in keys if own[0] in TESTS}
    return sorted(there - _grouped(found).keys())


def written(table: str, begin: str) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(f"{before}{begin}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def share(sorted_values: Sequence[float], part: float) -> float:
    """Return the value that this part of all values does not pass."""
    return sorted_values[min(len(sorted_values) - 1, int(part * len(sorted_values)))]


def _line(
    test: str, kind: str, rounds: list[Round], minutes: float | None
) -> tuple[str, ...]:
    announced = sorted(each.announced for each in rounds if each.announced is not None)
    times = [f"{share(announced, at):.2f} s" if announced else "" for at in (0.5, 0.99)]
    ended = sorted(each.ended for each in rounds if each.ended is not None)
    ends = [f"{share(ended, at):.3f} s" if ended else "" for at in (0.5, 1)]
    broken = sum(not each.kept for each in rounds)
    kept = not broken
    if test == STALE and kind in LIMITS_S and announced:
        kept = kept and share(announced, 0.99) <= LIMITS_S[kind]
    if test == REVOKED and ended:
        kept = kept and ended[-1] <= BOUND_S
    sums = [sum(getattr(each, name) for each in rounds) for name in SUMS]
    return (
        *(test, kind, str(len(rounds)), *map(str, sums), *times, *ends, str(broken)),
        *("" if minutes is None else f"{minutes:.1f}", _yes(kept)),
    )


def _rates(kind: str, rounds: list[Round]) -> tuple[str, ...]:
    rated = [each.rates for each in rounds if each.rates]
    medians = {mode: median(each[mode] for each in rated) for mode in MODES}
    to_plain = medians[rates.WATCHED] / medians[rates.PLAIN]
    to_counter = medians[rates.WATCHED] / medians[rates.COUNTER]
    longer = medians[rates.WATCHED_LONGER] / medians[rates.COUNTER_LONGER]
    deadlocks = sum(each.deadlocks for each in rounds)
    is_fast = to_plain >= 0.9 and longer >= 3.0
    judged = "" if len(rounds) < JUDGED_ROUNDS else _yes(is_fast)
    return (
        *(kind, str(len(rounds)), *(f"{each:.0f}" for each in medians.values())),
        *(f"{to_plain:.2f}", f"{to_counter:.1f}", f"{longer:.1f}"),
        *(str(deadlocks), _yes(False) if deadlocks else judged),
    )


def _yes(kept: bool) -> str:
    return "yes" if kept else "NO"


def table_of(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, ["-" * width for width in widths], *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield f"| {' | '.join(cells)} |"


def _without_empty(
    headings: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    told = [at for at in range(len(headings)) if any(row[at] for row in rows)]
    return [headings[at] for at in told], [[row[at] for at in told] for row in rows]


def machine(load: float) -> str:
    """Return a sentence about the machine, whose load was that when it began."""
    return (
        f"{_today()}: {', '.join(_here())}, load {load:.1f} when it began and"
        f" {os.getloadavg()[0]:.1f} when it ended."
    )


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def _here() -> list[str]:
    return [f"{os.cpu_count()} processors", f"Python {platform.python_version()}"]
