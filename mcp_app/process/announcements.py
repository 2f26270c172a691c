"""From change rows to the streams that are to be told of them."""

from __future__ import annotations

import asyncio
import logging
from collections import ChainMap, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from django.db import Error as DatabaseError

from mcp_app.catalog.bindings import Binding
from mcp_app.pools.database import reader, writer
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.announcing import Announcement, Personal
from mcp_app.streams.listeners import LISTS, Listener, Listeners
from mcp_app.wakeup import changes
from mcp_app.wakeup.folding import fold
from mcp_app.wakeup.news import Changed, Missed, Name, News, NewsReader
from mcp_app.wakeup.workers import FRESHNESS, WorkerRow

logger = logging.getLogger("mcp_app.process")

_NO_TOPICS = (changes.MODEL, changes.RIGHTS)
"""Kinds of changes of which each stream hears something else, or nothing."""
FOLDS = 2
"""How often it is folded so that what is announced has a number."""
Hears: TypeAlias = Callable[[Listener, str], Awaitable[bool]]
"""Whether the client of a stream may read a resource."""
LISTS_ALONE = frozenset(LISTS)
PATIENCE_S = 2.0
"""So long it is waited for rules that say who may hear of a resource."""
RETRY = 1.0
"""In an outage so many seconds pass until a change of a call is written again."""


@dataclass(slots=True, eq=False)
class Batch:
    """News that streams are to be told of, from when they were seen to when all are.

    `before` is the number up to which everything was news earlier.
    """

    news: News
    before: int
    due: float
    numbers: dict[Name, int | None]
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def learn(self, news: News) -> None:
        """Take the numbers of what was not folded when it was seen."""
        for name, number in self.numbers.items():
            if number is None:
                self.numbers[name] = news.numbers.get(name)


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment: what was seen, and what of that was not announced."""

    number: int
    known: frozenset[int]
    waiting: frozenset[Name]
    everything: bool

    def announced(self, change: Changed) -> bool:
        """Whether streams that were open then have been told.

        What was not seen is told to everybody later, and so is what waits.
        """
        if self.everything or change.name in self.waiting:
            return False
        if change.number is not None and change.number <= self.number:
            return True
        return bool(change.ids) and change.ids <= self.known


class Announcements:
    """Tells the open streams of what the change rows say, in the order of the news."""

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
        self._reader = NewsReader()
        self._pending: deque[Batch] = deque()
        self._announcing: asyncio.Future[None] | None = None
        self._folding: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Future[Any]] = set()
        self._untold: set[tuple[str, str]] = set()

    def read(self) -> News:
        """Return what is new; blocks, one statement where nothing is."""
        return self._reader.read()

    def seen(self, news: News) -> None:
        """What the news name is loaded here: tell the streams, and tidy up."""
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
        """The one up to which every change has been announced to who was to be told."""
        return self._pending[0].before if self._pending else self._reader.number

    async def begun(self) -> int:
        """Return that number, once what the process began with is done with."""
        while self._pending and self._pending[0].news.first:
            await self._pending[0].over.wait()
        return self.number

    def mark(self) -> Mark:
        """Return what was seen and announced up to now."""
        return Mark(
            self._reader.number,
            self._reader.known,
            frozenset(name for each in self._pending for name in each.numbers),
            any(each.news.everything for each in self._pending),
        )

    def caught_up(
        self, mark: Mark, missed: Missed, stream: Listener
    ) -> tuple[list[str], int]:
        """Return what a stream is to be told that holds all it is told since the mark.

        With that it has been told everything up to the number that comes with it.  What
        changed again, and is announced later for that, is not told twice.
        """
        if missed.everything:
            return list(stream.watching()), self.number
        told = [each for each in missed.changes if mark.announced(each)]
        later = [each for each in missed.changes if not mark.announced(each)]
        waits = self._wanted(stream, later)
        wanted = [each for each in self._wanted(stream, told) if each not in waits]
        # What has no number will have one that is greater.
        numbered = [each for each in later if each.number is not None]
        if self._wanted(stream, numbered):
            return wanted, self.number
        return wanted, max(self.number, missed.number)

    def _wanted(self, stream: Listener, changes: Iterable[Changed]) -> list[str]:
        numbers = {each.name: each.number for each in changes}
        return self._announcement(numbers, everything=False).wanted(stream)

    # -- announcing ---------------------------------------------------------------

    async def _announce_all(self) -> None:
        """Tell the streams once every process serves what they will ask for.

        Whoever asks `FRESHNESS` after the change was seen here is answered by a process
        that has checked since its commit.
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
            # Alone, nobody can have been answered from anything older than the first.
            told = [each for each in batches if others or not each.news.first]
            await self.announce(self._of(told))

    async def heard(self, listener: Listener, wanted: Sequence[str]) -> list[str]:
        """Return what of that a stream may hear of: a resource is read by its client.

        Where that cannot be known now, what it watches is told: it was read before.
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
        # Who has to be asked whether it may hear of something holds up nobody else.
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
        """Let what is announced have its number, so that it is not announced again.

        Where that fails it is announced all the same.
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
            self._folding = asyncio.ensure_future(writer.run(fold))
            self.keep(self._folding)
        return self._folding

    def _shows(self, models: frozenset[str], uri: str) -> bool:
        """Whether a URI may show an instance of one of these models."""
        return any(
            each.model._meta.label_lower in models and each.shows(uri)
            for each in self._bindings.values()
        )

    def tell(self, what: str, server: str) -> None:
        """Write a change that a call made, and look at once.

        In an outage it is kept, once, until it can be written: the call was answered.
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
            await writer.run(changes.told, what, server)
        except Unavailable as error:
            logger.warning("A change waits to be written: %s", error)
            return False
        return True

    def keep(self, task: asyncio.Future[Any]) -> None:
        """Hold a task until it is done: the loop alone would let it go."""
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("Something beside the requests failed: %s", error)
