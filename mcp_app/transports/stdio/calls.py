"""The way back of a call on a channel."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp_app.server.exchange import End, Exchange
from mcp_app.transports.spacing import APART_S
from mcp_app.transports.stdio.channel import Channel, Write

if TYPE_CHECKING:
    from mcp_app.process.running import Answer, Waiting
    from mcp_app.streams.log_writer import Beside


class Alone:
    """Writes the answer of a request by itself."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def lasting(self) -> None:
        """Nothing has to be kept open."""

    def beat(self) -> None:
        """Nothing has to be kept open."""

    def answered(self, status: int, body: bytes) -> None:
        self._write(body)

    def finished(self, task: asyncio.Task[Answer]) -> None:
        """Write the answer; a call that was cancelled has none."""
        if not task.cancelled() and task.exception() is None:
            self._write(task.result()[1])


class RunningCall:
    """The way back of one call."""

    _said = float("-inf")

    def __init__(
        self, channel: Channel, exchange: Exchange, answers: Waiting, *, streams: bool
    ) -> None:
        """Drop what comes before the answer, unless the channel `streams`."""
        self.streams = streams
        self._channel = channel
        self._request_id = exchange.request_id
        self._exchange: Exchange | None = exchange
        self._answers = answers

    @property
    def _heard(self) -> bool:
        """Whether the call may still say something."""
        return self._exchange is not None

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        if self._heard and self.streams:
            self._said = self._channel.current.loop.time()
            self._channel.write(message)

    def reconnect(self, after_ms: int) -> None:
        """Do nothing: there is only one connection."""

    def cancel(self) -> None:
        """Cancel open questions, then stop the call without an answer."""
        exchange = self._exchange
        if exchange is not None:
            exchange.stop(End.CANCELLED)
            self._exchange = None
            self._channel.forget(self._request_id, self)

    def lasting(self) -> None:
        self._channel.current.watch()

    def beat(self) -> None:
        """A pipe needs no heartbeat."""

    def finished(self, task: asyncio.Task[Answer]) -> None:
        """Send the answer of a finished call."""
        self._exchange = None
        loop = self._channel.current.loop
        if loop.time() - self._said < APART_S:
            loop.call_later(APART_S, self._finished, task)
        else:
            self._finished(task)

    def _finished(self, task: asyncio.Task[Answer]) -> None:
        self._channel.forget(self._request_id, self)
        self._answers.finished(task)
