"""The way back of a request in a session: what streams is logged before it is sent.

A client whose connection breaks comes back with the id of the last event that it has,
to any process, and gets the rest.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from mcp_app.protocol import jsonrpc
from mcp_app.streams import event_ids
from mcp_app.streams.request_log import ABORTED, COMPLETED
from mcp_app.transports.replies import OK, Connection, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_app.process.running import Answer
    from mcp_app.server.exchange import Exchange
    from mcp_app.streams.request_log import OwnedStream, RequestLog
    from mcp_app.streams.sessions import OpenSession
    from mcp_app.transports.event_stream import EventStream


LAST_WORDS_S: Final = 1.0
"""So long the end of a cancelled call waits for the database."""


def open_stream(
    log: RequestLog,
    session: OpenSession,
    requests: Sequence[str | int],
    **identity: str,
) -> OwnedStream:
    """Begin the stream that answers these requests of a session."""
    return log.open(
        session.pk,
        event_ids.new_public_id(session.digest),
        requests=jsonrpc.write(requests).decode(),
        **identity,
    )


class LoggedReply(Reply):
    """A reply that is JSON, or becomes a stream of the log.

    The call goes on when its client leaves, and what it says is logged.  A request that
    must not run twice has its stream before it runs; others have one if anything but
    the answer is to be sent.
    """

    _promoted = False
    _last: Answer | None = None
    """The answer, while it is being logged."""

    def __init__(
        self,
        connection: Connection,
        exchange: Exchange,
        session: OpenSession,
        log: RequestLog,
        requests: Sequence[str | int],
    ) -> None:
        super().__init__(connection, exchange)
        self._session = session
        self._log = log
        self._requests = requests
        self._stream: OwnedStream | None = None

    def begun(self, stream: OwnedStream) -> None:
        """Use this stream, whose row is there."""
        self._stream = stream
        stream.readers.append(self)

    def send(
        self, message: bytes, beside: Callable[[str], object] | None = None
    ) -> None:
        if self._stream is None and self.streams and not self._over:
            self._logged()
        if self._stream is not None and self._connection.accepts.events:
            self._stream.append(message, beside)

    def _logged(self) -> OwnedStream:
        if self._stream is None:
            self.begun(open_stream(self._log, self._session, self._requests))
        return self._stream  # type: ignore[return-value]

    def _promote(self) -> None:
        self._timer = None
        if not self.streams or self._over:
            return
        self._promoted = True
        if self._logged().key is not None:
            self.began()

    def _answer(self, answer: Answer | None) -> None:
        unlogged = self._stream is None
        if unlogged and (answer is None or self._left or self._whole(answer)):
            super()._answer(answer)
        elif answer is None:
            self._cut(self._logged())
        else:
            self._last = answer
            self._logged().end(answer[1], COMPLETED)

    def _cut(self, stream: OwnedStream) -> None:
        """End without an answer, soon: who cancelled waits for nothing much."""
        stream.end(None, ABORTED)
        if self._events is None:
            self._leave()
            super()._answer(None)
            return
        # What was said before may be of use: that questions are withdrawn.
        asyncio.get_running_loop().call_later(LAST_WORDS_S, self._resolve, None)

    def _whole(self, answer: Answer) -> bool:
        """Whether an answer is sent as JSON, where nothing was streamed before."""
        return self._connection.accepts.json or answer[0] != OK

    def _gone(self) -> None:
        self._leave()
        super()._gone()

    def _leave(self) -> None:
        if self._stream is not None and self in self._stream.readers:
            self._stream.readers.remove(self)

    # -- what the log has committed ---------------------------------------------------

    def began(self) -> None:
        if self._promoted:
            self._opened()
            # Servers send the headers with the first bytes; messages may follow.
            asyncio.get_running_loop().call_soon(self.beat)

    def message(self, payload: bytes, event_id: str) -> None:
        last = self._last
        if self._events is None and last and payload is last[1] and self._whole(last):
            self._resolve(last)
        else:
            resumable = self._session.revision.resumable
            self._opened().message(payload, event_id if resumable else None)

    def ended(self) -> None:
        """End the connection, with or without an answer."""
        self._resolve(None)

    def _begin(self, events: EventStream) -> None:
        if self._stream is None or self._over:
            # A stream that only ends begins with nothing.
            return
        if self._session.revision.priming:
            events.prime(self._stream.event_id(0))
