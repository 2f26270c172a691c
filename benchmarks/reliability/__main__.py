"""`python -m benchmarks.reliability`: try for long what is promised of changes.

Each test has its rounds on each kind of cluster: one kind after the other where times
are measured, else side by side.  A file keeps the rounds, and with `--continue` a run
that was cut goes on.  The table is printed and written into docs/reliability.md.
Exits with 1 where a promise or a figure was not kept.

With `--fault` every process is broken, and nothing is written: the table shows in how
many rounds that was found.  With `--seed` what is drawn at random is drawn from there
on, as where a round is to be repeated, and nothing is written either.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from inspect import signature
from pathlib import Path
from threading import Event
from typing import Final

import pytest

from benchmarks.reliability.answers import TEST as ANSWERED
from benchmarks.reliability.answers import answers
from benchmarks.reliability.commands import COMMANDS, commands
from benchmarks.reliability.model import ALONE, model, model_alone
from benchmarks.reliability.model import TEST as MODEL
from benchmarks.reliability.once import (
    KILLED,
    PAUSED,
    RESTARTED,
    killed,
    restarts,
    zombies,
)
from benchmarks.reliability.rates import TEST as RATES
from benchmarks.reliability.rates import rates
from benchmarks.reliability.report import report, written
from benchmarks.reliability.resuming import CUT, cuts, resumes
from benchmarks.reliability.resuming import TEST as RESUMED
from benchmarks.reliability.rounds import Journal, Round
from benchmarks.reliability.site import Site, site
from benchmarks.reliability.stale_reads import SLOWED, stale_reads
from benchmarks.reliability.stale_reads import TEST as STALE
from benchmarks.reliability.watchers import BURSTS, LATE, bursts, late_watchers
from tests.drill.switches import FAULTS
from tests.process.clusters import KINDS, cluster

ROUNDS: Final = 1000
JOURNAL: Final = Path("results/reliability.jsonl")
FAULTY: Final = Path("results/faults.jsonl")
REPEATED: Final = Path("results/repeated.jsonl")
USUAL: Final = ("postgresql", "postgresql-redis", "mariadb")

Test = Callable[..., Iterator[Round]]
TESTS: Final[dict[str, tuple[Test, float]]] = {
    # Checks are slow in a third of the rounds of stale reads.
    STALE: (stale_reads, 2 / 3),
    SLOWED: (partial(stale_reads, slowed=True), 1 / 3),
    LATE: (late_watchers, 1),
    **{name: (partial(commands, name=name), 1 / 5) for name in COMMANDS},
    BURSTS: (bursts, 1 / 10),
    RATES: (rates, 1 / 100),
    RESUMED: (resumes, 5 / 2),
    CUT: (cuts, 4),
    ANSWERED: (answers, 1),
    KILLED: (killed, 1 / 2),
    PAUSED: (zombies, 1 / 20),
    RESTARTED: (restarts, 1 / 50),
    MODEL: (model, 3 / 10),
    ALONE: (model_alone, 2),
}
"""Each test, and its share of the rounds."""
ONLY_ON: Final = {ALONE: "sqlite"}
"""Tests that are of one kind of cluster."""
TIMED: Final = (STALE, RATES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, print and write the table, and return the exit status."""
    options = _options(arguments)
    # So that servers are stopped by their context managers.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    load = os.getloadavg()[0]
    journal = _journal(options)
    with ExitStack() as stack:
        names = options.only or list(TESTS)
        kinds = [
            kind
            for kind in options.on or USUAL
            if any(_missing(name, kind, options.rounds, journal) for name in names)
        ]
        sites = dict(_sites(stack, kinds))
        for each in sites.values():
            stack.enter_context(each.cluster.faulty(*options.fault))
        for name in names:
            _try(name, sites, options, journal)
    table = report(journal.rounds(), load)
    print(table)
    if not options.fault and options.seed is None:
        written(table)
    return int("NO" in table)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reliability",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", choices=TESTS, action="append", metavar="NAME")
    parser.add_argument("--on", choices=KINDS, action="append")
    parser.add_argument("--continue", type=Path, dest="go_on", metavar="FILE")
    parser.add_argument("--fault", choices=FAULTS, action="append", default=[])
    parser.add_argument("--seed", type=int)
    return parser.parse_args(arguments)


def _journal(options: argparse.Namespace) -> Journal:
    if options.go_on:
        return Journal(options.go_on)
    if options.seed is not None:
        return Journal.emptied(REPEATED)
    return Journal.emptied(FAULTY if options.fault else JOURNAL)


def _sites(stack: ExitStack, kinds: Sequence[str]) -> Iterator[tuple[str, Site]]:
    """Start a cluster of each kind whose database is there."""
    for kind in kinds:
        try:
            made = stack.enter_context(cluster(kind, wire=""))
        except pytest.skip.Exception as missing:
            print(f"Not tried on {kind}: {missing}", file=sys.stderr)
        else:
            yield kind, stack.enter_context(site(made))


def _missing(name: str, kind: str, rounds: int, journal: Journal) -> int:
    """Return how many rounds of a test are not in the journal."""
    if ONLY_ON.get(name, kind) != kind:
        return 0
    wanted = max(1, round(rounds * TESTS[name][1]))
    return max(0, wanted - journal.count(kind, name))


def _seeded(test: Test, seed: int | None, done: int) -> Test:
    """Let a test that draws at random begin with a seed, after what is done."""
    drawn = signature(test).parameters.get("seed")
    if drawn is None:
        return test
    return partial(test, seed=(drawn.default if seed is None else seed) + done)


def _try(
    name: str,
    sites: Mapping[str, Site],
    options: argparse.Namespace,
    journal: Journal,
) -> None:
    """Run what is missing of one test."""
    stopped = Event()

    def run(kind: str) -> None:
        count = _missing(name, kind, options.rounds, journal)
        test = _seeded(TESTS[name][0], options.seed, journal.count(kind, name))
        began = time.monotonic()
        for each in test(sites[kind], rounds=count) if count else ():
            journal.add(kind, each)
            if stopped.is_set():
                return
        seconds = time.monotonic() - began
        print(f"{kind}, {name}: {count} rounds in {seconds:.0f} s", file=sys.stderr)

    with ThreadPoolExecutor(1 if name in TIMED else len(KINDS)) as pool:
        try:
            list(pool.map(run, sites))
        except BaseException:
            # So that the threads end, too, after their rounds.
            stopped.set()
            raise


if __name__ == "__main__":
    sys.exit(main())
