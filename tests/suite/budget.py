"""What each room of tests/ may cost: tests/budget.csv.

A room has failed that starts more programs than its line says, or needs more than
`TOLERANCE` times its seconds and `GRACE_S`: machines and what runs beside differ.
The yardstick fits into a core's nearest cache, and tests do not: where most rooms take
longer than their lines say, it is the machine, and all of them may (`pace`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median
from typing import Final

from tests.suite.records import Cost

TABLE: Final = Path(__file__).resolve().parents[1] / "budget.csv"
TOLERANCE: Final = 1.5
GRACE_S: Final = 3.0
"""What is chance in a room: who of its process imports first, for example."""
COMPARED_S: Final = 10.0
"""Rooms with fewer seconds say little of the machine."""
COMPARED_ROOMS: Final = 8
SLOWEST: Final = 2.0
"""What is slower than this by all rooms is not only the machine."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Programs that a room's tests start, and seconds of the yardstick."""

    room: str
    programs: int
    seconds: float


def read(path: Path) -> dict[str, Budget]:
    """Return the budgets by room; raise `ValueError` for a line that is none."""
    with path.open(encoding="utf-8", newline="") as file:
        budgets = [_budget(row, path.name) for row in csv.DictReader(file)]
    return {each.room: each for each in budgets}


def _budget(row: Mapping[str, str | None], name: str) -> Budget:
    try:
        budget = Budget(
            row["room"] or "",
            int(row["programs"] or ""),
            float(row["seconds"] or ""),
        )
    except (KeyError, ValueError):
        budget = None
    if budget is None or not (budget.programs >= 0 and 0 <= budget.seconds < inf):
        raise ValueError(f"{name}: {row} needs room, programs and seconds.")
    return budget


def excesses(
    budgets: Mapping[str, Budget], costs: Mapping[str, Cost], yardstick: float
) -> Iterator[str]:
    """Yield a sentence for each room that costs more than it may.

    `yardstick` is what the processor seconds of `costs` are divided by.
    """
    longer = pace(budgets, costs, yardstick)
    for room, cost in costs.items():
        budget = budgets.get(room)
        if budget is None:
            yield f"{room} has no line in tests/budget.csv."
            continue
        if cost.programs > budget.programs:
            yield (
                f"{room} started {cost.programs} programs;"
                f" tests/budget.csv allows {budget.programs}."
            )
        seconds = cost.processor / yardstick
        if seconds > (budget.seconds * TOLERANCE + GRACE_S) * longer:
            times = f", and {longer:.2f} times that on this machine"
            here = times if longer > 1 else ""
            yield (
                f"{room} took {seconds:.0f} seconds; tests/budget.csv allows"
                f" {TOLERANCE} times {budget.seconds:g} and {GRACE_S:g} more{here}."
            )


def pace(
    budgets: Mapping[str, Budget], costs: Mapping[str, Cost], yardstick: float
) -> float:
    """Return how many times as long as its line the middle room took, from 1 on."""
    compared = [
        cost.processor / yardstick / budgets[room].seconds
        for room, cost in costs.items()
        if room in budgets and budgets[room].seconds >= COMPARED_S
    ]
    if len(compared) < COMPARED_ROOMS:
        return 1.0
    return min(max(median(compared), 1.0), SLOWEST)
