"""The way back of a POSTed request: the stream of its session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp_app.server.exchange import End
from mcp_app.streams.request_log import ABORTED

if TYPE_CHECKING:
    from mcp_app.process.running import Answer
    from mcp_app.process.runtime import Process
    from mcp_app.server.exchange import Exchange
    from mcp_app.streams.log_writer import Beside
    from mcp_app.streams.open_session import OpenSession
    from mcp_app.streams.request_log import OwnedStream


class PostedCall:
    """Logs a call's messages; the process with the session's stream reads them."""

    streams = True
    over = False
    """Whether further messages are dropped."""

    def __init__(
        self,
        current: Process,
        session: OpenSession,
        exchange: Exchange,
        stream: OwnedStream,
    ) -> None:
        self._current = current
        self._session = session
        self._exchange: Exchange | None = exchange
        self._stream = stream
        stream.lost = self._lose
        stream.readers.append(self)

    # -- the call -------------------------------------------------------------------

    def send(self, message: bytes, beside: Beside | None = None) -> None:
        stream = self._stream
        if self.over:
            return
        if stream.full:
            stream.overflow()
            self._lose(None)
        else:
            stream.append(message, beside)

    def reconnect(self, after_ms: int) -> None:
        """Do nothing: with the stream the session would end."""

    def lasting(self) -> None:
        self._current.watch()

    def beat(self) -> None:
        """The session's stream has its own heartbeats."""

    def finished(self, task: asyncio.Task[Answer]) -> None:
        """Log the answer; a call that was cancelled has none."""
        self._exchange = None
        stream = self._stream
        if self.over or stream.ends or stream.failure is not None:
            return
        if task.cancelled() or task.exception() is not None:
            stream.end(None, ABORTED)
        else:
            stream.end(task.result()[1])

    def _lose(self, _: bytes | None) -> None:
        """Stop a call whose answer cannot be logged."""
        if self._exchange is not None:
            self._exchange.stop(End.CANCELLED)

    # -- what the log has committed ---------------------------------------------------

    def began(self) -> None:
        """Do nothing: readers only need messages."""

    def message(self, payload: bytes, event_id: str) -> None:
        self._current.wake_reader(self._session.pk)

    def ended(self) -> None:
        self._current.wake_reader(self._session.pk)
