"""How one request is answered: JSON, or an event stream from the first message on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from mcp_app.process.running import Answer, RunningCalls
from mcp_app.server.exchange import End, Exchange
from mcp_app.streams.log_writer import Beside
from mcp_app.transports.http.event_stream import EventStream
from mcp_app.transports.http.responses import OK, Connection, send_json

PROMOTE_AFTER = 1.0
"""Seconds of silence after which the answer becomes a stream, with heartbeats."""


class Reply:
    """The way back of one request; it becomes a stream when something must be sent."""

    _events: EventStream | None = None
    _timer: asyncio.TimerHandle | None = None
    _watching: asyncio.Future[Any] | None = None
    _finished: asyncio.Future[Answer | None] | None = None
    _over = False
    _left = False

    def __init__(self, connection: Connection, exchange: Exchange) -> None:
        self._connection = connection
        self._exchange: Exchange | None = exchange
        self.streams = connection.accepts.events

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        """Queue a message before the answer; dropped if the client takes none."""
        if not self._connection.accepts.events:
            self._connection.dropped()
        elif self.streams and not self._over:
            self._opened().message(message)

    def reconnect(self, after_ms: int) -> None:
        """Do nothing: a stream without a log cannot be resumed."""

    def beat(self) -> None:
        """Keep a stream that is silent open."""
        if self._events is not None:
            self._events.beat()

    async def run(
        self,
        call: Awaitable[Answer],
        running: RunningCalls,
        task: asyncio.Task[Any] | None,
    ) -> None:
        """Run the call in this task and send its answer.

        It is cancelled if the client leaves, as in the stateless era.
        """
        exchange = self._of()
        running.begin(exchange, self, task)
        answer: Answer | None
        try:
            answer = await call
        except asyncio.CancelledError:
            if not was_ours(exchange):
                raise
            answer = None
        finally:
            running.end(exchange)
            self.over()
        await self.conclude(answer)

    def expected(self, finished: asyncio.Future[Answer | None]) -> None:
        """Give the answer to a future: somebody else than `deliver` sends it."""
        self._finished = finished

    def over(self) -> None:
        """Take note that the call is over."""
        # Else exchange and reply would hold each other.
        self._exchange = None
        if self._watching is not None:
            self._stop_watching()

    async def deliver(self) -> None:
        """Wait for the call, which has its own task, and send its answer.

        It goes on if the client leaves, as in sessions.
        """
        exchange = self._of()
        self._finished = exchange.adapters.loop.create_future()
        try:
            await self.conclude(await self._finished)
        except asyncio.CancelledError:
            self.gone()
            raise
        finally:
            self._stop_watching()

    def _of(self) -> Exchange:
        if self._exchange is None:
            raise RuntimeError("This reply was already sent.")
        return self._exchange

    def conclude(self, answer: Answer | None) -> Awaitable[object]:
        """Send the answer, or end the stream of a call that has none."""
        self._over = True
        if answer is None:
            return self._end()
        status, body = answer
        way = self._connection
        if self._events is None and (way.accepts.json or status != OK):
            headers = way.cors if status == OK else way.error_headers(status)
            return send_json(way.send, status, body, headers)
        self._opened().message(body)
        return self._end()

    def finished(self, task: asyncio.Task[Answer]) -> None:
        """Take the answer; a cancelled or failed call has none."""
        broken = task.cancelled() or task.exception() is not None
        self._answer(None if broken else task.result())

    def answered(self, status: int, body: bytes) -> None:
        """Send this answer."""
        self._answer((status, body))

    def _answer(self, answer: Answer | None) -> None:
        """Let `deliver` send an answer, or end without one."""
        self._resolve(answer)

    def _resolve(self, answer: Answer | None) -> None:
        if self._finished is not None and not self._finished.done():
            self._finished.set_result(answer)

    async def _end(self) -> None:
        """End the stream; return when all was sent or its reader given up.

        A call that was cancelled has no answer: its event stream ends without one.
        If its client has left, nothing is sent.
        """
        if self._left:
            return
        events = self._opened()
        events.end()
        await asyncio.wait([events.closed])

    def _opened(self) -> EventStream:
        if self._events is None:
            way = self._connection
            self._events = EventStream(way.send, way.cors, way.queues)
            self._events.closed.add_done_callback(self._closed)
            self._begin(self._events)
        return self._events

    def _begin(self, events: EventStream) -> None:
        """Write what comes before the first message."""

    def lasting(self) -> None:
        """Watch for the client to leave; become a stream after a silence."""
        if self._watching is not None:
            # Another call of its batch did.
            return
        self._connection.watch()
        if self._exchange is None:
            # The connection is closed already, and the call goes on.
            return
        loop = asyncio.get_running_loop()
        self._watching = asyncio.ensure_future(self._connection.receive())
        self._watching.add_done_callback(self._received)
        self._timer = loop.call_later(PROMOTE_AFTER, self._promote)

    def _promote(self) -> None:
        self._timer = None
        if self.streams and not self._over:
            self._opened().beat()

    def _received(self, watching: asyncio.Future[Any]) -> None:
        if watching.cancelled() or watching.exception() is not None:
            return
        if watching.result()["type"] == "http.disconnect":
            self.gone()

    def _closed(self, _: asyncio.Future[None]) -> None:
        """Take note that the stream has ended; its client may have left."""
        self.gone()

    def gone(self) -> None:
        """Send nothing more: the client left.  This may cancel the call."""
        if self._over or self._exchange is None:
            return
        if self._events is not None:
            self._events.abandon()
        self.streams = False
        self._left = True
        if self._exchange.revision.disconnect_cancels:
            self._exchange.stop(End.CLIENT_GONE)
        self._resolve(None)

    def _stop_watching(self) -> None:
        self._exchange = None
        if self._timer is not None:
            self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()


def was_ours(exchange: Exchange) -> bool:
    """Whether a cancellation was the end of this exchange, and nothing else."""
    task = asyncio.current_task()
    return exchange.end is not None and task is not None and task.uncancel() == 0
