"""Announcements on a channel: changes of a session, and subscriptions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from mcp_app.protocol.errors import InternalError, ProtocolError
from mcp_app.server import dispatch, subscriptions
from mcp_app.server.exchange import Exchange
from mcp_app.streams.listeners import LISTS
from mcp_app.transports.open_streams import ListenStream, OpenStream
from mcp_app.transports.stdio.channel import Channel, Write

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.server.subscriptions import Interest
    from mcp_app.streams.open_session import OpenSession


logger = logging.getLogger("mcp_app.transports")


class SharedChannel:
    """The output of a stream on a channel that other messages share."""

    def __init__(self, write: Write, last: bytes | None = None) -> None:
        """Write `last` at the end."""
        self._write = write
        self._last = last
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def message(self, data: bytes, event_id: str | None = None) -> None:
        if not self.closed.done():
            self._write(data)

    def prime(self, event_id: str) -> None:
        """Do nothing: there are no ids."""

    def beat(self) -> None:
        """A pipe needs no heartbeat."""

    def end(self, *, retry_ms: int | None = None) -> None:
        if not self.closed.done():
            if self._last is not None:
                self._write(self._last)
            self.closed.set_result(None)

    def abandon(self) -> None:
        self.closed.cancel()


class SessionChanges(OpenStream):
    """Tells a session of lists and watched resources."""

    lasts = True

    __slots__ = ("_session",)

    def __init__(self, channel: Channel, session: OpenSession) -> None:
        super().__init__(
            SharedChannel(channel.write),
            channel.current.listeners,
            server=session.server,
            principal=channel.principal,
            session=session.digest,
        )
        self._session = session

    def opened(self) -> None:
        """Write from now on."""
        self._opened(0)

    def watched(self, what: str) -> str | None:
        return what if what in LISTS else self._session.uris.get(what)

    def watching(self) -> Iterable[str]:
        return (*LISTS, *self._session.uris.values())

    def _tell(self, what: Sequence[str], number: int) -> None:
        for each in what:
            self._stream.message(subscriptions.change_message(each, None))

    def _end(self, retry_ms: int | None) -> None:
        self._stream.end()
        self._listeners.discard(self)


class Listening:
    """One `subscriptions/listen` request, as long as it lasts."""

    def __init__(self, channel: Channel, exchange: Exchange) -> None:
        self._channel = channel
        self._exchange = exchange
        self._task: asyncio.Task[None] | None = None
        self._entered = ExitStack()

    def begin(self, interest: Interest, honoured: JsonObject) -> None:
        """Let it listen from now on; raise 503 or 429 if it may not."""
        channel, exchange = self._channel, self._exchange
        stream = SharedChannel(
            channel.write, subscriptions.cancelled_message(exchange.request_id)
        )
        listening = ListenStream(
            stream,
            channel.current.listeners,
            server=channel.slug,
            principal=channel.principal,
            interest=interest,
            subscription=exchange.request_id,
            closing=subscriptions.closed_message(exchange),
        )
        channel.current.listen(listening)
        channel.running[exchange.request_id] = self
        # A task that is cancelled before it begins enters nothing, and leaves nothing.
        self._entered.enter_context(listening)
        work = self._listen(listening, interest, honoured, stream.closed)
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(self._over)

    async def _listen(
        self,
        listening: ListenStream,
        interest: Interest,
        honoured: JsonObject,
        closed: Awaitable[None],
    ) -> None:
        async with self._channel.current.stream_opener.watching(interest.uris):
            listening.opened(
                subscriptions.acknowledged_message(self._exchange, honoured)
            )
            await closed

    def cancel(self) -> None:
        """End the subscription without a message."""
        self._channel.forget(self._exchange.request_id, self)
        if self._task is not None:
            self._task.cancel()

    def _over(self, task: asyncio.Task[None]) -> None:
        self._entered.close()
        self._channel.forget(self._exchange.request_id, self)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        """Answer a subscription that failed with an error."""
        if not isinstance(error, ProtocolError):
            logger.error("A subscription failed.", exc_info=error)
            error = InternalError("The server failed; its log says why.")
        exchange = self._exchange
        refusal = dispatch.refusal(exchange.revision, exchange.request_id, error)
        self._channel.write(refusal[1])
