"""Announces changes to the open streams that watch them."""

from __future__ import annotations

import asyncio
import logging
from collections import ChainMap, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

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
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.listeners import LISTS, Announcement, Listener, Listeners, Personal

logger = logging.getLogger("mcp_app.process")

_NO_TOPICS = (changes.MODEL, changes.RIGHTS)
"""Changes of these kinds name no topic; each stream works out what they mean for it."""
COMPACTION_ATTEMPTS = 2
"""Attempts to give changes a number by compaction before they are announced."""
MayRead: TypeAlias = Callable[[Listener, str], Awaitable[bool]]
"""Whether the client of a stream may read a resource."""
LISTS_ALONE = frozenset(LISTS)
RULES_TIMEOUT_S = 2.0
"""Seconds to wait for rules that decide who may read a resource."""
RETRY_S = 1.0
"""Seconds between attempts to write the change of a call during an outage."""

Value = TypeVar("Value")


@dataclass(slots=True, eq=False)
class PendingChanges:
    """Changes that wait to be announced to the streams.

    Changes up to the number `previous` are in earlier batches.  In `numbers`, a change
    that is not compacted yet has None.
    """

    change_set: ChangeSet
    previous: int
    due: float
    numbers: dict[Name, int | None]
    over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Mark:
    """The changes that were read up to one moment, and those not announced then."""

    number: int
    rows: frozenset[int]
    waiting: frozenset[Name]
    everything: bool

    def was_announced(self, change: ChangedTopics) -> bool:
        """Return whether the change was announced to streams that were open then.

        Return False if it was not read then, or still waits: it is announced later.
        """
        if self.everything or change.name in self.waiting:
            return False
        if change.number is not None and change.number <= self.number:
            return True
        return bool(change.ids) and change.ids <= self.rows


class Announcements:
    """Announces changes to the open streams, in the order in which they were read."""

    def __init__(
        self,
        listeners: Listeners,
        look: Callable[[], Awaitable[None]],
        row: WorkerRow,
        bindings: Mapping[str, Binding],
        personal: Personal,
        may_read: MayRead,
    ) -> None:
        self._listeners = listeners
        self._look = look
        self._row = row
        self._bindings = bindings
        self._personal = personal
        self._may_read = may_read
        self._reader = ChangeReader()
        self._pending: deque[PendingChanges] = deque()
        self._announcing: asyncio.Future[None] | None = None
        self._compaction: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Future[Any]] = set()
        self._unwritten_changes: set[tuple[str, str]] = set()

    def read(self) -> ChangeSet:
        return self._reader.read_changes()

    def take_in(self, change_set: ChangeSet) -> None:
        previous = self._reader.last_number
        self._reader.advance_past(change_set)
        # Older batches get the numbers that compaction has now given their changes.
        for batch in self._pending:
            for name, number in batch.numbers.items():
                if number is None:
                    batch.numbers[name] = change_set.numbers.get(name)
        if (
            change_set.everything
            or change_set.changed_topics()
            or any(map(change_set.refs_of_kind, _NO_TOPICS))
        ):
            due = asyncio.get_running_loop().time() + FRESHNESS
            numbers = {name: change_set.numbers.get(name) for name in change_set.rows}
            self._pending.append(PendingChanges(change_set, previous, due, numbers))
            if self._announcing is None or self._announcing.done():
                self._announcing = self.spawn_task(self._announce_all())
        if change_set.uncompacted_ids:
            self._start_compaction()

    # -- what was announced -------------------------------------------------------

    @property
    def announced_number(self) -> int:
        return self._pending[0].previous if self._pending else self._reader.last_number

    async def wait_for_first_batch(self) -> int:
        """Wait until the first batch is announced; return `announced_number`."""
        while self._pending and self._pending[0].change_set.first:
            await self._pending[0].over.wait()
        return self.announced_number

    def current_mark(self) -> Mark:
        return Mark(
            self._reader.last_number,
            self._reader.uncompacted_ids,
            frozenset(name for each in self._pending for name in each.numbers),
            any(each.change_set.everything for each in self._pending),
        )

    def topics_since(
        self, mark: Mark, missed: MissedTopics, stream: Listener
    ) -> tuple[list[str], int]:
        """Return the topics to tell a stream that buffers messages since the mark.

        Also return the number up to which the stream is then complete.  Changes that
        will be announced later are left out.
        """
        if missed.everything:
            return list(stream.watching()), self.announced_number
        announced = [change for change in missed.changes if mark.was_announced(change)]
        later = [change for change in missed.changes if not mark.was_announced(change)]
        later_topics = self._wanted_topics(stream, later)
        topics = self._wanted_topics(stream, announced)
        topics = [each for each in topics if each not in later_topics]
        # A change without a number will get one greater than `missed.number`.
        numbered = [each for each in later if each.number is not None]
        if self._wanted_topics(stream, numbered):
            return topics, self.announced_number
        return topics, max(self.announced_number, missed.number)

    def _wanted_topics(
        self, stream: Listener, changes: Iterable[ChangedTopics]
    ) -> list[str]:
        numbers = {change.name: change.number for change in changes}
        return self._announcement(numbers, everything=False).wanted(stream)

    # -- announcing ---------------------------------------------------------------

    async def _announce_all(self) -> None:
        """Announce the batches once every process serves the new state.

        Wait `FRESHNESS` for that: by then each process has checked since the commit.
        """
        loop = asyncio.get_running_loop()
        while self._pending:
            batches = list(self._pending)
            has_others = await self._others_live()
            if has_others:
                await asyncio.sleep(batches[0].due - loop.time())
                batches = [each for each in batches if each.due <= loop.time()]
            await self._number_batches(batches)
            for batch in batches:
                self._pending.popleft()
                batch.over.set()
            # If no other process lives, no client saw a state before the first check.
            announceable = [
                each for each in batches if has_others or not each.change_set.first
            ]
            await self.announce_to_streams(self._announcement_of(announceable))

    async def permitted_topics(
        self, listener: Listener, topics: Sequence[str]
    ) -> list[str]:
        """Return the lists, and the resources that the stream's client may read.

        If that cannot be decided now, return all: the client could read them before.
        """
        try:
            async with asyncio.timeout(RULES_TIMEOUT_S):
                return [
                    each
                    for each in topics
                    if each in LISTS or await self._may_read(listener, each)
                ]
        except (DatabaseError, Unavailable, TimeoutError):
            return list(topics)

    def _announcement_of(self, batches: list[PendingChanges]) -> Announcement:
        # `ChainMap` takes the first value: the number in the newest batch.
        numbers = ChainMap(*(batch.numbers for batch in reversed(batches)))
        everything = any(batch.change_set.everything for batch in batches)
        return self._announcement(numbers, everything=everything)

    def _announcement(
        self, numbers: Mapping[Name, int | None], *, everything: bool
    ) -> Announcement:
        return Announcement(numbers, everything, self._may_show_model, self._personal)

    async def announce_to_streams(self, announcement: Announcement) -> None:
        """Tell the streams that are open now, each change once."""
        undecided = []
        for listener in self._listeners if announcement else ():
            topics = announcement.wanted(listener)
            # Every client may know of the lists; resources need a check.
            if LISTS_ALONE.issuperset(topics):
                self._notify_listener(listener, topics)
            else:
                undecided.append((listener, topics))
        # Checking permissions for one stream does not delay the others.
        topic_lists = await asyncio.gather(
            *(self.permitted_topics(*each) for each in undecided)
        )
        for (listener, _), topics in zip(undecided, topic_lists, strict=True):
            self._notify_listener(listener, topics)

    def _notify_listener(self, listener: Listener, topics: Sequence[str]) -> None:
        if topics:
            listener.tell(topics, self.announced_number)

    async def _others_live(self) -> bool:
        try:
            return await reader.run(self._row.others_live)
        except (DatabaseError, Unavailable):
            return True

    async def _number_batches(self, batches: list[PendingChanges]) -> None:
        """Compact the rows of the batches, so that they are not announced again later.

        If that fails, the batches are announced without numbers.
        """
        id_sets = (each.change_set.uncompacted_ids for each in batches)
        ids = frozenset[int]().union(*id_sets)
        for _ in range(COMPACTION_ATTEMPTS):
            if not ids & self._reader.uncompacted_ids:
                return
            # `wait` does not raise if the compaction or the check fails.
            await asyncio.wait([self._start_compaction()])
            await asyncio.wait([self.spawn_task(self._look())])

    def _start_compaction(self) -> asyncio.Future[None]:
        if self._compaction is None or self._compaction.done():
            self._compaction = self.spawn_task(writer.run(compact))
        return self._compaction

    def _may_show_model(self, models: frozenset[str], uri: str) -> bool:
        return any(
            binding.model._meta.label_lower in models and binding.may_show_uri(uri)
            for binding in self._bindings.values()
        )

    def tell(self, what: str, server: str) -> None:
        """Write a change that a call reported, and check at once.

        In an outage equal changes wait as one and are retried.
        """
        if (what, server) not in self._unwritten_changes:
            self.spawn_task(self._write_with_retries(what, server))

    async def _write_with_retries(self, what: str, server: str) -> None:
        while True:
            try:
                await writer.run(changes.record_notification, what, server)
                break
            except Unavailable as error:
                logger.warning("A change could not be written yet: %s", error)
            self._unwritten_changes.add((what, server))
            await asyncio.sleep(RETRY_S)
            self._unwritten_changes.discard((what, server))
        await self._look()

    def spawn_task(self, work: Awaitable[Value]) -> asyncio.Future[Value]:
        """Start a task, and hold it until it is done: the loop refers to it weakly."""
        task = start_background_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._discard_task)
        return task

    def _discard_task(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("A background task failed: %s", error)
