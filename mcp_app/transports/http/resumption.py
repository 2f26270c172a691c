"""Sends again what clients missed, by an event id or the id of a request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from mcp_app.interface.principal import Principal
from mcp_app.pools.database import unavailable
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import InternalError, InvalidRequest, Unavailable
from mcp_app.server.request import Request
from mcp_app.server.request_digests import digest_of, request_key
from mcp_app.server.run import Run
from mcp_app.streams import event_ids
from mcp_app.streams.event_ids import final_message, is_answer
from mcp_app.streams.open_session import OpenSession
from mcp_app.streams.replay import Earlier, LastMessage, Place
from mcp_app.transports.asgi_types import Receive
from mcp_app.transports.http.bodies import ClientGone
from mcp_app.transports.http.replies import EventStream, send_events
from mcp_app.transports.http.responses import OK, Connection, send_json
from mcp_app.transports.open_streams import OpenStream

LAST_LOOK_S: Final = 0.5
"""Seconds that a stopping process waits for the answer of another one."""
WITHDRAWAL_S: Final = 2.0
"""Seconds in which a process withdraws a request that did not begin: `RETRY_S` of
`request_log`, and time to do it."""
WITHDRAWAL_LOOK_S: Final = 0.25


class WatchesNothing:
    """A listener that hears of no changes: it is only counted and ended."""

    __slots__ = ()

    def watched(self, what: str) -> str | None:
        return None

    def watching(self) -> Iterable[str]:
        return ()

    def tell(self, what: Sequence[str], number: int) -> None:
        """Do nothing."""


class ResumedStream(WatchesNothing, OpenStream):
    """Sends the messages that follow a place in a stream of the replay log."""

    __slots__ = ("_ids",)

    def __init__(
        self,
        stream: EventStream,
        current: Process,
        session: OpenSession,
        principal: Principal,
    ) -> None:
        super().__init__(
            stream,
            current.listeners,
            server=session.server,
            principal=principal,
            session=session.digest,
        )
        self._ids = session.revision.resumable
        """Whether messages are sent with their event ids."""

    def start_sending(self, first: str | None) -> None:
        """Write from now on; begin with the event id `first`, if there is one."""
        if first is not None:
            self._stream.queue_priming_event(first)
        self.begin_writing(number=0)

    def began(self) -> None:
        """Do nothing: the stream began earlier."""

    def message(self, payload: bytes, event_id: str) -> None:
        self._stream.queue_message(payload, event_id if self._ids else None)

    def ended(self) -> None:
        self._stream.end_output()

    def _write_end(self, retry_ms: int | None) -> None:
        self._stream.end_output(retry_ms=retry_ms)


class WholeAnswer(WatchesNothing, LastMessage):
    """A reader that waits for the answer, as one of the listeners of the process."""

    seen = 0
    # If staff stop the MCP server, the wait goes on: it ends with the call.
    lasts = True

    def __init__(self, session: OpenSession, principal: Principal) -> None:
        super().__init__()
        self.server = session.server
        self.session = session.digest
        self.principal = principal
        self.owner = principal.owner

    async def wait_for_answer(self, receive: Receive) -> bytes | None:
        """Return the answer; None if the stream ended without one.

        Raises `ClientGone`, and 503 if the process stops.
        """
        disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
        ends: list[asyncio.Future[Any]] = [self.over, disconnect]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnect.cancel()
            # Only a future without a result is cancelled: then the client has left.
            self.over.cancel()
        if self.over.cancelled():
            raise ClientGone
        last = self.over.result()
        return last if last and is_answer(last) else None

    def beat(self) -> None:
        """Nothing can be sent before the answer."""

    def end(self, *, retry_ms: int | None = None) -> None:
        if not self.over.done():
            words = "This process is stopping. Send the request again."
            retry_after = (retry_ms or 2_000) // 1_000
            self.over.set_exception(Unavailable(words, retry_after=retry_after))


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def find_earlier(
    current: Process, request: Request, session: OpenSession
) -> Earlier:
    """Return the earlier request with the same id; raise if its call differs.

    Raises 404 if the session is gone, and 503 if the request was withdrawn: after an
    outage that can take `WITHDRAWAL_S`, and until then nobody follows a silent one.
    """
    key, digest = request_key(request.id), await digest_of(request)
    end = current.loop.time() + WITHDRAWAL_S
    while True:
        earlier = await current.followers.earlier_request(session.pk, key)
        if earlier is None:
            await current.sessions.client_position(session)
            raise unavailable()
        if earlier.digest != digest:
            raise InvalidRequest(
                f"The id {request.id!r} was used before in this session, for a"
                f" call of {earlier.tool}. Give each request an id of its own."
            )
        if not earlier.is_silent or current.loop.time() >= end:
            return earlier
        await asyncio.sleep(WITHDRAWAL_LOOK_S)


class Returning:
    """Serves clients that come back to a request."""

    def __init__(
        self, connection: Connection, current: Process, principal: Principal
    ) -> None:
        self._connection = connection
        self._current = current
        self._principal = principal

    async def resume_stream(
        self, session: OpenSession, place: Place, first: str | None = None
    ) -> None:
        """Send the messages after a place; `first` is the id of a priming event."""
        if place.seq < place.floor:
            error = InternalError(
                f"The messages after number {place.seq} of this stream have expired:"
                f" only those after number {place.floor} are kept."
            )
            await self._send_messages(final_message(place.requests, error))
            return
        connection, current = self._connection, self._current
        stream = EventStream(connection.send, connection.cors, current.queues)
        resumed = ResumedStream(stream, current, session, self._principal)
        current.add_listener(resumed)
        connection.started = True
        with resumed, current.followers.following(place, resumed):
            resumed.start_sending(first)
            await resumed.serve_until_end(connection.receive)

    async def send_rest(
        self, session: OpenSession, place: Place, stream: EventStream
    ) -> None:
        """Send the messages that another process has added to an open stream."""
        # No limit is checked here, because the client was already served.
        current = self._current
        resumed = ResumedStream(stream, current, session, self._principal)
        current.listeners.add(resumed)
        current.watch()
        with resumed, current.followers.following(place, resumed):
            resumed.start_sending(None)
            if current.stopping:
                current.loop.call_later(LAST_LOOK_S, resumed.end)
            await resumed.serve_until_end(self._connection.receive)

    async def answer_from_elsewhere(
        self, session: OpenSession, place: Place
    ) -> bytes | None:
        """Return the answer that another process has given; None if there is none."""
        current, answer = self._current, WholeAnswer(session, self._principal)
        current.listeners.add(answer)
        current.watch()
        if current.stopping:
            current.loop.call_later(LAST_LOOK_S, answer.end)
        try:
            return await self._await_answer(answer, place)
        except Unavailable:
            return None

    async def _send_messages(self, *messages: bytes) -> None:
        connection = self._connection
        connection.started = True
        await send_events(
            connection.send, connection.cors, self._current.queues, *messages
        )

    async def repeat_answer(self, run: Run, session: OpenSession) -> None:
        """Repeat the answer of the earlier request with its id; raise if it differs."""
        earlier = await find_earlier(self._current, run.request, session)
        accepts, place = self._connection.accepts, earlier.place
        if accepts.json and (earlier.whole or not accepts.events):
            await self._send_as_json(session, place)
            return
        primed = session.revision.priming
        first = event_ids.of_message(place.public_id, place.seq) if primed else None
        await self.resume_stream(session, place, first)

    async def _send_as_json(self, session: OpenSession, place: Place) -> None:
        connection, answer = self._connection, WholeAnswer(session, self._principal)
        self._current.add_listener(answer)
        body = await self._await_answer(answer, place)
        if body is None:
            # The call was cancelled, so it has no answer.
            await self._send_messages()
            return
        connection.started = True
        await send_json(connection.send, OK, body, connection.cors)

    async def _await_answer(self, answer: WholeAnswer, place: Place) -> bytes | None:
        try:
            with self._current.followers.following(place, answer):
                return await answer.wait_for_answer(self._connection.receive)
        finally:
            self._current.listeners.discard(answer)
