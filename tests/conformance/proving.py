"""See that a test which names a demand fails without the guard of that demand.

    python -m tests.conformance.proving --all -j 2      each demand that has a guard
    python -m tests.conformance.proving --seed 7        30 of them
    python -m tests.conformance.proving L-HEAD-001 ...  these

It ends with 1 where all tests of a demand pass without its guard, and names both.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Final

import django

from tests.apart import ROOT, inherited
from tests.conformance.demands import read_rows
from tests.conformance.disabling import VARIABLE, AnyGuard, all_guards

QUIETLY: Final = ("-p", "no:cacheprovider", "-p", "no:randomly", "--no-header")


def by_demand(guards: Iterable[AnyGuard]) -> dict[str, AnyGuard]:
    return {demand: guard for guard in guards for demand in guard.demands}


def chosen(guards: Mapping[str, AnyGuard], seed: int, count: int) -> list[str]:
    """Return so many demands, of as many different guards as there are."""
    shuffled = Random(seed).sample(list(guards), len(guards))  # noqa: S311 - no secret
    seen: set[AnyGuard] = set()
    first: list[str] = []
    again: list[str] = []
    for demand in shuffled:
        (again if guards[demand] in seen else first).append(demand)
        seen.add(guards[demand])
    return [*first, *again][:count]


def failed(demand: str, tests: Iterable[str]) -> str:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", *QUIETLY, *tests],
            cwd=ROOT,
            env={**inherited(), VARIABLE: demand},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    # 1: some tests failed; all else is no proof.
    if done.returncode != 1:
        return ""
    lines = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return lines[0] if lines else ""


def failures(demands: Iterable[str], tests: Mapping[str, list[str]]) -> dict[str, str]:
    """Return for each of one guard's demands the test that fails without it, or "".

    A test that has failed for one demand has failed for all that it names.
    """
    found: dict[str, str] = {}
    for demand in demands:
        known = [
            name for name in found.values() if name.partition("[")[0] in tests[demand]
        ]
        found[demand] = known[0] if known else failed(demand, tests[demand])
    return found


def tried(
    demands: Iterable[str], guards: Mapping[str, AnyGuard], jobs: int
) -> Iterator[tuple[str, str]]:
    """Give each demand with the test that fails without its guard, or "".

    So many guards are tried side by side.
    """
    tests = {row.id: row.tests.split() for row in read_rows()}
    together: dict[AnyGuard, list[str]] = {}
    for demand in demands:
        together.setdefault(guards[demand], []).append(demand)
    with ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(lambda each: failures(each, tests), together.values()):
            yield from found.items()


def _arguments(known: Iterable[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("-j", "--jobs", type=int, default=1)
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.ids}.difference(known)):
        parser.error(f"There is no guard of {', '.join(unknown)}.")
    return arguments


def report(results: Iterable[tuple[str, str]], guards: Mapping[str, AnyGuard]) -> int:
    green = []
    for demand, test in results:
        sys.stdout.write(f"{demand:14} {guards[demand]}\n    {test or 'GREEN'}\n")
        sys.stdout.flush()
        if not test:
            green.append(demand)
    for demand in green:
        sys.stdout.write(f"{demand}: no test fails without {guards[demand]}.\n")
    return 1 if green else 0


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    guards = by_demand(all_guards())
    arguments = _arguments(guards)
    count = len(guards) if arguments.all else arguments.count
    demands = arguments.ids or chosen(guards, arguments.seed, count)
    return report(tried(demands, guards, arguments.jobs), guards)


if __name__ == "__main__":
    raise SystemExit(main())
