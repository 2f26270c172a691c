"""Streams that stay open: GET of the stateful era, and subscriptions/listen."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_app.server import subscriptions
from mcp_app.streams.listeners import LISTS, Listeners, digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_app.server.subscriptions import Interest
    from mcp_app.streams.sessions import OpenSession
    from mcp_app.transports.asgi_types import Receive
    from mcp_app.transports.event_stream import EventStream


class _OpenStream:
    """A listener that lives as long as its client or its process."""

    __slots__ = ("_listeners", "_stream", "owner", "server", "session")

    def __init__(
        self,
        stream: EventStream,
        listeners: Listeners,
        *,
        server: str,
        owner: str,
        session: str = "",
    ) -> None:
        self._stream = stream
        self._listeners = listeners
        self.server = server
        self.owner = owner
        self.session = session

    async def serve(self, receive: Receive) -> None:
        """Return when the client has left, or when the stream was ended and sent.

        Only this task waits: a task more for each stream would cost its memory.
        """
        task, closed = asyncio.current_task(), self._stream.closed
        closed.add_done_callback(partial(_wake, task))
        self._opened()
        try:
            self._stream.beat()
            while (await receive())["type"] != "http.disconnect":
                continue
        except asyncio.CancelledError:
            if not _woken(task, closed):
                raise
        finally:
            self._listeners.discard(self)
            self._left()
            self._stream.abandon()

    def beat(self) -> None:
        self._stream.beat()

    def _opened(self) -> None:
        """Make the stream known where else it is to be known."""

    def _left(self) -> None:
        """Forget the stream there."""

    def watched(self, what: str) -> str | None:
        raise TypeError(f"{type(self).__name__} is abstract.")

    def watching(self) -> Iterable[str]:
        raise TypeError(f"{type(self).__name__} is abstract.")

    def tell(self, what: str) -> None:
        raise TypeError(f"{type(self).__name__} is abstract.")

    def end(self, *, retry_ms: int | None = None) -> None:
        raise TypeError(f"{type(self).__name__} is abstract.")


def _wake(task: asyncio.Task[Any] | None, closed: asyncio.Future[None]) -> None:
    if task is not None and not closed.cancelled():
        task.cancel()


def _woken(task: asyncio.Task[Any] | None, closed: asyncio.Future[None]) -> bool:
    """Whether it was the end of the stream that cancelled the task, and only that."""
    ended = closed.done() and not closed.cancelled()
    return ended and task is not None and task.uncancel() == 0


class StandingStream(_OpenStream):
    """The GET stream of a session; of several, only the newest is told anything."""

    __slots__ = ("_session",)

    def __init__(
        self,
        stream: EventStream,
        listeners: Listeners,
        session: OpenSession,
        *,
        owner: str,
    ) -> None:
        super().__init__(
            stream,
            listeners,
            server=session.server,
            owner=owner,
            session=session.digest,
        )
        self._session = session

    def watched(self, what: str) -> str | None:
        if not self._newest:
            return None
        uris: dict[str, str] = self._session.uris
        return what if what in LISTS else uris.get(what)

    def watching(self) -> Iterable[str]:
        return (*LISTS, *self._session.uris.values()) if self._newest else ()

    @property
    def _newest(self) -> bool:
        return bool(self._session.streams[-1] is self)

    def tell(self, what: str) -> None:
        self._stream.message(subscriptions.change_message(what, None))

    def end(self, *, retry_ms: int | None = None) -> None:
        self._stream.end(retry_ms=retry_ms)

    def _opened(self) -> None:
        self._session.streams.append(self)

    def _left(self) -> None:
        self._session.streams.remove(self)


class ListenStream(_OpenStream):
    """The stream of one `subscriptions/listen` request."""

    __slots__ = ("_closing", "_lists", "_subscription", "_uris")

    def __init__(
        self,
        stream: EventStream,
        listeners: Listeners,
        *,
        server: str,
        owner: str,
        interest: Interest,
        subscription: str | int,
        closing: bytes,
    ) -> None:
        super().__init__(stream, listeners, server=server, owner=owner)
        self._lists = interest.lists
        self._uris = {digest_of(uri): uri for uri in interest.uris}
        self._subscription = subscription
        self._closing = closing

    def watched(self, what: str) -> str | None:
        return what if what in self._lists else self._uris.get(what)

    def watching(self) -> Iterable[str]:
        return (*self._lists, *self._uris.values())

    def tell(self, what: str) -> None:
        self._stream.message(subscriptions.change_message(what, self._subscription))

    def end(self, *, retry_ms: int | None = None) -> None:
        """End with the result that tells the client of a graceful end."""
        self._stream.message(self._closing)
        self._stream.end()
