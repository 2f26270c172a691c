"""Shares a person's rate between the processes that serve that person.

A key of `process.rates` is *hot* in a process if it is used often there.  A process
with hot keys writes once a second how often they are used (the *demand*) into its row,
and reads what the others wrote.  If all demand for a key is above its rate, the share
of a process is its part of that demand.  While no key is hot, or no other process
lives, no statement is sent.

This stops runaway clients; it does not count exactly.  A client that moves from process
to process, and stays below its rate, is never refused.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Final

from django.db import Error as DatabaseError

from mcp_app.pools.loop_thread import start_background_task
from mcp_app.process.rates import Bucket
from mcp_app.protocol.errors import Unavailable

logger = logging.getLogger("mcp_app.process")

WINDOW_S: Final = 10.0
FEWEST: Final = 5
"""A key with fewer calls within the window is not hot."""
FEW: Final = 8
"""If more processes live, `REPEATED` calls are enough."""
REPEATED: Final = 2
"""Calls within the window that each hot key has at least."""
LASTING: Final = 1.5
"""A hot key turns cold only below the fewest calls divided by this."""
PART: Final = 8
"""A hot key uses at least 1/8 of its rate, divided by the number of processes."""
MAX_HOT_KEYS: Final = 50
LEAST_SHARE: Final = 0.02
UNSURE: Final = 2.0
"""If demand is at most so many times the rate, a share is at most halved per second."""
LEFT: Final = 0.07
"""Part of a hot key's rate that is left to processes where it is not hot."""
WRITE_S: Final = 1.0
TICK_S: Final = 0.25
VERSION: Final = 1
GREATEST: Final = 1e6
"""The greatest demand (calls a second) that is believed."""


class HotKeys:
    """Counts uses of buckets, computes demand and shares; no clock, no database."""

    def __init__(self, secret: bytes, now: float) -> None:
        """`secret` hides the keys from readers of the rows."""
        self._secret = secret
        self._used: list[Bucket] = []
        self._window: deque[tuple[float, dict[Bucket, int]]] = deque()
        self._sums: Counter[Bucket] = Counter()
        self._demand: dict[Bucket, float] = {}
        """The demand of buckets with at least `REPEATED` uses within the window.

        So a flood of addresses that each come once adds nothing here.
        """
        self._counted = now
        self.hot: set[Bucket] = set()

    @property
    def is_window_empty(self) -> bool:
        return not self._used and not self._window

    def note_bucket(self, bucket: Bucket) -> bool:
        """Note a bucket whose count begins; return whether it is the first."""
        self._used.append(bucket)
        return len(self._used) == 1

    def is_rising(self, now: float, living: int) -> bool:
        """Whether a key became hot since the last count, or at least twice as hot."""
        seconds = max(now - self._counted, TICK_S)
        return any(
            bucket.count >= max(3, 2 * seconds * self._demand.get(bucket, 0.0))
            and self._sums[bucket] + bucket.count >= _fewest_calls(bucket, living)
            for bucket in self._used
        )

    def count_uses(self, now: float, living: int) -> None:
        seconds = max(now - self._counted, TICK_S)
        counts = {bucket: bucket.count for bucket in self._used}
        for bucket in self._used:
            bucket.count = 0
        self._used, self._counted = [], now
        if counts:
            self._window.append((now, counts))
        for bucket, count in counts.items():
            self._sums[bucket] += count
            if self._sums[bucket] >= REPEATED:
                self._demand.setdefault(bucket, 0.0)
        self._forget_expired(now)
        self._demand = {
            bucket: (demand + counts.get(bucket, 0) / seconds) / 2
            for bucket, demand in self._demand.items()
        }
        hot = {bucket for bucket in self._demand if self._is_hot(bucket, living)}
        for bucket in self.hot - hot:
            bucket.set_share(1.0)
        self.hot = hot

    def _forget_expired(self, now: float) -> None:
        while self._window and self._window[0][0] <= now - WINDOW_S:
            for bucket, count in self._window.popleft()[1].items():
                self._sums[bucket] -= count
                if self._sums[bucket] < REPEATED:
                    self._demand.pop(bucket, None)
                if not self._sums[bucket]:
                    del self._sums[bucket]

    def _is_hot(self, bucket: Bucket, living: int) -> bool:
        fewest = _fewest_calls(bucket, living)
        if bucket in self.hot:
            # Else a key near the limit would turn cold at times and get its full rate.
            fewest /= LASTING
        has_enough_calls = self._sums[bucket] >= fewest
        return has_enough_calls and self._demand[bucket] * WINDOW_S >= fewest

    def demand_text(self) -> str:
        """Return the demand of the hottest keys, as the row stores it."""
        hottest = sorted(self.hot, key=self._demand.__getitem__, reverse=True)
        demand = {
            self._hashed_name(each): round(self._demand[each], 3)
            for each in hottest[:MAX_HOT_KEYS]
        }
        return json.dumps({"version": VERSION, "demand": demand})

    def set_shares(self, texts: Iterable[str], living: int) -> None:
        """Set the shares of the hot keys; `texts` are those of other processes."""
        min_share = min(LEAST_SHARE, 1 / (10 * living))
        peer_demand: Counter[str] = Counter()
        for text in texts:
            peer_demand.update(demand_of(text))
        for bucket in self.hot:
            demand = self._demand[bucket]
            total = demand + peer_demand[self._hashed_name(bucket)]
            times_rate = total * bucket.interval
            if times_rate <= 1 or total == demand:
                # Below the rate, no process needs to limit the key.
                bucket.set_share(1.0)
                continue
            share = demand / total * (1 - LEFT)
            if times_rate <= UNSURE:
                # A client may have moved here, and its old process still counts it.
                share = max(share, bucket.interval / bucket.cost / 2)
            bucket.set_share(max(min_share, share))

    def _hashed_name(self, bucket: Bucket) -> str:
        key = repr(bucket.key).encode("utf-8", "replace")
        return blake2b(key, key=self._secret, digest_size=9).hexdigest()


def demand_of(text: str) -> Mapping[str, float]:
    """Return the demand in a row's text; nothing if the text is not understood."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if type(value) is not dict or value.get("version") != VERSION:
        return {}
    demand = value.get("demand")
    if type(demand) is not dict:
        return {}
    return {
        name: float(number)
        for name, number in list(demand.items())[:MAX_HOT_KEYS]
        if type(number) in (int, float) and 0 < number <= GREATEST
    }


def _fewest_calls(bucket: Bucket, living: int) -> float:
    """Return how many calls make a key hot: the more processes, the fewer calls."""
    calls_at_rate = WINDOW_S / bucket.interval
    fewest = FEWEST if living <= FEW else REPEATED
    return max(fewest, math.ceil(calls_at_rate / PART / living))


class SharedRates:
    """Exchanges demand with the other processes, as long as there is any."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        secret: bytes,
        living: Callable[[], int],
        run: Callable[[str], Awaitable[list[str]]],
    ) -> None:
        """`living` returns how many processes live, this one included.

        `run` stores a demand and returns those of the others.
        """
        self._loop = loop
        self._living = living
        self._exchange = run
        self.lock = threading.Lock()
        """Held while a bucket is counted; `note_bucket_use` is called under it."""
        self._keys = HotKeys(secret[: blake2b.MAX_KEY_SIZE], loop.time())
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._written = loop.time()

    def note_bucket_use(self, bucket: Bucket) -> None:
        if self._keys.note_bucket(bucket) and self._timer is None:
            self._loop.call_soon_threadsafe(self._start_timer)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(TICK_S, self._count_on_tick)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _count_on_tick(self) -> None:
        self._timer = None
        now, living = self._loop.time(), self._living()
        with self.lock:
            due = now - self._written >= WRITE_S or self._keys.is_rising(now, living)
            if due:
                self._keys.count_uses(now, living)
        if due:
            self._written = now
            if living == 1:
                self._keys.set_shares((), living)
            elif self._keys.hot and (self._task is None or self._task.done()):
                self._task = start_background_task(
                    self._exchange_demand(living), self._loop
                )
        if not self._keys.is_window_empty:
            self._timer = self._loop.call_later(TICK_S, self._count_on_tick)

    async def _exchange_demand(self, living: int) -> None:
        try:
            texts = await self._exchange(self._keys.demand_text())
            self._keys.set_shares(texts, living)
        except (DatabaseError, Unavailable) as error:
            # The shares stay as they are.
            logger.debug("Demand could not be exchanged: %s", error)
        except Exception:
            logger.exception("Demand could not be exchanged.")
