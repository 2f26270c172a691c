"""Streams that stay open: GET (stateful), subscriptions/listen and events/stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from mcp_app.catalog.snapshot import EventEntry
from mcp_app.interface.principal import Principal
from mcp_app.process.event_changes import REVOKED
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.events import EventError, error_to_wire
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import TaskRecord
from mcp_app.server import events, subscriptions
from mcp_app.server.events import Batch
from mcp_app.server.request import Request
from mcp_app.server.subscriptions import Interest
from mcp_app.streams.event_ids import EventIds, SeenEvents
from mcp_app.streams.listeners import SESSION_LISTS, Listeners, digest_of
from mcp_app.streams.open_session import OpenSession
from mcp_app.transports.asgi_types import Receive


class StreamOutput(Protocol):
    """The output of a stream."""

    closed: asyncio.Future[None]
    """Resolved when all was sent, cancelled if the stream was abandoned."""

    def queue_message(self, data: bytes, event_id: str | None = None) -> None:
        """Queue a message."""

    def queue_priming_event(self, event_id: str) -> None:
        """Queue an event that has an id only, if there are ids."""

    def queue_heartbeat(self) -> None:
        """Queue a heartbeat, if there are any."""

    def end_output(self, *, retry_ms: int | None = None) -> None:
        """Send what is queued, then end."""

    def abandon_output(self) -> None:
        """Send nothing any more."""


class OpenStream:
    """A listener that lives as long as its client or its process.

    Changes wait until the stream is open: other messages must come first.  The end of
    its `with` block removes it from the listeners of its process.
    """

    lasts = False

    __slots__ = (
        "_listeners",
        "_open",
        "_pending",
        "_retry_ms",
        "_stream",
        "owner",
        "principal",
        "seen",
        "server",
        "session",
    )

    def __init__(
        self,
        stream: StreamOutput,
        listeners: Listeners,
        *,
        server: str,
        principal: Principal,
        session: str = "",
    ) -> None:
        self._stream = stream
        self._listeners = listeners
        self._open = False
        self._pending: dict[str, None] = {}
        self._retry_ms: list[int | None] = []
        """The arguments of each `end` that came before the stream was open."""
        self.server = server
        self.principal = principal
        self.owner = principal.owner
        self.session = session
        self.seen = 0

    def __enter__(self) -> None:
        """Register the stream, if a subclass needs it."""

    def __exit__(self, *_: object) -> None:
        self._listeners.discard(self)
        self._stream.abandon_output()

    async def serve_until_end(self, receive: Receive) -> None:
        """Return when the client has left, or when the stream was ended and sent."""
        # Only this task waits: a second task for each stream would cost memory.
        task, closed = asyncio.current_task(), self._stream.closed
        closed.add_done_callback(partial(_cancel_waiting, task))
        try:
            self._stream.queue_heartbeat()
            while (await receive())["type"] != "http.disconnect":
                continue
        except asyncio.CancelledError:
            if not _was_woken_by_end(task, closed):
                raise

    def begin_writing(self, number: int) -> None:
        """Write from now on, and first the changes up to `number` that have waited."""
        self._open = True
        if self._pending:
            self._write_changes(list(self._pending), number)
            self._pending = {}
        for retry_ms in self._retry_ms:
            self._write_end(retry_ms)

    @property
    def _begun_with(self) -> bool:
        """Whether changes are written at once; before, they wait."""
        return self._open

    def tell(self, what: Sequence[str], number: int) -> None:
        if self._begun_with:
            self._write_changes(what, number)
        else:
            self._pending.update(dict.fromkeys(what))

    def beat(self) -> None:
        if self._open:
            self._stream.queue_heartbeat()

    def end(self, *, retry_ms: int | None = None) -> None:
        if self._open:
            self._write_end(retry_ms)
        else:
            self._retry_ms.append(retry_ms)

    def watched(self, what: str) -> str | None:
        raise TypeError(f"{type(self).__name__} is abstract.")

    def watching(self) -> Iterable[str]:
        raise TypeError(f"{type(self).__name__} is abstract.")

    def _write_changes(self, what: Sequence[str], number: int) -> None:
        raise TypeError(f"{type(self).__name__} is abstract.")

    def _write_end(self, retry_ms: int | None) -> None:
        raise TypeError(f"{type(self).__name__} is abstract.")


def _cancel_waiting(
    task: asyncio.Task[Any] | None, closed: asyncio.Future[None]
) -> None:
    if task is not None and not closed.cancelled():
        task.cancel()


def _was_woken_by_end(
    task: asyncio.Task[Any] | None, closed: asyncio.Future[None]
) -> bool:
    """Whether only the end of the stream has cancelled the task."""
    ended = closed.done() and not closed.cancelled()
    return ended and task is not None and task.uncancel() == 0


class StandingStream(OpenStream):
    """The GET stream of a session; only the newest one gets messages.

    It listens from `begin` on; it opens with the changes that its client missed.
    """

    __slots__ = ("_begun", "_ids", "_session", "number")

    def __init__(
        self,
        stream: StreamOutput,
        listeners: Listeners,
        session: OpenSession,
        *,
        principal: Principal,
    ) -> None:
        super().__init__(
            stream,
            listeners,
            server=session.server,
            principal=principal,
            session=session.digest,
        )
        self._session = session
        self._ids = EventIds(session.digest)
        self._begun = False
        self.number = 0
        """Its place among the session's streams, from 1; the newest has the highest."""

    def __enter__(self) -> None:
        self._session.streams.append(self)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._session.streams.remove(self)
        streams = [stream for stream in self._session.streams if stream.number]
        if self._is_newest and streams:
            # Another stream here takes its place; other processes cannot know of it.
            heir = max(streams, key=lambda each: each.number)
            heir.number, heir.seen = self.number, max(heir.seen, self.seen)
            heir._ids.logged = max(heir.logged, self.logged)

    @property
    def public_id(self) -> str:
        return self._ids.public_id

    def begin(self, observed: SeenEvents) -> None:
        """Listen from now on; the client has all messages up to `observed`."""
        self._begun = True
        self.seen = observed.changes
        self._ids.logged = observed.logged

    def opened(self, missed: Iterable[str], announced: int, number: int) -> None:
        """Write the missed changes, as the newest stream of its session.

        With the changes since `begin`, these are all up to the number `announced`.
        """
        self.number = number
        changes = (*missed, *self._pending) if self._is_newest else ()
        self._pending = dict.fromkeys(changes)
        if self._is_newest and not changes:
            self.seen = max(self.seen, announced)
        self._ids.announced = self.seen
        if self._session.revision.priming:
            self._stream.queue_priming_event(self._ids.current_id())
        self.begin_writing(announced)

    @property
    def newest(self) -> bool:
        """Whether it is open, and the newest of its session."""
        return self._open and self._is_newest

    @property
    def logged(self) -> int:
        """The number of the last log message that its client has."""
        return self._ids.logged

    def log(self, messages: Iterable[tuple[int, str]]) -> None:
        """Write log messages from outside of calls, each with its number."""
        resumable = self._session.revision.resumable
        for number, payload in messages:
            if number > self._ids.logged:
                event_id = self._ids.next_logged(number) if resumable else None
                self._stream.queue_message(payload.encode(), event_id)

    def watched(self, what: str) -> str | None:
        if not self._is_listening:
            return None
        uris: dict[str, str] = self._session.uris
        return what if what in SESSION_LISTS else uris.get(what)

    def watching(self) -> Iterable[str]:
        return (
            (*SESSION_LISTS, *self._session.uris.values()) if self._is_listening else ()
        )

    @property
    def _is_listening(self) -> bool:
        return self._is_newest if self._open else self._begun

    @property
    def _is_newest(self) -> bool:
        return 0 < self.number == self._session.newest

    def _write_changes(self, what: Sequence[str], number: int) -> None:
        # Only the last event has the new number: a client without it gets all again.
        *earlier, last = what
        for each in earlier:
            self._write_one_change(each, self.seen)
        self.seen = max(self.seen, number)
        self._write_one_change(last, self.seen)

    def _write_one_change(self, what: str, number: int) -> None:
        message = subscriptions.change_message(what, None)
        resumable = self._session.revision.resumable
        event_id = self._ids.next_change_id(number) if resumable else None
        self._stream.queue_message(message, event_id)

    def _write_end(self, retry_ms: int | None) -> None:
        self._stream.end_output(retry_ms=retry_ms)


class ListenStream(OpenStream):
    """The stream of one `subscriptions/listen` request."""

    __slots__ = ("_closing", "_lists", "_subscription", "_uris")

    def __init__(
        self,
        stream: StreamOutput,
        listeners: Listeners,
        *,
        server: str,
        principal: Principal,
        interest: Interest,
        subscription: str | int,
        closing: bytes,
    ) -> None:
        super().__init__(stream, listeners, server=server, principal=principal)
        self._lists = interest.lists
        self._uris = {digest_of(uri): uri for uri in interest.uris}
        self._subscription = subscription
        self._closing = closing

    def watched(self, what: str) -> str | None:
        return what if what in self._lists else self._uris.get(what)

    def watching(self) -> Iterable[str]:
        return (*self._lists, *self._uris.values())

    def open_with_message(self, acknowledgement: bytes) -> None:
        """Open with this message."""
        self._stream.queue_message(acknowledgement)
        self.begin_writing(number=0)

    def tell_task(self, record: TaskRecord) -> None:
        """Write that a task has changed."""
        message = subscriptions.task_message(record, self._subscription)
        self._stream.queue_message(message)

    def _write_changes(self, what: Sequence[str], number: int) -> None:
        for each in what:
            message = subscriptions.change_message(each, self._subscription)
            self._stream.queue_message(message)

    def _write_end(self, retry_ms: int | None) -> None:
        self._stream.queue_message(self._closing)
        self._stream.end_output()


MAX_UNREAD_BYTES: Final = 1024 * 1024
"""A stream with more unread bytes gets no more events."""


class PushStream(OpenStream):
    """The stream of one `events/stream` request (SEP-3415, "Push Delivery")."""

    __slots__ = ("_failed", "_streams", "entry", "position", "request", "topic")

    def __init__(
        self,
        stream: StreamOutput,
        current: Process,
        request: Request,
        entry: EventEntry,
        position: int,
    ) -> None:
        super().__init__(
            stream,
            current.listeners,
            server=request.catalog.server.slug,
            principal=request.principal,
        )
        self._streams = current.event_streams
        self._failed = ""
        """The message of the last error, until events are read again."""
        self.request = request
        self.entry = entry
        self.topic = entry.definition.topic
        self.position = position

    def watched(self, what: str) -> str | None:
        return None

    def watching(self) -> Iterable[str]:
        return ()

    def open_with_cursor(self, truncated: bool) -> None:
        """Open with the cursor, and whether earlier events were missed."""
        self._write("active", {**self._cursor, "truncated": truncated})
        self.begin_writing(number=0)

    @property
    def _cursor(self) -> JsonObject:
        return {"cursor": events.cursor_at(self.request, self.entry, self.position)}

    def _write(self, name: str, params: JsonObject) -> None:
        self._stream.queue_message(events.stream_message(self.request, name, params))

    def beat(self) -> None:
        """Check rights and events again; then write the cursor."""
        self._streams.look_soon(self, beat=True)

    # -- what is told (`process.event_streams.Push`) -------------------------------

    @property
    def is_full(self) -> bool:
        return getattr(self._stream, "waiting", 0) > MAX_UNREAD_BYTES

    def write_batch(self, batch: Batch) -> None:
        self._failed = ""
        if batch.truncated:
            self._write("active", {**self._cursor, "truncated": True})
        for event in batch.events:
            message = events.event_message(self.request, self.entry, event)
            self._stream.queue_message(message)
            self.position = event.number
            if self.is_full:
                # The rest is read again once this is sent.
                return
        self.position = batch.position

    def write_heartbeat(self) -> None:
        self._write("heartbeat", self._cursor)

    def write_error(self, error: ProtocolError) -> None:
        # An error is written once: it repeats until events are read again.
        if error.message != self._failed:
            self._failed = error.message
            self._write("error", {"error": error_to_wire(error)})

    def terminate(self, error: EventError) -> None:
        self._write("terminated", {"error": error_to_wire(error)})
        self._end_output()

    def _write_end(self, retry_ms: int | None) -> None:
        if retry_ms is None:
            # Without a time to come back, the caller has lost its rights.
            dialect = events.dialect_for(self.request)
            self.terminate(EventError(dialect, "forbidden", REVOKED, reason="revoked"))
        else:
            # The client continues at another process, with its cursor.
            self._end_output()

    def _end_output(self) -> None:
        self._stream.queue_message(subscriptions.closed_message(self.request))
        self._stream.end_output()
