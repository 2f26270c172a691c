"""The tests, in three parts that are run, kept and told of apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from benchmarks.reliability.answers import TEST as ANSWERED
from benchmarks.reliability.answers import answers
from benchmarks.reliability.commands import COMMANDS, commands
from benchmarks.reliability.crashes import TEST as CRASHED
from benchmarks.reliability.crashes import crashes
from benchmarks.reliability.crossing import TEST as CROSSED
from benchmarks.reliability.crossing import crossing
from benchmarks.reliability.doorbells import TEST as UNHEARD
from benchmarks.reliability.doorbells import doorbells
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
from benchmarks.reliability.resuming import CUT, cuts, resumes
from benchmarks.reliability.resuming import TEST as RESUMED
from benchmarks.reliability.revocations import TEST as REVOKED
from benchmarks.reliability.revocations import revocations
from benchmarks.reliability.rounds import Round
from benchmarks.reliability.stale_reads import SLOWED, stale_reads
from benchmarks.reliability.stale_reads import TEST as STALE
from benchmarks.reliability.stops import TEST as STOPS
from benchmarks.reliability.stops import UNHEARD as STOPS_UNHEARD
from benchmarks.reliability.stops import stops, unheard
from benchmarks.reliability.watchers import BURSTS, LATE, bursts, late_watchers

Test = Callable[..., Iterator[Round]]

CHANGES: Final[dict[str, tuple[Test, float]]] = {
    # Checks are slow in a third of the rounds of stale reads.
    STALE: (stale_reads, 2 / 3),
    SLOWED: (partial(stale_reads, slowed=True), 1 / 3),
    LATE: (late_watchers, 1),
    **{name: (partial(commands, name=name), 1 / 5) for name in COMMANDS},
    # Each of the four, in its turn, 200 times.
    STOPS: (stops, 4 / 5),
    STOPS_UNHEARD: (unheard, 4 / 5),
    BURSTS: (bursts, 1 / 10),
    RATES: (rates, 1 / 100),
}
LOG: Final[dict[str, tuple[Test, float]]] = {
    RESUMED: (resumes, 5 / 2),
    CUT: (cuts, 4),
    ANSWERED: (answers, 1),
    KILLED: (killed, 1 / 2),
    PAUSED: (zombies, 1 / 20),
    RESTARTED: (restarts, 1 / 50),
    CRASHED: (crashes, 1 / 50),
    UNHEARD: (doorbells, 1 / 50),
    MODEL: (model, 3 / 10),
    ALONE: (model_alone, 2),
}
SECURITY: Final[dict[str, tuple[Test, float]]] = {
    # Of 2,000 calls each.
    CROSSED: (crossing, 1 / 20),
    REVOKED: (revocations, 1),
}
PARTS: Final = {"changes": CHANGES, "log": LOG, "security": SECURITY}
TESTS: Final = {**CHANGES, **LOG, **SECURITY}
"""Each test, and its share of the rounds."""
ONLY_ON: Final = {
    CRASHED: ("postgresql", "mariadb"),
    UNHEARD: ("postgresql-redis",),
    STOPS_UNHEARD: ("postgresql-redis",),
    ALONE: ("sqlite",),
}
"""Tests that are of some kinds of cluster."""
TIMED: Final = (STALE, RATES, REVOKED)
"""Tests that measure times: one kind is tried after the other."""
