"""A cache of what was read from the database or a site's code, for half a minute.

One shape for all that ask "cached, else found":

    value = cache.cached(key) or await cache.find(key, load)
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

MAX_AGE_S: Final = 30.0
"""An entry is read again after so long, to catch changes made outside Django."""
MAX_ENTRIES: Final = 10_000

Key = TypeVar("Key")
Value = TypeVar("Value")


class AgedCache(Generic[Key, Value]):
    """Values by key, each with its age; used on the loop only."""

    def __init__(self) -> None:
        self._entries: dict[Key, tuple[float, Value]] = {}

    def cached(self, key: Key) -> Value | None:
        """Return the value of a key, None if it is unknown or too old."""
        entry = self._entries.get(key)
        if entry is not None and time.monotonic() - entry[0] < MAX_AGE_S:
            return entry[1]
        return None

    def good_until(self, key: Key) -> float:
        """Return when the value of a key gets too old (monotonic); -inf if unknown."""
        entry = self._entries.get(key)
        return float("-inf") if entry is None else entry[0] + MAX_AGE_S

    async def find(self, key: Key, load: Callable[[], Awaitable[Value]]) -> Value:
        """Return the cached value of a key, else what `load` returns.

        That is cached from the moment when loading began, unless it is None or
        `forget` was called meanwhile.
        """
        if (cached := self.cached(key)) is not None:
            return cached
        # `forget` puts another dict in the place of this one.
        now, entries = time.monotonic(), self._entries
        value = await load()
        if value is not None:
            if len(entries) >= MAX_ENTRIES:
                entries.clear()
            entries[key] = (now, value)
        return value

    def forget(self) -> None:
        """Load every value again at its next use."""
        self._entries = {}

    def __len__(self) -> int:
        return len(self._entries)
