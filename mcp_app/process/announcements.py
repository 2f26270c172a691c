"""From change rows to the streams that are to be told of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mcp_app.pools.database import writer
from mcp_app.streams.listeners import Listeners
from mcp_app.wakeup import changes
from mcp_app.wakeup.news import News, NewsReader

logger = logging.getLogger("mcp_app.process")


class Announcements:
    """Tells the open streams of what the change rows say."""

    def __init__(
        self, listeners: Listeners, look: Callable[[], Awaitable[None]]
    ) -> None:
        self._listeners = listeners
        self._look = look
        self._reader = NewsReader()
        self._tasks: set[asyncio.Future[Any]] = set()

    def read(self) -> News:
        """Return what is new; blocks, one statement where nothing is."""
        return self._reader.read()

    def announce(self, news: News) -> None:
        """Tell the streams, each change once."""
        self._reader.seen(news)
        if news.everything:
            self._listeners.announce_everything()
        for what, server in news.topics():
            self._listeners.announce(what, server)

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
