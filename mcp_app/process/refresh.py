"""Applies changes to the caches, calls and streams of a process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Protocol

from mcp_app.auth.permissions import RightsCache
from mcp_app.auth.result_cache import authentication_cache
from mcp_app.auth.token_cache import token_cache
from mcp_app.catalog.registry import Registry
from mcp_app.invalidation import changes
from mcp_app.invalidation.change_reader import ChangeSet
from mcp_app.pools.database import reader, writer
from mcp_app.process.announcements import Announcements
from mcp_app.process.loading import Catalogs
from mcp_app.process.revocation import Revocation
from mcp_app.publishing.overlays import make_overlays
from mcp_app.server import identity
from mcp_app.server.exchange import End
from mcp_app.streams.log_messages import Deliveries
from mcp_app.streams.questions import OpenQuestions
from mcp_app.streams.session_store import SessionStore


class Parts(Protocol):
    """The parts of a process that changes affect."""

    generation: int
    registry: Registry
    catalogs: Catalogs
    rights: RightsCache
    sessions: SessionStore
    questions: OpenQuestions
    announcements: Announcements

    @property
    def revocation(self) -> Revocation: ...
    @property
    def deliveries(self) -> Deliveries: ...
    def spawn(self, work: Awaitable[Any]) -> asyncio.Future[Any]: ...


class Refresh:
    """Brings the caches of this process up to date."""

    def __init__(self, process: Parts) -> None:
        self._process = process

    async def load(self, news: ChangeSet) -> None:
        """Apply the changes to the caches, then announce them."""
        if news.definitions_changed:
            before = self._process.revocation.ways()
            await reader.run(self._process.catalogs.load, news)
            self._process.revocation.close_after_access_change(before)
            if news.first and self._process.catalogs.missing_overlays():
                self._process.spawn(writer.run(make_overlays, self._process.registry))
        if news.definitions_changed or news.rights_changed:
            self._process.generation += 1
            self._process.rights.forget()
            token_cache.forget()
            authentication_cache.forget()
            self._process.revocation.look()
        closed = news.refs(changes.SESSION)
        if closed or news.everything:
            await self._process.sessions.reload(None if news.everything else closed)
        await self._load_of_calls(news)
        if news.everything or news.refs(changes.STOP) or news.refs("server"):
            self._process.revocation.close_stopped()
        for session in self._process.sessions.standing(
            None if news.everything else news.refs(changes.LOGGED)
        ):
            self._process.spawn(self._process.deliveries.deliver(session))
        self._process.announcements.seen(news)

    async def _load_of_calls(self, news: ChangeSet) -> None:
        """Take answers and cancellations that other processes received."""
        answered = news.refs(changes.QUESTION)
        if news.everything:
            answered = self._process.questions.open
        await self._process.questions.look(answered)
        for ref in news.refs(changes.CANCELLED):
            self._end(ref, End.CANCELLED)
        for ref in news.refs(changes.STOPPED):
            self._end(ref, End.STOPPED)

    def _end(self, ref: str, end: End) -> None:
        session, _, key = ref.partition(":")
        for exchange in list(self._process.sessions.running(session)):
            if identity.key(exchange.request_id) == key:
                exchange.stop(end)
