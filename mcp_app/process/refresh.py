"""What a process does when something has changed: caches, calls, streams."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Protocol

from mcp_app.auth.kept import answers
from mcp_app.auth.permissions import KeptRights
from mcp_app.auth.tokens import tokens
from mcp_app.catalog.registry import Registry
from mcp_app.pools.database import reader, writer
from mcp_app.process.announcements import Announcements
from mcp_app.process.evictions import Evictions
from mcp_app.process.loading import Catalogs
from mcp_app.publishing.overlays import make_overlays
from mcp_app.server import identity
from mcp_app.server.exchange import End
from mcp_app.streams.logged import Deliveries
from mcp_app.streams.questions import OpenQuestions
from mcp_app.streams.session_store import SessionStore
from mcp_app.wakeup import changes
from mcp_app.wakeup.news import News


class Parts(Protocol):
    """The parts of a process that news are for."""

    generation: int
    registry: Registry
    catalogs: Catalogs
    rights: KeptRights
    sessions: SessionStore
    questions: OpenQuestions
    announcements: Announcements

    @property
    def evictions(self) -> Evictions: ...
    @property
    def deliveries(self) -> Deliveries: ...
    def spawn(self, work: Awaitable[Any]) -> asyncio.Future[Any]: ...


class Refresh:
    """Brings what this process keeps up to date."""

    def __init__(self, process: Parts) -> None:
        self._process = process

    async def load(self, news: News) -> None:
        """Bring the caches up to date."""
        if news.definitions_changed:
            before = self._process.evictions.ways()
            await reader.run(self._process.catalogs.load, news)
            self._process.evictions.where_others_come_in(before)
            if news.first and self._process.catalogs.missing_overlays():
                self._process.spawn(writer.run(make_overlays, self._process.registry))
        if news.definitions_changed or news.rights_changed:
            self._process.generation += 1
            self._process.rights.forget()
            tokens.forget()
            answers.forget()
            self._process.evictions.look()
        closed = news.refs(changes.SESSION)
        if closed or news.everything:
            await self._process.sessions.reload(None if news.everything else closed)
        await self._load_of_calls(news)
        if news.everything or news.refs(changes.STOP) or news.refs("server"):
            self._process.evictions.where_stopped()
        for session in self._process.sessions.standing(
            None if news.everything else news.refs(changes.LOGGED)
        ):
            self._process.spawn(self._process.deliveries.deliver(session))
        self._process.announcements.seen(news)

    async def _load_of_calls(self, news: News) -> None:
        """Take answers and cancellations that came to other processes."""
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
