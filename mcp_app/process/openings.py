"""What must be known and written before a standing stream is open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Protocol

from mcp_app.pools.database import reader, writer
from mcp_app.process.announcements import Announcements
from mcp_app.streams import event_ids
from mcp_app.streams.event_ids import Seen
from mcp_app.streams.listeners import Listener
from mcp_app.streams.open_session import OpenSession
from mcp_app.streams.session_store import SessionStore
from mcp_app.wakeup.news import missed_since
from mcp_app.wakeup.workers import WorkerRow


class Standing(Listener, Protocol):
    """The GET stream of a session, before it is open."""

    @property
    def public_id(self) -> str:
        """What its events are known by."""

    def begin(self, seen: Seen) -> None:
        """Hold what it is told from now on; its client has seen all up to this."""

    def opened(self, missed: Iterable[str], announced: int, number: int) -> None:
        """Write what the client missed; of its session it is the newest stream."""


class Openings:
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
        self, stream: Standing, session: OpenSession, seen: Seen | None
    ) -> None:
        """Tell a stream what its client missed, at whichever process that was.

        `seen` is what an event id says, None where the client brings none: then it has
        received nothing yet whose event had an id.  What was announced here before the
        stream began to listen is read; all else is announced to it like to the others.
        """
        announcements = self._announcements
        await announcements.begun()
        known = await self._sessions.seen(session)
        if seen is not None and seen.logged > known.logged:
            raise event_ids.wrong()
        logged, since = seen or known
        mark = announcements.mark()
        stream.begin(Seen(logged, since))
        missed = await reader.run(missed_since, since)
        if since > missed.number:
            if seen is not None:
                raise event_ids.wrong()
            # The counter was emptied: its numbers begin anew.
            stream.begin(Seen(logged, since := 0))
        if not session.revision.resumable:
            # This client can never say how far it has seen.
            since = max(since, announcements.number)
        number = await self._sessions.stream_opened(session, stream.public_id, since)
        told, announced = announcements.caught_up(mark, missed, stream)
        stream.opened(await announcements.heard(stream, told), announced, number)

    @asynccontextmanager
    async def watching(self, uris: Collection[str]) -> AsyncIterator[None]:
        """Let everybody know that a listen stream watches these, as long as it does."""
        resources = self._row.resources
        resources.begin(uris)
        try:
            if uris:
                await writer.run(self._row.watch, uris)
            yield
        finally:
            if gone := resources.end(uris):
                self._spawn(writer.run(resources.erase, gone))
