"""Clients that come for what was said before: with an event id, or a request's id."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InvalidRequest
from mcp_app.server import identity
from mcp_app.streams.sessions import not_found
from mcp_app.transports.event_stream import SSE_HEADERS, EventStream
from mcp_app.transports.replies import OK, send_json
from mcp_app.transports.standing import OpenStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp_app.process.runtime import Process
    from mcp_app.server.exchange import Exchange
    from mcp_app.streams.following import Place
    from mcp_app.streams.sessions import OpenSession
    from mcp_app.transports.replies import Connection


class ResumedStream(OpenStream):
    """Sends what the log says after a place."""

    __slots__ = ("_ids",)

    def __init__(
        self,
        stream: EventStream,
        current: Process,
        session: OpenSession,
        owner: str,
    ) -> None:
        super().__init__(
            stream,
            current.listeners,
            server=session.server,
            owner=owner,
            session=session.digest,
        )
        self._ids = session.revision.resumable

    def opened(self, first: str | None) -> None:
        """What it is told from now on is written at once; first an id, if there is."""
        if first is not None:
            self._stream.prime(first)
        self._opened(0)

    # -- a reader of the log ----------------------------------------------------------

    def began(self) -> None:
        """The stream was there before its client came back."""

    def message(self, payload: bytes, event_id: str) -> None:
        self._stream.message(payload, event_id if self._ids else None)

    def ended(self) -> None:
        self._stream.end()

    # -- a listener that watches nothing --------------------------------------------

    def watched(self, what: str) -> str | None:
        return None

    def watching(self) -> Iterable[str]:
        return ()

    def _tell(self, what: Sequence[str], number: int) -> None:
        """It watches nothing, so that it is told nothing."""

    def _end(self, retry_ms: int | None) -> None:
        self._stream.end(retry_ms=retry_ms)


class Answer:
    """A reader that waits for the last message."""

    def __init__(self) -> None:
        self._last: bytes | None = None
        self._over = asyncio.Event()

    async def wait(self) -> bytes | None:
        """Return the answer; None where the stream ended without one."""
        await self._over.wait()
        return self._last if self._last and _is_answer(self._last) else None

    def began(self) -> None:
        """The stream was there before."""

    def message(self, payload: bytes, event_id: str) -> None:
        self._last = payload

    def ended(self) -> None:
        self._over.set()


def _is_answer(message: bytes) -> bool:
    value = jsonrpc.read(message)
    return not isinstance(value, dict) or "method" not in value


class Returning:
    """Serves who comes back to a session's request."""

    def __init__(self, connection: Connection, current: Process, owner: str) -> None:
        self._connection = connection
        self._current = current
        self._owner = owner

    async def resume(
        self, session: OpenSession, place: Place, first: str | None = None
    ) -> None:
        """Send what follows a place, as events; `first` is an id to begin with."""
        way, current = self._connection, self._current
        stream = EventStream(way.send, [*SSE_HEADERS, *way.cors])
        resumed = ResumedStream(stream, current, session, self._owner)
        current.listen(resumed)
        way.started = True
        with resumed, current.followers.following(place, resumed):
            resumed.opened(first)
            await resumed.serve(way.receive)

    async def repeat(self, exchange: Exchange, session: OpenSession) -> None:
        """Answer a request whose id came before; raise where that was another one."""
        key = identity.key(exchange.request_id)
        earlier = await self._current.followers.earlier(session.pk, key)
        if earlier is None:
            raise not_found()
        if earlier.digest != identity.digest(exchange):
            raise InvalidRequest(
                f"The id {exchange.request_id!r} was used before in this session, for"
                f" a call of {earlier.tool}: give each request an id of its own."
            )
        accepts = self._connection.accepts
        if accepts.json and (earlier.whole or not accepts.events):
            await self._whole(session, earlier.place)
            return
        primed = session.revision.priming
        first = f"{earlier.place.public_id}.0" if primed else None
        await self.resume(session, earlier.place, first)

    async def _whole(self, session: OpenSession, place: Place) -> None:
        """Send the answer as JSON, once it is there."""
        way, answer = self._connection, Answer()
        with self._current.followers.following(place, answer):
            body = await answer.wait()
        way.started = True
        if body is not None:
            await send_json(way.send, OK, body, way.cors)
            return
        # It was cancelled: nothing answers it.
        stream = EventStream(way.send, [*SSE_HEADERS, *way.cors])
        stream.end()
        await asyncio.wait([stream.closed])
