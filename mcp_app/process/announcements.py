"""Announces changes to the open streams that watch them."""

from __future__ import annotations

import asyncio
import logging
from collections import ChainMap, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from django.db import Error as DatabaseError

from mcp_app.catalog.bindings import Binding
from mcp_app.invalidation import changes
from mcp_app.invalidation.change_reader import (
    ChangedTopics,
    ChangeReader,
    ChangeSet,
    MissedTopics,
    Name,
)
from mcp_app.invalidation.compaction import compact
from mcp_app.invalidation.workers import FRESHNESS, WorkerRow
from mcp_app.pools.database import reader, writer
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.listeners import LISTS, Announcement, Listener, Listeners, Personal

logger = logging.getLogger("mcp_app.process")

_NO_TOPICS = (changes.MODEL, changes.RIGHTS)
"""Kinds of changes that are no topics: each stream derives its own announcement."""
FOLDS = 2
"""Attempts to give changes a number by compaction before they are announced."""
Hears: TypeAlias = Callable[[Listener, str], Awaitable[bool]]
"""Whether the client of a stream may read a resource."""
LISTS_ALONE = frozenset(LISTS)
PATIENCE_S = 2.0
"""Seconds to wait for rules that decide who may hear of a resource."""
RETRY = 1.0
"""Seconds between attempts to write the change of a call during an outage."""


@dataclass(slots=True, eq=False)
class Batch:
    """Changes that wait to be announced to the streams.

    `before` is the number up to which all changes belong to earlier batches.
    """

    news: ChangeSet
    before: int
    due: float
    numbers: dict[Name, int | None]
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def learn(self, news: ChangeSet) -> None:
        """Take the numbers that changes got by compaction since they were seen."""
        for name, number in self.numbers.items():
            if number is None:
                self.numbers[name] = news.numbers.get(name)


@dataclass(frozen=True, slots=True)
class Mark:
    """What had been seen at one moment, and which of that was not announced yet."""

    number: int
    known: frozenset[int]
    waiting: frozenset[Name]
    everything: bool

    def announced(self, change: ChangedTopics) -> bool:
        """Return whether the change was announced to streams that were open then.

        If it was not seen, or still waits, a later announcement covers it.
        """
        if self.everything or change.name in self.waiting:
            return False
        if change.number is not None and change.number <= self.number:
            return True
        return bool(change.ids) and change.ids <= self.known


class Announcements:
    """Announces changes to the open streams, in the order in which they were read."""

    def __init__(
        self,
        listeners: Listeners,
        look: Callable[[], Awaitable[None]],
        row: WorkerRow,
        bindings: Mapping[str, Binding],
        personal: Personal,
        hears: Hears,
    ) -> None:
        self._listeners = listeners
        self._look = look
        self._row = row
        self._bindings = bindings
        self._personal = personal
        self._hears = hears
        self._reader = ChangeReader()
        self._pending: deque[Batch] = deque()
        self._announcing: asyncio.Future[None] | None = None
        self._folding: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Future[Any]] = set()
        self._untold: set[tuple[str, str]] = set()

    def read(self) -> ChangeSet:
        """Return the new changes; blocks, with one statement if there are none."""
        return self._reader.read()

    def seen(self, news: ChangeSet) -> None:
        """Queue loaded changes for announcement, and start compaction."""
        before = self._reader.number
        self._reader.seen(news)
        for batch in self._pending:
            batch.learn(news)
        if news.everything or news.topics() or any(map(news.refs, _NO_TOPICS)):
            due = asyncio.get_running_loop().time() + FRESHNESS
            numbers = {name: news.numbers.get(name) for name in news.rows}
            self._pending.append(Batch(news, before, due, numbers))
            if self._announcing is None or self._announcing.done():
                self._announcing = asyncio.ensure_future(self._announce_all())
                self.keep(self._announcing)
        if news.unfolded:
            self._fold()

    # -- what was announced -------------------------------------------------------

    @property
    def number(self) -> int:
        """The number up to which every change has been announced."""
        return self._pending[0].before if self._pending else self._reader.number

    async def begun(self) -> int:
        """Return `number` once what the process began with is announced."""
        while self._pending and self._pending[0].news.first:
            await self._pending[0].over.wait()
        return self.number

    def mark(self) -> Mark:
        """Return what has been seen and announced so far."""
        return Mark(
            self._reader.number,
            self._reader.known,
            frozenset(name for each in self._pending for name in each.numbers),
            any(each.news.everything for each in self._pending),
        )

    def caught_up(
        self, mark: Mark, missed: MissedTopics, stream: Listener
    ) -> tuple[list[str], int]:
        """Return what to tell a stream whose messages are held since the mark.

        Then the stream has been told everything up to the number that is returned with
        it.  What changed again, and will be announced later, is left out.
        """
        if missed.everything:
            return list(stream.watching()), self.number
        told = [each for each in missed.changes if mark.announced(each)]
        later = [each for each in missed.changes if not mark.announced(each)]
        waits = self._wanted(stream, later)
        wanted = [each for each in self._wanted(stream, told) if each not in waits]
        # A change without a number will get a greater one.
        numbered = [each for each in later if each.number is not None]
        if self._wanted(stream, numbered):
            return wanted, self.number
        return wanted, max(self.number, missed.number)

    def _wanted(self, stream: Listener, changes: Iterable[ChangedTopics]) -> list[str]:
        numbers = {each.name: each.number for each in changes}
        return self._announcement(numbers, everything=False).wanted(stream)

    # -- announcing ---------------------------------------------------------------

    async def _announce_all(self) -> None:
        """Announce the batches once every process serves the new state.

        A request that arrives `FRESHNESS` after the change was seen here is served by a
        process that has checked since its commit.
        """
        loop = asyncio.get_running_loop()
        while self._pending:
            batches = list(self._pending)
            others = await self._others_live()
            if others:
                await asyncio.sleep(batches[0].due - loop.time())
                batches = [each for each in batches if each.due <= loop.time()]
            await self._number(batches)
            for batch in batches:
                self._pending.popleft()
                batch.over.set()
            # Without other processes, nobody was served anything older.
            told = [each for each in batches if others or not each.news.first]
            await self.announce(self._of(told))

    async def heard(self, listener: Listener, wanted: Sequence[str]) -> list[str]:
        """Return which of the lists and resources the stream's client may hear of.

        If that cannot be decided now, return all: the client could read them before.
        """
        try:
            async with asyncio.timeout(PATIENCE_S):
                return [
                    each
                    for each in wanted
                    if each in LISTS or await self._hears(listener, each)
                ]
        except (DatabaseError, Unavailable, TimeoutError):
            return list(wanted)

    def _of(self, batches: list[Batch]) -> Announcement:
        numbers = ChainMap(*(each.numbers for each in reversed(batches)))
        everything = any(each.news.everything for each in batches)
        return self._announcement(numbers, everything=everything)

    def _announcement(
        self, numbers: Mapping[Name, int | None], *, everything: bool
    ) -> Announcement:
        return Announcement(numbers, everything, self._shows, self._personal)

    async def announce(self, announcement: Announcement) -> None:
        """Tell the streams that are open now, each change once."""
        asked = []
        for listener in self._listeners if announcement else ():
            wanted = announcement.wanted(listener)
            if LISTS_ALONE.issuperset(wanted):
                self._tell(listener, wanted)
            else:
                asked.append((listener, wanted))
        # Checking permissions for one stream does not delay the others.
        heard = await asyncio.gather(*(self.heard(*each) for each in asked))
        for (listener, _), wanted in zip(asked, heard, strict=True):
            self._tell(listener, wanted)

    def _tell(self, listener: Listener, wanted: Sequence[str]) -> None:
        if wanted:
            listener.tell(wanted, self.number)

    async def _others_live(self) -> bool:
        try:
            return await reader.run(self._row.others_live)
        except (DatabaseError, Unavailable):
            return True

    async def _number(self, batches: list[Batch]) -> None:
        """Compact the rows of the batches, so that they are not announced again later.

        If that fails, the batches are announced without numbers.
        """
        rows = frozenset[int]().union(*(each.news.unfolded for each in batches))
        for _ in range(FOLDS):
            if not rows & self._reader.known:
                return
            await asyncio.wait([self._fold()])
            looking = asyncio.ensure_future(self._look())
            self.keep(looking)
            await asyncio.wait([looking])

    def _fold(self) -> asyncio.Future[None]:
        if self._folding is None or self._folding.done():
            self._folding = asyncio.ensure_future(writer.run(compact))
            self.keep(self._folding)
        return self._folding

    def _shows(self, models: frozenset[str], uri: str) -> bool:
        """Return whether a URI may show an instance of one of these models."""
        return any(
            each.model._meta.label_lower in models and each.shows(uri)
            for each in self._bindings.values()
        )

    def tell(self, what: str, server: str) -> None:
        """Write a change that a call reported, and check at once.

        In an outage one copy is kept and retried: the call was already answered.
        """
        if (what, server) not in self._untold:
            self.keep(asyncio.ensure_future(self._told(what, server)))

    async def _told(self, what: str, server: str) -> None:
        while not await self._written(what, server):
            self._untold.add((what, server))
            await asyncio.sleep(RETRY)
            self._untold.discard((what, server))
        await self._look()

    async def _written(self, what: str, server: str) -> bool:
        try:
            await writer.run(changes.record_notification, what, server)
        except Unavailable as error:
            logger.warning("A change could not be written yet: %s", error)
            return False
        return True

    def keep(self, task: asyncio.Future[Any]) -> None:
        """Hold a task until it is done: the loop has only a weak reference."""
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("A background task failed: %s", error)
