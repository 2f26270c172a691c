"""Which other processes live, judged by the monotonic clock of this one.

The times in rows are the database's, and its clock may jump.  If it jumps forward, live
processes seem silent; if it jumps back, the row of a dead one lies in the future.  So
this module does not look at the age of a row, but measures how long it has not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

SILENT_S: Final = 14.0
"""A process whose row has not changed for this long counts as dead.

It may have been silent for up to a heartbeat before the first look: the bound is
`LIVE_MS`, and the last of three looks, five seconds apart, may come a moment early.
"""
MOST_BETWEEN_S: Final = 6.0
"""At most this much of the time between two looks counts: this process may have been
paused, and the others with it."""

Owner: TypeAlias = tuple[str, int | None, bool]
"""A process: its key, `seen_ms` of its row (None if it has no row), and whether it owns
an open stream or holds a session of HTTP+SSE."""


@dataclass(slots=True)
class _PeerState:
    seen_ms: int | None
    runs: bool
    looked: float
    silent: float = 0.0
    changed: bool = False

    def look(self, seen_ms: int | None, now: float) -> None:
        if seen_ms == self.seen_ms:
            self.silent += min(max(0.0, now - self.looked), MOST_BETWEEN_S)
        else:
            self.seen_ms, self.silent, self.changed = seen_ms, 0.0, True
        self.looked = now

    @property
    def dead(self) -> bool:
        """Whether it counts as dead; a process without a row has said that it ends."""
        return self.seen_ms is None or self.silent >= SILENT_S


@dataclass(frozen=True, slots=True)
class PeerStates:
    """What a process knows of the others; immutable, so any thread may read it."""

    dead: Mapping[str, int | None] = field(default_factory=dict)
    """Those that were silent for too long, with the last `seen_ms` of each."""
    alive: frozenset[str] = frozenset()
    """Those whose row was seen to change, and that are not dead."""

    def lives(self, key: str, seen_ms: int, *, old: bool) -> bool:
        """Return whether the process with this row lives.

        `old` is the judgement of the database's clock: it decides for processes that
        were not watched for long enough.
        """
        if key in self.dead and self.dead[key] == seen_ms:
            return False
        return not old or key in self.alive


class PeerMonitor:
    """Watches the rows of the other processes; times are those of a monotonic clock."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._watched: dict[str, _PeerState] = {}

    def look(self, found: Iterable[Owner], now: float) -> None:
        """Note the rows of all processes."""
        rows = {key: (seen_ms, runs) for key, seen_ms, runs in found}
        for gone in self._watched.keys() - rows.keys():
            del self._watched[gone]
        for key, (seen_ms, runs) in rows.items():
            self.note(key, seen_ms, now, runs=runs)

    def note(
        self, key: str, seen_ms: int | None, now: float, *, runs: bool = True
    ) -> bool:
        """Note one row; return whether its process is dead."""
        if key == self._own:
            return False
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = _PeerState(seen_ms, runs, now)
        else:
            watched.look(seen_ms, now)
            watched.runs = runs
        return watched.dead

    def living(self) -> int:
        """Return how many processes seem to live, this one included."""
        return 1 + sum(not each.dead for each in self._watched.values())

    def judge(self) -> PeerStates:
        """Return which processes are dead, and which are known to live."""
        watched = self._watched.items()
        return PeerStates(
            {key: each.seen_ms for key, each in watched if each.dead},
            frozenset(key for key, each in watched if each.changed and not each.dead),
        )

    def orphaning(self) -> dict[str, int | None]:
        """Return the dead with open streams or held sessions, with their `seen_ms`."""
        return {
            key: each.seen_ms
            for key, each in self._watched.items()
            if each.dead and each.runs
        }
