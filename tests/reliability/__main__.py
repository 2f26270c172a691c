"""`python -m tests.reliability`: try for long what is promised.

Each test has its rounds on each kind of cluster: one kind after the other where times
are measured, else side by side.  There are four parts: `changes`, the `log` of
requests, `security` and `events`.  Each part has a file that keeps its rounds, as
`results/reliability-log.jsonl`, and a table in benchmarks/results/, which is printed
and written from that file.  What is run begins anew there, and with `--continue` goes
on where it was cut; what is not run stays.  Exits with 1 where a promise or a figure
was not kept.

With `--fault` every process is broken, and nothing is written: the table shows in how
many rounds that was found.  With `--seed` what is drawn at random is drawn from there
on, as where a round is to be repeated, and nothing is written either.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from inspect import signature
from itertools import chain
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest
import redis

from tests.drill.switches import FAULTS
from tests.process.clusters import KINDS, Cluster, cluster, run_python
from tests.reliability.parts import ONLY_ON, PARTS, TESTS, TIMED
from tests.reliability.report import begin, described, lost, minutes, report, written
from tests.reliability.rounds import Journal, Tried
from tests.reliability.site import Site, site

PROGRAM: Final = "python -m tests.reliability"
ROUNDS: Final = 1000
SEED: Final = 1
USUAL: Final = ("postgresql", "postgresql-redis", "mariadb")
ASKED: Final = """
import django
django.setup()
from django.db import connection
version = ".".join(map(str, connection.get_database_version()))
print(connection.display_name, version)
"""


def main() -> int:
    options = _options()
    # So that servers are stopped by their context managers.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    chosen = {part: _names(part, options) for part in options.part or PARTS}
    journals = {
        part: _journal(part, names, options) for part, names in chosen.items() if names
    }
    with ExitStack() as stack:
        sites = dict(_sites(stack, chosen, journals, options))
        for each in sites.values():
            stack.enter_context(each.cluster.faulty(*options.fault))
        run = described(
            shlex.join([*PROGRAM.split(), *sys.argv[1:]]),
            SEED if options.seed is None else options.seed,
            _versions(each.cluster for each in sites.values()),
        )
        for part, journal in journals.items():
            for name in chosen[part]:
                _try(name, sites, options, journal, run)
    told = [_told(*each, options) for each in journals.items()]
    tries = chain.from_iterable(each.tries() for each in journals.values())
    print(f"\nAll of it. {minutes(tries)}")
    return int(any(told))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--only", choices=TESTS, action="append", metavar="NAME")
    parser.add_argument("--on", choices=KINDS, action="append")
    parser.add_argument("--continue", action="store_true", dest="go_on")
    parser.add_argument("--fault", choices=FAULTS, action="append", default=[])
    parser.add_argument("--seed", type=int)
    return parser.parse_args()


def _names(part: str, options: argparse.Namespace) -> list[str]:
    return [name for name in PARTS[part] if name in (options.only or TESTS)]


def _journal(part: str, names: list[str], options: argparse.Namespace) -> Journal:
    apart = "repeated" if options.seed is not None else ""
    apart = "faults" if options.fault else apart
    journal = Journal(Path("results") / f"{apart or 'reliability'}-{part}.jsonl")
    if not options.go_on:
        kinds = KINDS if apart else options.on or USUAL
        journal.forget(kinds, TESTS if apart else names)
    return journal


def _sites(
    stack: ExitStack,
    chosen: Mapping[str, list[str]],
    journals: Mapping[str, Journal],
    options: argparse.Namespace,
) -> Iterator[tuple[str, Site]]:
    """Start a cluster of each kind whose database is there, if something is missing."""
    for kind in options.on or USUAL:
        if not any(
            _missing(name, kind, options.rounds, journal)
            for part, journal in journals.items()
            for name in chosen[part]
        ):
            continue
        try:
            made = stack.enter_context(cluster(kind, wire=""))
        except pytest.skip.Exception as missing:
            print(f"Not tried on {kind}: {missing}", file=sys.stderr)
        else:
            yield kind, stack.enter_context(site(made))


def _versions(clusters: Iterable[Cluster]) -> list[str]:
    """Return each server that is used, once: `["PostgreSQL 15.5", "Redis 7.0.15"]`."""
    found = []
    for each in clusters:
        found.append(run_python(each.environment, "-c", ASKED).strip())
        if each.redis is not None:
            client: Any = redis.Redis.from_url(each.redis.url)
            with closing(client):
                found.append(f"Redis {client.info('server')['redis_version']}")
    return sorted(set(found))


def _missing(name: str, kind: str, rounds: int, journal: Journal) -> int:
    if kind not in ONLY_ON.get(name, KINDS):
        return 0
    wanted = max(1, round(rounds * TESTS[name][1]))
    return max(0, wanted - journal.count(kind, name))


def _try(
    name: str,
    sites: Mapping[str, Site],
    options: argparse.Namespace,
    journal: Journal,
    run: str,
) -> None:
    stopped = Event()

    def tried(kind: str) -> None:
        count = _missing(name, kind, options.rounds, journal)
        if not count:
            return
        test = TESTS[name][0]
        if "seed" in signature(test).parameters:
            seed = SEED if options.seed is None else options.seed
            test = partial(test, seed=seed + journal.count(kind, name))
        began = time.monotonic()
        try:
            for each in test(sites[kind], rounds=count):
                journal.add(kind, each)
                if stopped.is_set():
                    return
        except pytest.skip.Exception as missing:
            print(f"{name} was not tried on {kind}: {missing}", file=sys.stderr)
            return
        finally:
            seconds, load = time.monotonic() - began, os.getloadavg()[0]
            journal.add(kind, Tried(test=name, run=run, seconds=seconds, load=load))
        print(f"{kind}, {name}: {count} rounds in {seconds:.0f} s", file=sys.stderr)

    with ThreadPoolExecutor(1 if name in TIMED else len(KINDS)) as pool:
        try:
            list(pool.map(tried, sites))
        except BaseException:
            # So that the threads end, too, after their rounds.
            stopped.set()
            raise


def _told(part: str, journal: Journal, options: argparse.Namespace) -> bool:
    """Print and write the table of a part; return whether something was not kept."""
    table = report(journal.rounds(), journal.tries())
    print(f"\n{part}: {table}")
    if not options.fault and options.seed is None:
        if missing := lost(part, journal.rounds()):
            (test, kind), *_ = missing
            print(
                f"The document is left alone: it has {len(missing)} rows of which"
                f" {journal.path} has nothing, as {test} on {kind}."
            )
        else:
            written(table, begin(part))
    return "| NO " in table


if __name__ == "__main__":
    sys.exit(main())
