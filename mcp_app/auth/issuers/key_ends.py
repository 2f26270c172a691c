"""Until when what the users of external issuers have opened may stay open.

A token is not looked up, so nobody hears of its end: what it opened ends with the last
token that its user and client showed to this process.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from mcp_app.site_time import unix_time

KEPT_S: Final = 3_600.0
"""So long an end that is past is known: what a request opens may open later."""
LATEST: Final = datetime(3000, 1, 1, tzinfo=UTC).timestamp()
"""Issuers may write any number."""


class KeyEnds:
    """The last ends by the keys of principals, in Unix time; used on the loop only."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}

    def note(self, key: str, end: float) -> None:
        """Note when what a principal has shown ends."""
        self._ends[key] = max(self._ends.get(key, 0.0), min(end, LATEST))

    def over(self, keys: Iterable[str]) -> set[str]:
        """Return those of these keys whose end is past, and forget old ends."""
        now = time.time()
        for key in [each for each, end in self._ends.items() if end < now - KEPT_S]:
            del self._ends[key]
        return {key for key in keys if self._ends.get(key, now + 1) <= now}

    def next_end(self, keys: Iterable[str]) -> datetime | None:
        """Return the first end of these keys that is still to come, None for none."""
        now = time.time()
        ends = [end for key in keys if (end := self._ends.get(key, now)) > now]
        return unix_time(min(ends)) if ends else None


key_ends = KeyEnds()
"""Those of this process."""
