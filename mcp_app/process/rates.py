"""How often a person may call a tool, and send requests at all.

A *bucket* is full at first, each call takes something out of it, and it fills up again
with time.  It is kept as the moment when it will be full: so a bucket that was not used
for some time is full, and can be forgotten.

Strangers and people who sign in have separate buckets: otherwise a stranger could use
up a person's limit and lock that person out.  All strangers without a known address
share one bucket (`UNKNOWN_ADDRESS`), because otherwise they would have no limit.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

from mcp_app.protocol.errors import Unavailable

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import ToolEntry
    from mcp_app.conf import Limits

MINUTE_S: Final = 60.0
MOST: Final = 100_000
"""The number of buckets that are kept for persons, and as many for addresses."""
TOOL_BURST: Final = 100
"""The largest burst of a tool with its own rate; a smaller rate is its own burst."""
ADDRESS: Final = "@"
"""The first character of the key of an address; no key of a person begins with it."""


class Bucket:
    """How often one key may still call; times are seconds of the monotonic clock."""

    __slots__ = ("cost", "count", "full", "interval", "key", "room", "turn", "whole")

    def __init__(self, key: Hashable, interval: float, room: float) -> None:
        self.key = key
        self.full = -math.inf
        self.count = 0
        """Calls since `HotKeys` last counted them, with the refused ones."""
        self.turn = 0
        """The turn of its `Buckets` in which it was last used."""
        self.set_rate(interval, room)

    def set_rate(self, interval: float, room: float) -> None:
        """Set the seconds between two calls, and the seconds that filling takes."""
        self.interval, self.whole = interval, room
        self.set_share(1.0)

    def set_share(self, share: float) -> None:
        """Allow this process a share of the rate: 1.0 is all of it."""
        self.cost = self.interval / share
        """Seconds that a call takes out of the bucket."""
        # There is room for one call, even if the share of the burst is smaller.
        self.room = max(self.whole, self.cost)


class Buckets:
    """At most `MOST` buckets by key."""

    def __init__(self, common: Hashable | None = None) -> None:
        """If `common` is given, keys for which there is no room share its bucket."""
        self._new: dict[Hashable, Bucket] = {}
        self._old: dict[Hashable, Bucket] = {}
        """The buckets of the turn before, which were not used in this one."""
        self._common = common
        self.turn = 0
        """How many turns have begun; a turn lasts about a minute."""
        self.turns_at = -math.inf

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def bucket_of(
        self, key: Hashable, interval: float, room: float, now: float
    ) -> Bucket:
        """Return the bucket of a key, a full one if it was not used for a minute."""
        if now >= self.turns_at:
            self._start_turn(now)
        bucket = self._new.get(key)
        if bucket is None and len(self._new) >= MOST // 2:
            if self._common is None:
                self._start_turn(now)
            else:
                # Each rate has a common bucket, because its content means other calls.
                key = self._common, interval, room
                bucket = self._new.get(key)
        if bucket is None:
            bucket = self._old.pop(key, None) or Bucket(key, interval, room)
            bucket.turn = self.turn
            self._new[key] = bucket
        if bucket.interval != interval or bucket.whole != room:
            # With another rate, its content means other calls: it starts full.
            bucket.full = -math.inf
            bucket.set_rate(interval, room)
        return bucket

    def _start_turn(self, now: float) -> None:
        self._old = self._new if now < self.turns_at + MINUTE_S else {}
        self._new = {}
        self.turn += 1
        self.turns_at = now + MINUTE_S


class Charge:
    """The two buckets of a person who calls a tool, kept for the next call."""

    __slots__ = ("request", "tool")

    def __init__(self, request: Bucket, tool: Bucket) -> None:
        self.request = request
        self.tool = tool


class Rates:
    """The rates of a process; usable from any thread.

    A *person* is the key of a user, of a principal without a user, or of an address
    (`ADDRESS`); "" stands for no person, and has no limit.
    """

    def __init__(
        self,
        limits: Limits,
        used: Callable[[Bucket], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        lock: threading.Lock | None = None,
    ) -> None:
        """`used` gets each bucket whose `count` was 0; the lock is held meanwhile."""
        self.on = limits.rates
        self._used = used
        self._clock = clock
        self._lock = lock or threading.Lock()
        self._persons = Buckets()
        self._addresses = Buckets(ADDRESS)
        self._request = _interval_and_room(limits.request_rate, limits.request_burst)
        self._tool = _interval_and_room(limits.tool_rate, limits.tool_burst)

    def __len__(self) -> int:
        return len(self._persons) + len(self._addresses)

    def check_requests(self, person: str, count: int = 1) -> None:
        """Charge a person for messages; raise 429 if there are too many."""
        if not self.on or not person or not count:
            return
        now = self._clock()
        with self._lock:
            wait = self._take_calls(self._request_bucket(person, now), count, now)
        if wait:
            raise Unavailable(
                f"Too many requests. Try again in {_seconds_text(wait)}.",
                retry_after=wait,
                http_status=429,
            )

    def note_requests(self, person: str) -> bool:
        """Charge for a message that is never refused; return whether there was room."""
        if not self.on or not person:
            return True
        now = self._clock()
        with self._lock:
            bucket = self._request_bucket(person, now)
            if not self._take_calls(bucket, 1, now):
                return True
            bucket.full = now + bucket.room
        return False

    def wait_for_tool(self, person: str, entry: ToolEntry) -> int:
        """Charge a person for a call of a tool; return how many seconds to wait.

        0 means that the call may run now.  All servers that offer the tool share one
        count.
        """
        if not self.on or not person:
            return 0
        now = self._clock()
        with self._lock:
            return self._take_calls(self._tool_bucket(person, entry, now), 1, now)

    def charge_of(self, person: str, entry: ToolEntry) -> Charge | None:
        """Return what `admits` takes; None if the person is not limited."""
        if not self.on or not person:
            return None
        now = self._clock()
        with self._lock:
            request = self._request_bucket(person, now)
            return Charge(request, self._tool_bucket(person, entry, now))

    def is_current(self, charge: Charge, now: float) -> bool:
        buckets = self._persons
        return charge.tool.turn == buckets.turn and now < buckets.turns_at

    def admits(self, charge: Charge, now: float) -> bool:
        """Charge both buckets; take nothing and return False if one has no room."""
        request, tool = charge.request, charge.tool
        with self._lock:
            request_full = (request.full if request.full > now else now) + request.cost
            tool_full = (tool.full if tool.full > now else now) + tool.cost
            if request_full - now > request.room or tool_full - now > tool.room:
                return False
            request.full, tool.full = request_full, tool_full
            if not request.count:
                self._used(request)
            if not tool.count:
                self._used(tool)
            request.count += 1
            tool.count += 1
            return True

    def sentence(self, entry: ToolEntry, wait: int) -> str:
        """Return the text for a model that has to wait for a tool."""
        interval, room = self._parts_of_tool(entry)
        return (
            f"You call {entry.definition.name} too often: one person may call it"
            f" {_times_text(MINUTE_S / interval)} a minute, and at most"
            f" {_times_text(room / interval)} in one burst. Wait {_seconds_text(wait)}."
            " If there are many items, ask for more of them in one call."
        )

    def _take_calls(self, bucket: Bucket, count: int, now: float) -> int:
        """Take calls out of a bucket; return how many seconds to wait instead, or 0."""
        if not bucket.count:
            self._used(bucket)
        bucket.count += count
        cost = bucket.cost * count
        full = (bucket.full if bucket.full > now else now) + cost
        # A batch may be larger than this process's share of the burst.
        excess = full - now - max(bucket.room, cost)
        if excess <= 0:
            # Such a batch must not leave a debt that is larger than the bucket.
            bucket.full = min(full, now + bucket.room)
            return 0
        return max(1, math.ceil(excess))

    def _request_bucket(self, person: str, now: float) -> Bucket:
        return self._buckets_of(person).bucket_of(person, *self._request, now)

    def _tool_bucket(self, person: str, entry: ToolEntry, now: float) -> Bucket:
        key = person, entry.definition.name
        return self._buckets_of(person).bucket_of(key, *self._parts_of_tool(entry), now)

    def _parts_of_tool(self, entry: ToolEntry) -> tuple[float, float]:
        rate = entry.definition.calls_per_minute
        if rate is None:
            return self._tool
        return _interval_and_room(rate, min(rate, TOOL_BURST))

    def _buckets_of(self, person: str) -> Buckets:
        return self._addresses if person[0] == ADDRESS else self._persons


def _interval_and_room(rate: float, burst: float) -> tuple[float, float]:
    """Return the interval between two calls and the room of a bucket, in seconds."""
    interval = MINUTE_S / rate
    return interval, interval * burst


def _times_text(number: float) -> str:
    return "once" if round(number) == 1 else f"{round(number)} times"


def _seconds_text(number: int) -> str:
    return "1 second" if number == 1 else f"{number} seconds"


# -- minute limit ----------------------------------------------------------------------

MAX_KEYS: Final = 1_000
"""If there are more keys, all counts start anew."""


class MinuteLimit:
    """A limit per key and minute, in this process; usable from any thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._recent: dict[str, deque[float]] = {}

    def count_attempt(self, key: str, now: float) -> bool:
        """Count an attempt at this time (monotonic); False if there were too many."""
        with self._lock:
            if len(self._recent) > MAX_KEYS:
                self._recent.clear()
            recent = self._recent.setdefault(key, deque(maxlen=self._limit))
            if len(recent) == self._limit and now - recent[0] < MINUTE_S:
                return False
            recent.append(now)
            return True
