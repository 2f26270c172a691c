"""The tests, in four parts that are run, kept and told of apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from tests.reliability.answers import TEST as ANSWERED
from tests.reliability.answers import answers
from tests.reliability.commands import COMMANDS, commands
from tests.reliability.crashes import TEST as CRASHED
from tests.reliability.crashes import crashes
from tests.reliability.crossing import TEST as CROSSED
from tests.reliability.crossing import crossing
from tests.reliability.deliveries import BY_WORKERS, deliveries
from tests.reliability.deliveries import TEST as DELIVERED
from tests.reliability.doorbells import TEST as UNHEARD
from tests.reliability.doorbells import doorbells
from tests.reliability.model import ALONE, model, model_alone
from tests.reliability.model import TEST as MODEL
from tests.reliability.once import KILLED, PAUSED, RESTARTED, killed, restarts, zombies
from tests.reliability.rates import TEST as RATES
from tests.reliability.rates import rates
from tests.reliability.resuming import CUT, cuts, resumes
from tests.reliability.resuming import TEST as RESUMED
from tests.reliability.revocations import ENDS as ENDED
from tests.reliability.revocations import TEST as REVOKED
from tests.reliability.revocations import ends, revocations
from tests.reliability.rounds import Round
from tests.reliability.stale_reads import SLOWED, stale_reads
from tests.reliability.stale_reads import TEST as STALE
from tests.reliability.stops import TEST as STOPS
from tests.reliability.stops import UNHEARD as STOPS_UNHEARD
from tests.reliability.stops import stops, unheard
from tests.reliability.watchers import BURSTS, LATE, bursts, late_watchers

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
    ENDED: (ends, 1),
}
EVENTS: Final[dict[str, tuple[Test, float]]] = {
    DELIVERED: (deliveries, 1 / 20),
    BY_WORKERS: (partial(deliveries, deliver="worker"), 1 / 100),
}
PARTS: Final = {"changes": CHANGES, "log": LOG, "security": SECURITY, "events": EVENTS}
TESTS: Final = {**CHANGES, **LOG, **SECURITY, **EVENTS}
ONLY_ON: Final = {
    CRASHED: ("postgresql", "mariadb"),
    DELIVERED: ("postgresql",),
    BY_WORKERS: ("postgresql",),
    UNHEARD: ("postgresql-redis",),
    STOPS_UNHEARD: ("postgresql-redis",),
    ALONE: ("sqlite",),
}
TIMED: Final = (STALE, RATES, REVOKED, ENDED)
"""Tests that measure times: one kind is tried after the other."""
