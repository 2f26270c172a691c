"""What a process reads and writes before a standing stream opens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Protocol

from mcp_app.invalidation.change_reader import missed_since
from mcp_app.invalidation.workers import WorkerRow
from mcp_app.pools.database import reader, writer
from mcp_app.process.announcements import Announcements
from mcp_app.streams import event_ids
from mcp_app.streams.event_ids import SeenEvents
from mcp_app.streams.listeners import Listener
from mcp_app.streams.open_session import OpenSession
from mcp_app.streams.session_store import SessionStore


class Standing(Listener, Protocol):
    """The GET stream of a session, before it is open."""

    @property
    def public_id(self) -> str:
        """The id of the stream, with which its event ids begin."""

    def begin(self, observed: SeenEvents) -> None:
        """Hold messages from now on; `observed` is what the client has seen."""

    def opened(self, missed: Iterable[str], announced: int, number: int) -> None:
        """Write what the client missed; `number` counts the streams of its session."""


class StreamOpener:
    """Opens the streams of this process; used on the loop only."""

    def __init__(
        self,
        announcements: Announcements,
        sessions: SessionStore,
        row: WorkerRow,
        spawn: Callable[[Awaitable[None]], object],
    ) -> None:
        self._announcements = announcements
        self._sessions = sessions
        self._row = row
        self._spawn = spawn

    async def standing(
        self, stream: Standing, session: OpenSession, observed: SeenEvents | None
    ) -> None:
        """Open a GET stream and tell it what its client missed at any process.

        `observed` is what an event id says; None if the client has received no event
        with an id.  Changes that were announced here before the stream began to listen
        are read from the database; later ones are announced to it as to all streams.
        """
        announcements = self._announcements
        await announcements.wait_for_first_batch()
        position = await self._sessions.client_position(session)
        if observed is not None and observed.logged > position.logged:
            raise event_ids.wrong_event_id()
        logged, since = observed or position
        mark = announcements.current_mark()
        stream.begin(SeenEvents(logged, since))
        missed = await reader.run(missed_since, since)
        if since > missed.number:
            if observed is not None:
                raise event_ids.wrong_event_id()
            # The counter was reset: its numbers begin again.
            stream.begin(SeenEvents(logged, since := 0))
        if not session.revision.resumable:
            # This client has no way to say what it has seen.
            since = max(since, announcements.announced_number)
        number = await self._sessions.stream_opened(session, stream.public_id, since)
        topics, announced = announcements.topics_since(mark, missed, stream)
        stream.opened(
            await announcements.permitted_topics(stream, topics), announced, number
        )

    @asynccontextmanager
    async def store_watched_uris(self, uris: Collection[str]) -> AsyncIterator[None]:
        """Store that a listen stream watches these URIs, until the block ends."""
        resources = self._row.resources
        resources.begin(uris)
        try:
            if uris:
                await writer.run(self._row.watch, uris)
            yield
        finally:
            if uris_over := resources.end(uris):
                self._spawn(writer.run(resources.delete_rows, uris_over))
