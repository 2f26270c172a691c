"""A session that lasts as long as its connection (stdio), and has no row.

The rows of this process tell other processes what it watches, so that changes get their
numbers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_app.models.fields import digest as digest_of
from mcp_app.streams.log_writer import Beside
from mcp_app.streams.open_session import OpenSession, new_session_id
from mcp_app.streams.questions import AnswerStatus, OpenQuestions, StoredQuestion
from mcp_app.streams.session_store import HANDSHAKE_S

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.streams.open_session import Opening


class MemorySessions:
    """The one session of a connection; used on the loop only.

    `announced` returns when the changes that this process began with are announced.
    `watching` is a context: other processes know meanwhile that resources are watched.
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
        self.session = OpenSession.begun(opening, session_id)
        self.session.created = time.monotonic()
        return session_id

    def initialized(self, session: OpenSession) -> None:
        """Note that the client has finished the handshake."""
        session.initialized = True
        self._ready.set()

    async def opened(self, session: OpenSession) -> None:
        """Wait a limited time until the client has finished the handshake."""
        left = session.created + HANDSHAKE_S - time.monotonic()
        if not session.initialized and left > 0:
            waiting = asyncio.ensure_future(self._ready.wait())
            try:
                await asyncio.wait([waiting], timeout=left)
            finally:
                waiting.cancel()

    async def set_level(self, session: OpenSession, level: int) -> None:
        """Keep the least severe level that the client wants."""
        session.level = level

    async def subscribe(self, session: OpenSession, uri: str, most: int) -> bool:
        """Note that the session watches a URI; return whether there was room."""
        async with self._in_order:
            return await self._subscribe(session, uri, most)

    async def _subscribe(self, session: OpenSession, uri: str, most: int) -> bool:
        name = digest_of(uri)
        if name in session.uris:
            return True
        if len(session.uris) >= most:
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
        # A subscription just before may not be written yet.
        async with self._in_order:
            session.uris.pop(name, None)
            watch = self._watches.pop(name, None)
            if watch is not None:
                await watch.aclose()


class MemoryQuestions(OpenQuestions):
    """Questions on a connection, which alone can bring their answers."""

    def expect(
        self, session: OpenSession, identifier: str, instead: bytes | None = None
    ) -> StoredQuestion:
        return replace(super().expect(session, identifier), beside=Beside(_no_row))

    async def take(
        self,
        session: OpenSession,
        identifier: str | int,
        result: JsonObject | None,
        error: JsonObject | None,
    ) -> AnswerStatus:
        """Take an answer from the connection."""
        name = str(identifier)
        self._resolve(name, {"result": result} if error is None else {"error": error})
        return AnswerStatus.FIRST if name in self._waiting else AnswerStatus.UNKNOWN


def _no_row(_: str) -> None:
    """Write nothing: the question is in memory only."""
