"""Sessions that end with the connection or the stream of their client."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from itertools import islice
from typing import Final

from mcp_app.interface.context import Client
from mcp_app.interface.principal import Principal
from mcp_app.models import Session
from mcp_app.models.fields import digest as digest_of
from mcp_app.models.sessions import SessionQuerySet
from mcp_app.pools.database import reader, writer
from mcp_app.protocol.errors import InvalidRequest
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import V2024_11_05
from mcp_app.streams.claims import of_the_dead
from mcp_app.streams.log_writer import Beside
from mcp_app.streams.open_session import (
    Opening,
    OpenSession,
    SessionNotFound,
    agreed_values,
    delete_session,
    delete_sessions,
    new_session_id,
)
from mcp_app.streams.questions import AnswerStatus, OpenQuestions, StoredQuestion
from mcp_app.streams.session_store import HANDSHAKE_S, SessionStore

# -- in memory -------------------------------------------------------------------------
# A session that lasts as long as its connection (stdio), and has no row.
#
# Rows tell other processes which resources this one watches: compaction gives a
# number to no others.


class MemorySessions:
    """The one session of a connection; used on the loop only.

    `announced` returns when the changes that this process began with are announced.
    `watching` is a context in which other processes know what resources are watched.
    """

    def __init__(
        self,
        announced: Callable[[], Awaitable[object]],
        watching: Callable[[Collection[str]], AbstractAsyncContextManager[None]],
    ) -> None:
        self._announced = announced
        self._watching = watching
        self._watches: dict[str, AsyncExitStack] = {}
        self._in_order = asyncio.Lock()
        self._ready = asyncio.Event()
        self.session: OpenSession | None = None

    async def create(self, opening: Opening) -> str:
        """Open the session and return an id, which no client has to send."""
        await self._announced()
        session_id = new_session_id()
        self.session = OpenSession.from_opening(opening, session_id)
        self.session.created = time.monotonic()
        return session_id

    def complete_handshake(self, session: OpenSession) -> None:
        """Note that the client has finished the handshake."""
        session.initialized = True
        self._ready.set()

    async def wait_for_handshake(self, session: OpenSession) -> None:
        """Wait a limited time until the client has finished the handshake."""
        remaining_s = session.created + HANDSHAKE_S - time.monotonic()
        if not session.initialized and remaining_s > 0:
            waiting = asyncio.ensure_future(self._ready.wait())
            try:
                await asyncio.wait([waiting], timeout=remaining_s)
            finally:
                waiting.cancel()

    async def set_level(self, session: OpenSession, level: int) -> None:
        """Keep the least severe level that the client wants."""
        session.level = level

    async def subscribe(self, session: OpenSession, uri: str, limit: int) -> bool:
        """Note that the session watches a URI; return whether there was room."""
        name = digest_of(uri)
        async with self._in_order:
            if name in session.uris:
                return True
            if len(session.uris) >= limit:
                return False
            session.uris[name] = uri
            self._watches[name] = watch = AsyncExitStack()
            try:
                await watch.enter_async_context(self._watching([uri]))
            except BaseException:
                session.uris.pop(name, None)
                self._watches.pop(name, None)
                raise
            return True

    async def unsubscribe(self, session: OpenSession, uri: str) -> None:
        """Note that the session no longer watches a URI."""
        name = digest_of(uri)
        # An earlier subscription may still be being written: wait for it.
        async with self._in_order:
            session.uris.pop(name, None)
            watch = self._watches.pop(name, None)
            if watch is not None:
                await watch.aclose()


class MemoryQuestions(OpenQuestions):
    """Questions on a connection, which alone can bring their answers."""

    def expect_answer(
        self, session: OpenSession, identifier: str, instead: bytes | None = None
    ) -> StoredQuestion:
        question = super().expect_answer(session, identifier)
        # It is in memory only, so nothing is written.
        return replace(question, beside=Beside(lambda _: None))

    async def take(
        self,
        session: OpenSession,
        identifier: str | int,
        result: JsonObject | None,
        error: JsonObject | None,
    ) -> AnswerStatus:
        """Take an answer from the connection."""
        name = str(identifier)
        reply = {"result": result} if error is None else {"error": error}
        self._resolve_question(name, reply)
        return AnswerStatus.FIRST if name in self._waiting else AnswerStatus.UNKNOWN


# -- sse sessions ----------------------------------------------------------------------
# Sessions of HTTP+SSE (2024-11-05): each ends with the stream of its client.
#
# The row is inserted before the client gets the session's id, and names the process
# that has the stream.  It is deleted with the stream; if that process dies, others
# delete it.

AT_ONCE: Final = 50
"""Sessions per statement, and dead processes that are considered."""


class SseSessions:
    """The sessions with streams here, and the deletion of those of dead processes."""

    def __init__(self, sessions: SessionStore, holder: str) -> None:
        self._sessions = sessions
        self._holder = holder
        self._open: set[str] = set()
        """Digests of the sessions that have a stream here, or are about to."""

    def new_session(self, principal: Principal, server: str) -> OpenSession:
        """Return a session without a row; whatever follows, call `end_session`."""
        session_id = new_session_id()
        # Until `initialize` the revision is that of the transport.
        opening = Opening(principal, server, V2024_11_05, Client())
        session = OpenSession.from_opening(opening, session_id)
        session.session_id, session.holder = session_id, self._holder
        session.negotiated = False
        self._open.add(session.digest)
        return session

    async def find(
        self, session_id: str, principal: Principal, server: str
    ) -> OpenSession:
        """Return the caller's own session; else raise 404 without a reason."""
        session = await self._sessions.find(
            session_id, principal, server, with_stream=True
        )
        if session.holder == self._holder and session.digest not in self._open:
            # Its stream has ended, and its row will be deleted in a moment.
            raise SessionNotFound
        await self._sessions.load_agreement(session)
        return session

    async def end_session(self, session: OpenSession) -> None:
        """Close a session whose stream has ended, everywhere."""
        # In an outage, a later heartbeat deletes the row.
        self._open.discard(session.digest)
        self._sessions.close_here(session)
        if session.has_row:
            await delete_session(session.pk)

    async def delete_streamless(self) -> None:
        """Delete rows of this process that have no stream: nobody else will."""
        sessions = Session.objects.current().filter(holder=self._holder)
        rows = await reader.run(list, sessions.values_list("pk", "digest"))
        streamless = [pk for pk, digest in rows if digest not in self._open]
        await _delete_in_batches(Session.objects.all(), streamless)

    async def end_of_dead(self, dead: Mapping[str, int | None]) -> None:
        """Close the sessions of processes that were watched and are dead."""
        condition = of_the_dead("holder", dict(islice(dead.items(), AT_ONCE)))
        rows = Session.objects.current().held().filter(condition)
        keys = await reader.run(list, rows.values_list("pk", flat=True))
        # Other processes do the same, so each takes another order.
        random.shuffle(keys)
        await _delete_in_batches(rows, keys)


class Negotiation:
    """Stores what `initialize` agrees on in the existing row."""

    def __init__(self, session: OpenSession) -> None:
        self._session = session

    async def create(self, opening: Opening) -> str:
        """Store revision and client, once; return the id of the session."""
        session, revision, client = self._session, opening.revision, opening.client
        row = Session.objects.filter(pk=session.pk, client_info="")
        # This records no change: a process that lacks these values reads the row.
        if not await writer.run(row.update, **agreed_values(revision, client)):
            raise InvalidRequest("This session is initialized already.")
        session.revision, session.client, session.negotiated = revision, client, True
        return session.session_id


async def _delete_in_batches(rows: SessionQuerySet, keys: Sequence[int]) -> None:
    # Between the portions the heartbeat can write.
    for start in range(0, len(keys), AT_ONCE):
        await delete_sessions(rows.filter(pk__in=keys[start : start + AT_ONCE]))
