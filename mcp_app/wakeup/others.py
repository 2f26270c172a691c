"""Which other processes live, as one process has observed by its own clock.

The times in rows are the database's, and its clock may jump: forward, and healthy
processes seem to have been silent; back, and a dead one's row is of the future.  So it
is not asked how old a row is, but for how long it has not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

SILENT_S: Final = 14.0
"""A process whose row has not changed for so long, as watched, is taken for dead.

It was silent before it was looked at, by up to a heartbeat: the bound is `LIVE_MS`, and
the last of three looks, five seconds apart, may come a moment early.
"""
MOST_BETWEEN_S: Final = 6.0
"""Of a longer time between two looks no more counts: who looked may have stood still,
and the others with it."""

Owner: TypeAlias = tuple[str, int | None, bool]
"""A process: its key, `seen_ms` of its row, None where it has no row, and whether a
stream is open in its name."""


@dataclass(slots=True)
class _Watched:
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
        """Whoever has no row has said that it ends."""
        return self.seen_ms is None or self.silent >= SILENT_S


@dataclass(frozen=True, slots=True)
class Judged:
    """What a process knows of the others: never changed, and read in any thread."""

    dead: Mapping[str, int | None] = field(default_factory=dict)
    """Those that were silent for too long, with the last `seen_ms` of each."""
    alive: frozenset[str] = frozenset()
    """Those that were seen to beat, and are not dead."""

    def lives(self, key: str, seen_ms: int, *, old: bool) -> bool:
        """Whether a process lives whose row is this now.

        `old` is what the database's clock says: it counts for those that were not
        watched for long enough.
        """
        if key in self.dead and self.dead[key] == seen_ms:
            return False
        return not old or key in self.alive


class Others:
    """Watches the rows of the other processes; times are those of a monotonic clock."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._watched: dict[str, _Watched] = {}

    def look(self, found: Iterable[Owner], now: float) -> None:
        """Note all that there are now."""
        rows = {key: (seen_ms, runs) for key, seen_ms, runs in found}
        for gone in self._watched.keys() - rows.keys():
            del self._watched[gone]
        for key, (seen_ms, runs) in rows.items():
            self.note(key, seen_ms, now, runs=runs)

    def note(
        self, key: str, seen_ms: int | None, now: float, *, runs: bool = True
    ) -> bool:
        """Note one of them; return whether it is dead."""
        if key == self._own:
            return False
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = _Watched(seen_ms, runs, now)
        else:
            watched.look(seen_ms, now)
            watched.runs = runs
        return watched.dead

    def judged(self) -> Judged:
        """Return who is dead, and who is known to live."""
        watched = self._watched.items()
        return Judged(
            {key: each.seen_ms for key, each in watched if each.dead},
            frozenset(key for key, each in watched if each.changed and not each.dead),
        )

    def orphaning(self) -> dict[str, int | None]:
        """Return the dead in whose names streams are open, as their rows were."""
        return {
            key: each.seen_ms
            for key, each in self._watched.items()
            if each.dead and each.runs
        }
