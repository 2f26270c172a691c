"""From change rows to the streams that are to be told of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from django.db import Error as DatabaseError

from mcp_app.catalog.bindings import Binding
from mcp_app.pools.database import reader, writer
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.listeners import Listeners
from mcp_app.wakeup import changes
from mcp_app.wakeup.folding import fold
from mcp_app.wakeup.news import News, NewsReader
from mcp_app.wakeup.workers import FRESHNESS, WorkerRow

logger = logging.getLogger("mcp_app.process")


class Announcements:
    """Tells the open streams of what the change rows say."""

    def __init__(
        self,
        listeners: Listeners,
        look: Callable[[], Awaitable[None]],
        row: WorkerRow,
        bindings: Mapping[str, Binding],
    ) -> None:
        self._listeners = listeners
        self._look = look
        self._row = row
        self._bindings = bindings
        self._folding = False
        self._reader = NewsReader()
        self._tasks: set[asyncio.Future[Any]] = set()

    def read(self) -> News:
        """Return what is new; blocks, one statement where nothing is."""
        return self._reader.read()

    def seen(self, news: News) -> None:
        """What the news name is loaded here: tell the streams, and tidy up."""
        self._reader.seen(news)
        if news.everything or news.topics() or news.refs(changes.MODEL):
            self.keep(asyncio.ensure_future(self._announced(news)))
        if news.unfolded and not self._folding:
            self._folding = True
            self.keep(asyncio.ensure_future(self._folded()))

    async def _announced(self, news: News) -> None:
        """Tell the streams once every process serves what they will ask for.

        Whoever asks `FRESHNESS` after the change was seen here is answered by a process
        that has checked since its commit.
        """
        loop = asyncio.get_running_loop()
        due = loop.time() + FRESHNESS
        if await self._others_live():
            await asyncio.sleep(due - loop.time())
        elif news.first:
            # Nobody can have been answered from anything older.
            return
        self.announce(news)

    async def _others_live(self) -> bool:
        try:
            return await reader.run(self._row.others_live)
        except (DatabaseError, Unavailable):
            return True

    async def _folded(self) -> None:
        try:
            await writer.run(fold)
        finally:
            self._folding = False

    def announce(self, news: News) -> None:
        """Tell the streams that are open now, each change once."""
        if news.everything:
            self._listeners.announce_everything()
        for what, server in news.topics():
            self._listeners.announce(what, server)
        models = news.refs(changes.MODEL)
        if models:
            self._listeners.announce_resources(partial(self._shows, models))

    def _shows(self, models: frozenset[str], uri: str) -> bool:
        """Whether a URI may show an instance of one of these models."""
        return any(
            each.model._meta.label_lower in models and each.shows(uri)
            for each in self._bindings.values()
        )

    def tell(self, what: str, server: str) -> None:
        """Write a change that a call made, and look at once."""
        self.keep(asyncio.ensure_future(self._told(what, server)))

    async def _told(self, what: str, server: str) -> None:
        await writer.run(changes.told, what, server)
        await self._look()

    def keep(self, task: asyncio.Future[Any]) -> None:
        """Hold a task until it is done: the loop alone would let it go."""
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("Something beside the requests failed: %s", error)
