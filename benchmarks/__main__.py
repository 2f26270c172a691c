"""`python -m benchmarks [--quick] [--only REGEX]`: measure, print, judge.

Exits with 1 when a bound is missed or a figure could not be measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import signal
import sys
import time
from collections.abc import Sequence

from benchmarks.client import WrongAnswerError
from benchmarks.figures import FIGURES
from benchmarks.load import LoadGeneratorMissingError
from benchmarks.measuring import QUICK, Effort, Figure, Result
from benchmarks.processes import ServerFailedError

_FAILURES = (WrongAnswerError, LoadGeneratorMissingError, ServerFailedError, OSError)
_HEADINGS = ("figure", "measured", "bound", "ok")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen figures and return the exit status."""
    options = _options(arguments)
    chosen = {
        name: figure for name, figure in FIGURES.items() if options.only.fullmatch(name)
    }
    if not chosen:
        print(f"No figure matches; there are: {', '.join(FIGURES)}.", file=sys.stderr)
        return 2
    # So that servers are stopped by their context managers.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    started = os.getloadavg()
    results, failures = _measured(chosen, _effort(quick=options.quick))
    print(_table(results))
    print(_machine(started))
    for name, reason in failures.items():
        print(f"Not measured: {name}. {reason}")
    return int(bool(failures) or not all(result.ok for result in results))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short rounds, few")
    parser.add_argument(
        "--only",
        type=re.compile,
        default=re.compile(".*"),
        metavar="REGEX",
        help=f"figures to measure, of {', '.join(FIGURES)}",
    )
    return parser.parse_args(arguments)


def _effort(*, quick: bool) -> Effort:
    """Return the effort: BENCH_ROUNDS and BENCH_SECONDS win over the defaults."""
    usual = QUICK if quick else Effort()
    return Effort(
        rounds=int(os.environ.get("BENCH_ROUNDS", usual.rounds)),
        seconds=float(os.environ.get("BENCH_SECONDS", usual.seconds)),
        warm_up=usual.warm_up,
        counting=usual.counting,
    )


def _measured(
    figures: dict[str, Figure], effort: Effort
) -> tuple[list[Result], dict[str, str]]:
    """Return the results, and why others could not be had."""
    results: list[Result] = []
    failures: dict[str, str] = {}
    for name, figure in figures.items():
        print(f"{time.strftime('%H:%M:%S')} {name} …", file=sys.stderr, flush=True)
        try:
            results += figure(effort)
        except _FAILURES as failure:
            failures[name] = str(failure)
    return results, failures


def _table(results: Sequence[Result]) -> str:
    rows = [(*_HEADINGS, "medians: calls a second, CPU of the server for a call")]
    rows += [_row(result) for result in results]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "\n".join(
        [lines[0], "-|-".join("-" * width for width in widths), *lines[1:]]
    )


def _row(result: Result) -> tuple[str, str, str, str, str]:
    measured = f"{result.measured:.2f} {result.unit}".strip()
    ok = "yes" if result.ok else "NO"
    return result.figure, measured, str(result.bound), ok, result.raw


def _machine(started: tuple[float, float, float]) -> str:
    before, after = started[0], os.getloadavg()[0]
    return (
        f"Machine: {os.cpu_count()} processors, Python {platform.python_version()}, "
        f"load {before:.2f} at the start and {after:.2f} at the end."
    )


if __name__ == "__main__":
    sys.exit(main())
