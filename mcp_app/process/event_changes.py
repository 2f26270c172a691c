"""What a process knows of the outbox, and which of its requests wait for events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from django.db import Error as DatabaseError

from mcp_app.pools.database import reader, writer
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.process.admission import NoAccess, Reason, find_caller
from mcp_app.protocol.errors import Unavailable
from mcp_app.protocol.events import EventError, Occurred
from mcp_app.server.events import dialect_for
from mcp_app.server.request import Request
from mcp_app.streams import occurrences as rows
from mcp_app.streams.occurrences import OutboxState, Portion

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process

MAX_TOPICS: Final = 10_000
MAX_LOADS: Final = 16
RETRY_S: Final = 0.25


REVOKED: Final = "You may not use this server any more."


class EventChanges:
    """The last number of each topic; used on the loop of its process only.

    A topic is known once it was asked for.  A change row says that something happened.
    Then one statement reads all new numbers, before any waiting request is told.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._state = OutboxState()
        self._last: dict[str, int] = {}
        self._unknown: set[str] = set()
        self._is_stale = True
        self._reading: asyncio.Future[OutboxState] | None = None
        self._waiters: dict[str, set[asyncio.Event]] = {}
        self._readers: list[Callable[[Collection[str]], None]] = []
        self._loads: dict[tuple[str, int, int], asyncio.Future[Portion]] = {}
        """Reads since the last change; requests that ask for the same share one."""

    def add_reader(self, reader: Callable[[Collection[str]], None]) -> None:
        """Call a function with the topics of new events, whenever there are any."""
        self._readers.append(reader)

    def note_changes(self) -> None:
        """Read what has happened, and wake the requests that wait for it."""
        self.mark_stale()
        # The read gives numbers to new events, even if nobody here listens.
        self._process.spawn_task(self._read_quietly())

    def mark_stale(self) -> None:
        """Make the next request read what has happened."""
        self._is_stale = True

    async def _read_quietly(self) -> None:
        try:
            while self._is_stale:
                await self._read_changes()
        except (DatabaseError, Unavailable):
            # The next request reads it.
            return

    async def _read_changes(self) -> None:
        """Read the new numbers; all that want them share one read."""
        if self._reading is not None:
            await asyncio.wait([self._reading])
            return
        self._is_stale, unknown = False, self._unknown
        self._unknown = set()
        work = writer.run(rows.load_state, unknown, self._state.newest)
        self._reading = reading = start_background_task(work)
        try:
            # The request that began the read may end; others still wait for it.
            state = await asyncio.shield(reading)
        except BaseException:
            self._is_stale = True
            self._unknown |= unknown
            raise
        finally:
            self._reading = None
        self._take_state(state, unknown)

    def _take_state(self, state: OutboxState, unknown: Collection[str]) -> None:
        if state.newest < self._state.newest:
            # Numbers only rise, so this is another database: forget the old numbers.
            self._last.clear()
        self._state = state
        self._loads.clear()
        if state.has_more:
            asyncio.get_running_loop().call_later(RETRY_S, self.note_changes)
        for topic, last in state.last.items():
            if topic in unknown or topic in self._last:
                self._last[topic] = last
            for event in self._waiters.get(topic, ()):
                event.set()
        for notify in self._readers:
            notify(state.last.keys())

    # -- for handlers (`server.ports.Events`) ---------------------------------------

    async def current_state(self, topic: str, min_number: int = 0) -> OutboxState:
        """Return the last numbers; the rows are read only after a change."""
        if len(self._last) >= MAX_TOPICS:
            self._last.clear()
        if min_number > self._state.newest:
            # Another process may have heard of an event before this one.
            self.mark_stale()
        while self._is_stale or self._reading or topic not in self._last:
            if topic not in self._last:
                self._unknown.add(topic)
            await self._read_changes()
        return replace(self._state, last={topic: self._last[topic]})

    async def load(self, topic: str, after: int, limit: int) -> Portion:
        key = topic, after, limit
        if key not in self._loads:
            if len(self._loads) >= MAX_LOADS:
                self._loads.clear()
            work = reader.run(rows.load_occurrences, topic, after, limit)
            self._loads[key] = start_background_task(work)
        try:
            return await asyncio.shield(self._loads[key])
        except (DatabaseError, Unavailable):
            self._loads.pop(key, None)
            raise

    async def load_latest(self, topic: str, limit: int) -> Sequence[Occurred]:
        return await reader.run(rows.load_latest, topic, limit)

    async def last_before(self, topic: str, after: int, age_ms: int) -> int:
        return await reader.run(rows.last_before, topic, after, age_ms)

    async def wait(self, topics: Collection[str], seconds: float) -> bool:
        """Return at the next event of these topics, or after so many seconds.

        Return False if the process stops: the client continues at another process.
        """
        event = asyncio.Event()
        for topic in topics:
            self._waiters.setdefault(topic, set()).add(event)
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return not self._process.stopping
        finally:
            for topic in topics:
                self._waiters[topic].discard(event)
                if not self._waiters[topic]:
                    del self._waiters[topic]
        return not self._process.stopping

    async def renew_request(self, request: Request) -> Request:
        slug, dialect = request.catalog.server.slug, dialect_for(request)
        try:
            caller = await find_caller(self._process, slug, request.principal)
        except NoAccess as error:
            if error.reason is Reason.NO_SERVER:
                message = "The server is gone."
                raise EventError(dialect, "not_found", message, kind="event") from None
            raise EventError(dialect, "forbidden", REVOKED, reason="revoked") from None
        return request.with_changes(catalog=caller.catalog, rights=caller.rights)
