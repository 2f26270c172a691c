"""`python -m tests.reliability.hour`: an hour of load, and a kill a minute.

Four processes on PostgreSQL serve clients of both eras, with calls that read and calls
that change, and streams that are resumed.  Each minute one process is killed, and
another starts in its place; the first is spared, so that one lives for the whole time.
Each minute is a line: what was asked, the rows of each table, the memory of each
process.

At the end the clients close their sessions, the janitor comes, and what is left is
judged: the spared process must not have grown, and no row may be left.  So that the
janitor has come many times by then, it comes each minute, and removes what was over for
as long.  The table is printed, and written into benchmarks/results/reliability.md;
exits with 1 where something was left behind, or a promise was not kept.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import psycopg
import pytest
from psycopg import sql

from benchmarks.processes import Process
from tests.drill.databases import postgresql_database
from tests.reliability.flock import Flock
from tests.reliability.load import Load
from tests.reliability.once import added
from tests.reliability.report import machine, table_of, written
from tests.reliability.rounds import Round

CLIENTS: Final = 10
SPARED: Final = 0
MINUTE_S: Final = 60.0
JANITOR_S: Final = 60
WAIT_S: Final = 4 * JANITOR_S
"""Two rounds of the janitor, a tenth more each, and the age of what it removes."""
GROWTH_MIB: Final = 8.0
"""By so much the spared process may have grown at the end since it was warm."""
LINES: Final = 12
AUDIT: Final = frozenset({"call", "callstatistic", "callwriter"})
"""Tables that are to keep what was: for days."""
TABLES: Final = ("session", "stream", "event", "once", "change", "topic", "worker")
PREFIX = "mcp_app_"
_TABLES = (
    "SELECT table_name FROM information_schema.tables"
    " WHERE table_schema = 'public' AND starts_with(table_name, %s)"
)


@dataclass(frozen=True, slots=True)
class Minute:
    """What was found at the end of a minute; memory in MiB, by place."""

    number: int
    found: list[Round]
    rows: Mapping[str, int]
    memory: list[float]

    def sum(self, name: str) -> int:
        return sum(getattr(each, name) for each in self.found)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the whole of it has found; `more` are rows that were not there before."""

    minutes: list[Minute]
    more: Mapping[str, int]

    @property
    def left(self) -> Mapping[str, int]:
        return _of(self.more, audit=False)

    @property
    def growth(self) -> float:
        memory = [each.memory[SPARED] for each in self.minutes]
        return memory[-1] - memory[len(memory) // 4]

    @property
    def broken(self) -> int:
        return sum(each.sum("wrong") + each.sum("unanswered") for each in self.minutes)

    @property
    def kept(self) -> bool:
        return not (self.broken or self.left) and self.growth <= GROWTH_MIB


def main() -> int:
    options = _options()
    # So that servers are stopped by their context managers.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    load = os.getloadavg()[0]
    try:
        with postgresql_database() as url:
            verdict = _tried(url, options.minutes, options.seed)
    except pytest.skip.Exception as missing:
        print(f"Not tried: {missing}", file=sys.stderr)
        return 2
    command = f"`python -m tests.reliability.hour --minutes {options.minutes}`"
    text = "\n".join([f"{command}, {machine(load)}", "", *_lines(verdict)])
    print(text)
    written(text, "<!-- written by python -m tests.reliability.hour -->")
    return int(not verdict.kept)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.reliability.hour",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _tried(url: str, minutes: int, seed: int) -> Verdict:
    environment = {
        "DATABASE_URL": url,
        "JANITOR": str(JANITOR_S),
        # A session whose `initialize` was cut by a kill is nobody's.
        "MCP_LIMITS": json.dumps({"rates": False, "session_idle": JANITOR_S}),
    }
    chance = random.Random(seed)
    with Flock(environment) as flock:
        before = counted(url)
        with Load(flock, CLIENTS, seed) as load:
            found = [
                _minute(flock, load, url, number, chance)
                for number in range(1, minutes + 1)
            ]
        found.append(_sampled(flock, load, url, minutes + 1))
        return Verdict(found, _settled(flock, url, before))


def _minute(
    flock: Flock, load: Load, url: str, number: int, chance: random.Random
) -> Minute:
    end = time.monotonic() + MINUTE_S
    time.sleep(MINUTE_S / 2)
    flock.kill(chance.choice([at for at, _ in enumerate(flock.urls) if at != SPARED]))
    time.sleep(max(0.0, end - time.monotonic()))
    return _sampled(flock, load, url, number)


def _sampled(flock: Flock, load: Load, url: str, number: int) -> Minute:
    memory = [Process(pid, 0).resident_kib() / 1024 for pid in flock.pids]
    minute = Minute(number, load.taken(), counted(url), memory)
    print(
        f"{time.strftime('%H:%M:%S')} minute {number}: {minute.sum('asked')} answers,"
        f" {minute.sum('wrong')} wrong, {minute.sum('unanswered')} unanswered;"
        f" {', '.join(f'{each:.1f}' for each in memory)} MiB;"
        f" {', '.join(f'{n} {c}' for n, c in minute.rows.items() if c)}",
        file=sys.stderr,
        flush=True,
    )
    return minute


def _settled(flock: Flock, url: str, before: Mapping[str, int]) -> dict[str, int]:
    end = time.monotonic() + WAIT_S
    while True:
        found = more(counted(url), before)
        if not _of(found, audit=False) or time.monotonic() > end:
            return found
        # Changes are put away when somebody asks.
        added(flock)
        time.sleep(1)


def _of(rows: Mapping[str, int], *, audit: bool) -> dict[str, int]:
    return {name: count for name, count in rows.items() if (name in AUDIT) is audit}


def _lines(verdict: Verdict) -> Iterable[str]:
    headings = ("minute", "answers", "wrong", "unanswered", "resumes", "MiB", "others")
    minutes = verdict.minutes[:-1]
    each_so_many = -(-len(minutes) // LINES)
    shown = [each for each in minutes if each.number % each_so_many == 0]
    yield from table_of((*headings, *TABLES), [_line(each) for each in shown])
    yield ""
    total = sum(each.sum("asked") for each in verdict.minutes)
    yield (
        f"Of {total} answers {verdict.broken} were wrong or never came; the process"
        f" that was spared grew by {verdict.growth:.1f} MiB; rows left:"
        f" {_named(verdict.left)}; of the audit, which stays:"
        f" {_named(_of(verdict.more, audit=True))}."
    )


def _named(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of {name}" for name, count in rows.items()) or "none"


def _line(minute: Minute) -> tuple[str, ...]:
    spared, *others = minute.memory
    sums = [minute.sum(name) for name in ("asked", "wrong", "unanswered", "resumes")]
    return (
        str(minute.number),
        *map(str, sums),
        f"{spared:.1f}",
        f"{min(others):.1f} to {max(others):.1f}",
        *(str(minute.rows.get(name, 0)) for name in TABLES),
    )


def counted(url: str) -> dict[str, int]:
    """Return the rows of each table of the app, by its name without the prefix."""
    with psycopg.connect(url, autocommit=True) as connection:
        names = [name for (name,) in connection.execute(_TABLES, [PREFIX])]
        return {
            name.removeprefix(PREFIX): _rows(connection, name) for name in sorted(names)
        }


def _rows(connection: psycopg.Connection, table: str) -> int:
    count = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
    row = connection.execute(count).fetchone()
    assert row is not None
    return int(row[0])


def more(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in grown.items() if count > 0}


if __name__ == "__main__":
    sys.exit(main())
