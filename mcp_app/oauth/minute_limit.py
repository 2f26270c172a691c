"""So many times a minute for each person, in this process."""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

A_MINUTE: Final = 60.0
MOST_PEOPLE: Final = 1_000
"""Beyond so many, everybody begins anew."""


class MinuteLimit:
    """Counts by user; callable from any thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._recent: dict[str, deque[float]] = {}

    def take(self, user: str, now: float) -> bool:
        """Count one more at this time (monotonic); False if there were too many."""
        with self._lock:
            if len(self._recent) > MOST_PEOPLE:
                self._recent.clear()
            recent = self._recent.setdefault(user, deque(maxlen=self._most))
            if len(recent) == self._most and now - recent[0] < A_MINUTE:
                return False
            recent.append(now)
            return True
