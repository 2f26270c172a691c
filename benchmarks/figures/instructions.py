"""How many instructions a call takes, beside those that were recorded."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from benchmarks import instructions, server_instructions
from benchmarks.measuring import AtMost, Effort, Result

RECORDED: Final = Path(__file__).parents[1] / "results" / "instructions.csv"
GROWTH: Final = 1.03
"""What a call may take beyond what was recorded: counts repeat within 1 %."""
TRACES: Final = (
    ("traced", 1.05, "an id among the headers"),
    ("followed", 1.4, "a token for progress in `_meta`"),
)
"""What may be added by what is not read: the name, the ratio, and what it is."""
AUDITS: Final = ("off", "batched")

Calls = Mapping[tuple[str, str], float]
"""Instructions in thousands, by the name of the call and `MCP_AUDIT`."""


def of_calls(effort: Effort) -> Iterator[Result]:
    """Count them in one process and in a server's, with the call log and without."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    recorded = read(RECORDED.read_text(), version)
    for count in (instructions.measured, server_instructions.measured):
        for audit in AUDITS:
            yield from compared(count(audit), recorded, audit, version)


def compared(
    counts: Mapping[str, float], recorded: Calls, audit: str, version: str
) -> Iterator[Result]:
    """Return a line for each call; without a recorded value any number will do."""
    floor = next(count for name, count in counts.items() if name.endswith("floor"))
    for name, most, told in TRACES if "traced" in counts else ():
        yield Result(
            f"instructions: {name} / stateless, call log {audit}",
            counts[name] / counts["stateless"],
            AtMost(most),
            raw=f"a traceparent and {told} in each request",
        )
    for name, count in counts.items():
        before = recorded.get((name, audit))
        known = "nothing is" if before is None else f"{before:.1f} k"
        yield Result(
            f"instructions: {name}, call log {audit}",
            count / 1_000,
            AtMost(float("inf") if before is None else before * GROWTH),
            "k",
            f"{count / floor:.2f} x floor, {known} recorded for Python {version}",
        )


def read(table: str, version: str) -> Calls:
    """Return what a table has for a version of Python."""
    rows = csv.DictReader(table.splitlines())
    return {
        (row["call"], row["call log"]): float(row["thousands"])
        for row in rows
        if row["python"] == version
    }
