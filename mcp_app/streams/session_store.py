"""Sessions of the stateful era: a row each, kept in the process while it is used.

A session belongs to one principal and one server: to everybody else it does not exist.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import Error as DatabaseError

from mcp_app.conf import Limits
from mcp_app.interface.principal import Principal
from mcp_app.models import Session
from mcp_app.models.changes import ANY
from mcp_app.models.fields import digest as digest_of
from mcp_app.models.sessions import Subscription
from mcp_app.pools.batching import Batches
from mcp_app.pools.database import NEVER, lookups, reader, writer
from mcp_app.pools.loop_thread import start_background_task
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams import open_session as queries
from mcp_app.streams.event_ids import SeenEvents
from mcp_app.streams.open_session import (
    Opening,
    OpenSession,
    SessionNotFound,
    adopt_agreement,
    new_session_id,
)

MAX_SESSIONS = 10_000
"""Sessions that a process caches; the least recently used goes first."""
TOUCH_S = 60.0
"""Seconds by which a row's time of last use may lag behind."""
STRANGERS_TOUCH_S = 20.0
"""The same for anonymous callers: their unused sessions are closed first."""
RELOAD_BATCH_SIZE = 500
"""Sessions that one statement reloads."""
DELETION_BATCH_SIZE = 200
"""Sessions that one transaction deletes, while others wait for the writer."""
FEW = 10
"""If more surplus sessions are deleted, the request that found them does not wait."""
HANDSHAKE_S = 5.0
"""Seconds that questions wait for a missing `notifications/initialized`."""
HANDSHAKE_LOOK_S = 0.1


class SessionStore:
    """Opens, caches, changes and closes sessions."""

    def __init__(
        self,
        limits: Limits,
        closed: Callable[[OpenSession], None],
        settled: Callable[[], Awaitable[None]],
        announced: Callable[[], Awaitable[int]],
    ) -> None:
        """`closed` is called with each session that is closed here.

        `settled` returns when all processes know what was committed; `announced`
        returns the number up to which all changes have been announced.
        """
        self._limits = limits
        self._closed = closed
        self._settled = settled
        self._announced = announced
        self._lookups = Batches(lookups, queries.read)
        self._inserts = Batches(writer, queries.insert)
        self._uses = Batches(writer, queries.note_uses)
        self._handshakes = Batches(writer, queries.note_handshakes)
        self._positions = Batches(reader, queries.client_positions)
        self._deletions: dict[int, asyncio.Task[None]] = {}
        """Deletions that clients wait for, by the key of the session."""
        self._cached_sessions: OrderedDict[str, OpenSession] = OrderedDict()
        self._by_id: dict[str, OpenSession] = {}
        self._by_pk: dict[str, OpenSession] = {}
        self._closer: asyncio.Task[None] | None = None
        """Deletes sessions because there are too many."""
        self._overtaking: dict[int, set[str]] = {}
        """For each read or insert in progress, by id: the keys reloaded meanwhile."""

    async def create(self, opening: Opening) -> str:
        session_id = new_session_id()
        session = OpenSession.from_opening(opening, session_id)
        await self.store_session(session, opening.principal)
        self._remember_id(session, session_id)
        return session_id

    async def store_session(self, session: OpenSession, principal: Principal) -> None:
        """Insert the row of a session; beyond the limit, close the most idle one."""
        limits, anonymous = self._limits, principal.anonymous
        cap = limits.anonymous_sessions if anonymous else limits.sessions_per_principal
        new = queries.NewSession(
            session, await self._announced(), cap if limits.rates else 0, anonymous
        )
        with self._collect_reloads() as reloaded:
            surplus = await self._inserts.load_value(new) or {}
            while not reloaded.isdisjoint({str(session.pk), ANY}):
                # If the session was closed meanwhile, the change did not find it here.
                reloaded.clear()
                if not await reader.run(queries.read_some, [session.pk]):
                    session.closed = True
                    raise SessionNotFound
            if not session.closed:
                self._cache_session(session)
        await self._close_all(surplus)

    async def _close_all(self, surplus: queries.Rows) -> None:
        for digest in surplus.values():
            self._close_cached(digest)
        if not surplus:
            return
        if len(surplus) <= FEW:
            await queries.delete_sessions(Session.objects.filter(pk__in=surplus))
        elif self._closer is None:
            self._closer = start_background_task(self._delete_many([*surplus]))

    async def _delete_many(self, keys: list[int]) -> None:
        try:
            # In an outage, the next session that is stored finds them again.
            with suppress(DatabaseError, Unavailable):
                for start in range(0, len(keys), DELETION_BATCH_SIZE):
                    batch = keys[start : start + DELETION_BATCH_SIZE]
                    await queries.delete_sessions(Session.objects.filter(pk__in=batch))
        finally:
            self._closer = None

    def cached(
        self, session_id: str, principal: Principal, server: str
    ) -> OpenSession | None:
        """Return the caller's own session, if that is possible without the database."""
        session = self._by_id.get(session_id)
        if (
            session is None
            or session.principal_key != principal.key
            or session.server != server
            or session.holder
            or session.fresh < time.monotonic()
            or session.digest not in self._cached_sessions
        ):
            return None
        self._cached_sessions.move_to_end(session.digest)
        return session

    async def find(
        self,
        session_id: str,
        principal: Principal,
        server: str,
        *,
        with_stream: bool = False,
    ) -> OpenSession:
        """Return the caller's own session; else raise 404 without a reason."""
        # Sessions of HTTP+SSE are found at their own address only.
        digest = digest_of(session_id)
        session = self._cached_sessions.get(digest) or await self._load_session(digest)
        if (
            session is None
            or bool(session.holder) is not with_stream
            or not self._is_usable_by(session, principal, server)
        ):
            raise SessionNotFound
        await self._touch_session(session)
        self._remember_id(session, session_id)
        return session

    def _remember_id(self, session: OpenSession, session_id: str) -> None:
        """Let `cached` find the session until its row must be read again."""
        expires = session.created + self._limits.session_age
        session.fresh = min(session.last_used + self._touch_after(session), expires)
        if _is_unused(session):
            # The row notes its next request: the session is in use from then on.
            session.fresh = NEVER
        session.session_id = session_id
        if session.digest in self._cached_sessions:
            self._by_id[session_id] = session

    def _touch_after(self, session: OpenSession) -> float:
        limit = STRANGERS_TOUCH_S if _is_strangers(session) else TOUCH_S
        return min(limit, self._max_idle_s(session) / 2)

    def _max_idle_s(self, session: OpenSession) -> float:
        limits = self._limits
        return limits.anonymous_idle if _is_strangers(session) else limits.session_idle

    async def _load_session(self, digest: str) -> OpenSession | None:
        with self._collect_reloads() as reloaded:
            session = await self._lookups.load_value(digest)
            while session and not reloaded.isdisjoint({str(session.pk), ANY}):
                # A read that hung may be older than a reload meanwhile.
                reloaded.clear()
                session = await self._lookups.load_value(digest)
        # A session is one object, even if two requests load it at once.
        cached_session = self._cached_sessions.get(digest)
        if cached_session is None and session is not None:
            self._cache_session(session)
        return cached_session or session

    @contextmanager
    def _collect_reloads(self) -> Iterator[set[str]]:
        """Collect the keys of sessions that are reloaded during the block."""
        reloaded: set[str] = set()
        self._overtaking[id(reloaded)] = reloaded
        try:
            yield reloaded
        finally:
            del self._overtaking[id(reloaded)]

    async def delete(self, session: OpenSession) -> None:
        """Close a session everywhere, once: its row, its calls and its streams."""
        deletion = self._deletions.get(session.pk)
        if deletion is None:
            deletion = asyncio.create_task(self._delete_session(session))
            self._deletions[session.pk] = deletion
        await asyncio.shield(deletion)

    async def _delete_session(self, session: OpenSession) -> None:
        try:
            await queries.delete_sessions(Session.objects.filter(pk=session.pk))
            self.close_here(session)
            await self._settled()
        finally:
            del self._deletions[session.pk]

    def close_here(self, session: OpenSession) -> None:
        session.closed = True
        self._close_cached(session.digest)

    async def reload_sessions(self, refs: Iterable[str] | None) -> None:
        """Reload sessions that others changed, or close them; None stands for all."""
        refs = {ANY} if refs is None else set(refs)
        for reloaded in self._overtaking.values():
            reloaded.update(refs)
        sessions = self._cached_among(refs)
        for start in range(0, len(sessions), RELOAD_BATCH_SIZE):
            batch = sessions[start : start + RELOAD_BATCH_SIZE]
            rows = await reader.run(queries.read_some, [each.pk for each in batch])
            for session in batch:
                self._bring_up_to_date(session, rows.get(session.pk))

    def _cached_among(self, refs: Collection[str]) -> list[OpenSession]:
        if ANY in refs:
            return list(self._by_pk.values())
        return [self._by_pk[ref] for ref in refs if ref in self._by_pk]

    async def load_agreement(self, session: OpenSession) -> bool:
        """Return whether a session is initialized, here or elsewhere; raise 404."""
        if not session.negotiated:
            row = (await reader.run(queries.read_some, [session.pk])).get(session.pk)
            if row is None:
                self.close_here(session)
                raise SessionNotFound
            adopt_agreement(session, row)
        return session.negotiated

    def _bring_up_to_date(self, session: OpenSession, row: OpenSession | None) -> None:
        if row is None:
            self._close_cached(session.digest)
            return
        adopt_agreement(session, row)
        session.level, session.uris = row.level, row.uris
        session.newest = max(session.newest, row.newest)
        session.initialized = session.initialized or row.initialized

    def running_requests(self, pk: str) -> Iterable[Any]:
        """Return the requests that run here of the session with this key."""
        session = self._by_pk.get(pk)
        return () if session is None else session.running.values()

    def standing_sessions(self, refs: Iterable[str] | None) -> Iterable[OpenSession]:
        """Return which of these have GET streams here; None stands for all."""
        refs = {ANY} if refs is None else set(refs)
        return [each for each in self._cached_among(refs) if each.streams]

    def streaming(self) -> list[int]:
        return [each.pk for each in self._cached_sessions.values() if each.streams]

    def close_too_old(self) -> None:
        """Close too old sessions with calls or streams here, without a statement."""
        for session in tuple(self._cached_sessions.values()):
            if (session.streams or session.running) and self._is_too_old(session):
                self._close_cached(session.digest)

    async def complete_handshake(self, session: OpenSession) -> None:
        if not session.initialized:
            session.initialized = True
            await self._handshakes.load_value(session.pk)

    async def wait_for_handshake(self, session: OpenSession) -> None:
        """Wait until the client has finished the handshake."""
        # Its notification may arrive at another process, or never.
        end = session.created + HANDSHAKE_S
        while not session.initialized and time.monotonic() < end:
            await asyncio.sleep(HANDSHAKE_LOOK_S)
            if not session.initialized:
                rows = Session.objects.current().filter(pk=session.pk, initialized=True)
                session.initialized = await reader.run(rows.exists)

    async def stream_opened(
        self, session: OpenSession, public_id: str, change_number: int
    ) -> int:
        """Make a GET stream the newest of its session; return its number."""
        opened = Session.objects.stream_opened
        number = await writer.run(opened, session.pk, public_id, change_number)
        if not number:
            raise SessionNotFound
        session.newest = max(session.newest, number)
        return number

    async def client_position(self, session: OpenSession) -> SeenEvents:
        """Return what the client has seen, according to its row; raise 404."""
        position = await self._positions.load_value(session.pk)
        if position is None:
            raise SessionNotFound
        return position

    async def set_level(self, session: OpenSession, level: int) -> None:
        if not await writer.run(Session.objects.set_level, session.pk, level):
            raise SessionNotFound
        session.level = level
        await self._settled()

    async def subscribe(self, session: OpenSession, uri: str, limit: int) -> bool:
        """Store that the session watches a URI; return whether there was room."""
        stored = await writer.run(queries.subscribe, session.pk, uri, limit)
        if stored:
            session.uris[digest_of(uri)] = uri
            await self._settled()
        return stored

    async def unsubscribe(self, session: OpenSession, uri: str) -> None:
        name = digest_of(uri)
        watched = Subscription.objects.filter(session_id=session.pk, uri_digest=name)
        await writer.run(watched.delete)
        session.uris.pop(name, None)
        await self._settled()

    def _is_usable_by(
        self, session: OpenSession, principal: Principal, server: str
    ) -> bool:
        return (
            session.principal_key == principal.key
            and session.server == server
            and not self._is_too_old(session)
        )

    def _is_too_old(self, session: OpenSession) -> bool:
        return time.monotonic() - session.created > self._limits.session_age

    async def _touch_session(self, session: OpenSession) -> None:
        self._cached_sessions.move_to_end(session.digest)
        now = time.monotonic()
        used = not _is_unused(session)
        if used and now - session.last_used <= self._touch_after(session):
            return
        # Only the row knows whether other processes have used or closed it.
        use = queries.Use(session.pk, int(self._max_idle_s(session) * 1000))
        if not await self._uses.load_value(use):
            self._close_cached(session.digest)
            raise SessionNotFound
        session.last_used = now

    async def touch_used(self) -> None:
        """Note that sessions with a stream or a running call here are in use."""
        now = time.monotonic()
        used = [
            session
            for session in self._cached_sessions.values()
            if (session.streams or session.running)
            and now - session.last_used > self._touch_after(session)
        ]
        for start in range(0, len(used), RELOAD_BATCH_SIZE):
            batch = used[start : start + RELOAD_BATCH_SIZE]
            rows = Session.objects.filter(pk__in=[each.pk for each in batch])
            await writer.run(rows.update_together, seen_ms=queries.USED_NOW)
            for each in batch:
                each.last_used = now

    def _cache_session(self, session: OpenSession) -> None:
        self._cached_sessions[session.digest] = session
        self._by_pk[str(session.pk)] = session
        while len(self._cached_sessions) > MAX_SESSIONS:
            digest, oldest = next(iter(self._cached_sessions.items()))
            # Keep a session in use; the next one to be cached looks at another.
            if oldest.running or oldest.streams:
                self._cached_sessions.move_to_end(digest)
                break
            self._uncache_session(digest)

    def _uncache_session(self, digest: str) -> OpenSession | None:
        session = self._cached_sessions.pop(digest, None)
        if session is not None:
            self._by_id.pop(session.session_id, None)
            self._by_pk.pop(str(session.pk), None)
        return session

    def _close_cached(self, digest: str) -> None:
        session = self._uncache_session(digest)
        if session is not None:
            session.closed = True
            self._closed(session)


def _is_strangers(session: OpenSession) -> bool:
    return session.principal_key == Principal.ANONYMOUS.key


def _is_unused(session: OpenSession) -> bool:
    """Whether an anonymous caller has sent nothing since `initialize`."""
    begun = session.initialized or session.last_used > session.created
    return _is_strangers(session) and not begun
