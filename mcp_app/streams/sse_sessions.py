"""Sessions of HTTP+SSE (2024-11-05): each ends with the stream of its client.

The row is inserted before the client gets the session's id, and names the process that
has the stream.  It is deleted with the stream; if that process dies, others delete it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from mcp_app.interface.context import Client
from mcp_app.models import Session
from mcp_app.models.sessions import SessionQuerySet
from mcp_app.pools.database import reader, writer
from mcp_app.protocol.errors import InvalidRequest
from mcp_app.protocol.revisions import V2024_11_05
from mcp_app.streams.claims import of_the_dead
from mcp_app.streams.open_session import Opening, OpenSession, new_session_id, not_found
from mcp_app.streams.session_queries import (
    agreed_values,
    delete_session,
    delete_sessions,
)

if TYPE_CHECKING:
    from mcp_app.interface.principal import Principal
    from mcp_app.streams.session_store import SessionStore

AT_ONCE: Final = 50
"""Sessions per statement, and dead processes that are considered."""


class SseSessions:
    """The sessions with streams here, and the deletion of those of dead processes."""

    def __init__(self, sessions: SessionStore, holder: str) -> None:
        self._sessions = sessions
        self._holder = holder
        self._open: set[str] = set()
        """Digests of the sessions that have a stream here, or are about to."""

    def new(self, principal: Principal, server: str) -> OpenSession:
        """Return a session that has no row yet; whatever follows, call `end`."""
        session_id = new_session_id()
        # Until `initialize` the revision is that of the transport.
        opening = Opening(principal, server, V2024_11_05, Client())
        session = OpenSession.begun(opening, session_id)
        session.session_id, session.holder = session_id, self._holder
        session.negotiated = False
        self._open.add(session.digest)
        return session

    async def find(
        self, session_id: str, principal: Principal, server: str
    ) -> OpenSession:
        """Return the caller's own session; otherwise 404 without a reason."""
        session = await self._sessions.find(session_id, principal, server, held=True)
        if session.holder == self._holder and session.digest not in self._open:
            # Its stream has ended, and its row will be deleted in a moment.
            raise not_found()
        await self._sessions.negotiated(session)
        return session

    async def end(self, session: OpenSession) -> None:
        """Close a session whose stream has ended, everywhere.

        If the database is unavailable, a later heartbeat deletes the row.
        """
        self._open.discard(session.digest)
        self._sessions.drop(session)
        if session.has_row:
            await delete_session(session.pk)

    async def sweep(self) -> None:
        """Delete rows of this process that have no stream: nobody else will."""
        own = Session.objects.current().filter(holder=self._holder)
        rows = await reader.run(list, own.values_list("pk", "digest"))
        left = [pk for pk, digest in rows if digest not in self._open]
        await _delete(Session.objects.all(), left)

    async def end_of_dead(self, dead: Mapping[str, int | None]) -> None:
        """Close the sessions of processes that were watched and are dead."""
        rows = _of_dead(dict(islice(dead.items(), AT_ONCE)))
        keys = await reader.run(list, rows.values_list("pk", flat=True))
        # Other processes do the same, so each takes another order.
        random.shuffle(keys)
        await _delete(rows, keys)


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


async def _delete(rows: SessionQuerySet, keys: Sequence[int]) -> None:
    """Delete a portion after the other: between them the heartbeat can write."""
    for start in range(0, len(keys), AT_ONCE):
        await delete_sessions(rows.filter(pk__in=keys[start : start + AT_ONCE]))


def _of_dead(dead: Mapping[str, int | None]) -> SessionQuerySet:
    return Session.objects.current().held().filter(of_the_dead("holder", dead))
