"""The way back of a request in a session: what streams is logged before it is sent.

A client whose connection breaks comes back with the id of the last event that it has,
to any process, and gets the rest.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp_app.protocol import jsonrpc
from mcp_app.streams import event_ids
from mcp_app.streams.request_log import ABORTED, COMPLETED
from mcp_app.transports.replies import OK, Connection, Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_app.process.running import Answer
    from mcp_app.server.exchange import Exchange
    from mcp_app.streams.request_log import OwnedStream, RequestLog
    from mcp_app.streams.sessions import OpenSession
    from mcp_app.transports.event_stream import EventStream


class LoggedReply(Reply):
    """A reply that is JSON, or becomes a stream of the log.

    The call goes on when its client leaves, and what it says is logged.
    """

    _stream: OwnedStream | None = None

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

    def send(self, message: bytes) -> None:
        if self._stream is not None:
            self._stream.append(message)
        elif self.streams and not self._over:
            self._logged().append(message)

    def _logged(self) -> OwnedStream:
        if self._stream is None:
            session = self._session
            self._stream = self._log.open(
                session.pk,
                event_ids.new_public_id(session.digest),
                requests=jsonrpc.write(self._requests).decode(),
            )
            self._stream.readers.append(self)
        return self._stream

    def _promote(self) -> None:
        self._timer = None
        if self.streams and not self._over:
            self._logged()

    def _answer(self, answer: Answer | None) -> None:
        whole = self._connection.accepts.json or (answer and answer[0] != OK)
        if self._stream is None and (answer is None or whole or self._left):
            super()._answer(answer)
        elif answer is None:
            self._logged().end(None, ABORTED)
        else:
            self._logged().end(answer[1], COMPLETED)

    def _gone(self) -> None:
        if self._stream is not None and self in self._stream.readers:
            self._stream.readers.remove(self)
        super()._gone()

    # -- what the log has committed ---------------------------------------------------

    def began(self) -> None:
        self._opened()
        # Servers send the headers with the first bytes; messages may follow at once.
        asyncio.get_running_loop().call_soon(self.beat)

    def message(self, payload: bytes, event_id: str) -> None:
        self._opened().message(payload, event_id)

    def ended(self) -> None:
        """End the connection, with or without an answer."""
        self._resolve(None)

    def _begin(self, events: EventStream) -> None:
        if self._stream is not None and self._session.revision.priming:
            events.prime(self._stream.event_id(0))
